"""The classes of COCO, as torchvision names them."""

from functools import cache

from torchvision.models.detection import FasterRCNN_ResNet50_FPN_Weights


@cache
def numbered() -> tuple[str, ...]:
    """Return the 90 categories by their numbers; ten have no name and are never found."""
    return tuple(FasterRCNN_ResNet50_FPN_Weights.COCO_V1.meta["categories"][1:])


@cache
def classes() -> tuple[str, ...]:
    """Return the 80 names that are in use, in COCO's order."""
    return tuple(one for one in numbered() if one != "N/A")
