"""The classes of COCO, as torchvision names them."""

from functools import cache

from torchvision.models.detection import FasterRCNN_ResNet50_FPN_Weights


@cache
def categories() -> tuple[str, ...]:
    """Return the 91 names by COCO's own numbers: some are 'N/A', the first is the background."""
    return tuple(FasterRCNN_ResNet50_FPN_Weights.COCO_V1.meta["categories"])


@cache
def classes() -> tuple[str, ...]:
    """Return the 80 names that are in use, in COCO's order."""
    return tuple(one for one in categories() if one not in {"__background__", "N/A"})
