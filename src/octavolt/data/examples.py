"""Pictures, made ready for a network: cropped, resized, mirrored, side by side in a batch."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import cv2
import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from octavolt.contract import Examples, Job, Pictures, Places, Preprocessing
from octavolt.data.augment import central_crop, is_mirrored, mixup_share, random_crop
from octavolt.data.decode import Scratch, paint, raster
from octavolt.errors import OctavoltError
from octavolt.tasks.image_classification import PictureBatch

THUMBNAIL_PIXELS = 160
MIXUP = 1
"""The purpose of a pair's draw: apart from that of crops, which then are the same without it."""


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """What training does to pictures and targets; evaluation does nothing of it."""

    crop_scale_min: float = 0.08
    """Smallest share of a picture's area that a random crop takes; 1 takes no crops."""
    mirror: bool = True
    mixup_alpha: float = 0.0
    """Of the Beta distribution of shares; 0 mixes nothing."""
    label_smoothing: float = 0.0
    class_weights: Float[Tensor, " classes"] | None = None


class PictureExamples(Examples):
    """The pictures of one split as batches of bytes, augmented by their places if at all."""

    def __init__(
        self,
        pictures: Pictures,
        preprocessing: Preprocessing,
        *,
        class_count: int,
        augmentation: Augmentation | None = None,
        pin: bool = False,
    ) -> None:
        self.pictures = pictures
        self.preprocessing = preprocessing
        self.class_count = class_count
        self.augmentation = augmentation
        self.pin = pin
        """Whether batches lie in pinned memory, from which a GPU copies while others work."""
        self._scratch = Scratch()

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.pictures)

    def name(self, index: int) -> str:
        """Return the picture's file, or file and row."""
        return self.pictures.name(index)

    def show(self, index: int) -> dict[str, str]:
        """Return a picture as the network sees it, but for the normalization, as a small JPEG."""
        places = Places(seed=0, epoch=0, first=0, indices=np.array([index], dtype=np.int64))
        batch, jobs = self.begin(places)
        for job in jobs:
            job()
        return {"jpeg_base64": thumbnail(batch.pixels[0].numpy())}

    def begin(self, places: Places) -> tuple[PictureBatch, Sequence[Job]]:
        """Return a batch to be filled, and a job a picture, in the order of the places."""
        size = self.preprocessing.image_size
        pixels = torch.empty(
            (len(places.indices), size, size, 3), dtype=torch.uint8, pin_memory=self.pin
        )
        slots = pixels.numpy()
        jobs = [partial(self._fill, slots[at], places, at) for at in range(len(places.indices))]
        labels = torch.from_numpy(self.pictures.labels[places.indices])
        return self._batch(pixels, labels, places), jobs

    def _batch(
        self,
        pixels: UInt8[Tensor, "batch height width 3"],
        labels: Tensor,
        places: Places,
    ) -> PictureBatch:
        augmentation = self.augmentation or Augmentation()
        return PictureBatch(
            pixels=pixels,
            labels=labels,
            class_count=self.class_count,
            preprocessing=self.preprocessing,
            label_smoothing=augmentation.label_smoothing,
            own_share=own_shares(places, alpha=augmentation.mixup_alpha, count=len(self))
            if augmentation.mixup_alpha
            else None,
            class_weights=augmentation.class_weights,
        )

    def _fill(self, slot: UInt8[np.ndarray, "height width 3"], places: Places, at: int) -> None:
        index = int(places.indices[at])
        try:
            source = raster(self.pictures.read(index), white_level=self.preprocessing.white_level)
            if self.augmentation is None:
                window = central_crop(
                    source.height,
                    source.width,
                    image_size=self.preprocessing.image_size,
                    crop_fraction=self.preprocessing.crop_fraction,
                )
                paint(source, window, slot, scratch=self._scratch)
                return
            random = places.random(at)
            # Mirroring is drawn first, so that it doesn't depend on how many crops were tried.
            mirror = is_mirrored(random) and self.augmentation.mirror
            window = random_crop(
                source.height,
                source.width,
                scale_min=self.augmentation.crop_scale_min,
                random=random,
            )
            paint(source, window, slot, quick=True, mirror=mirror, scratch=self._scratch)
        except (ValueError, OSError) as error:
            raise OctavoltError(
                f"{self.name(index)}: {error}. Mend or remove it; a training leaves damaged "
                "pictures out with --skip-damaged."
            ) from error


def thumbnail(pixels: UInt8[np.ndarray, "height width 3"]) -> str:
    """Return a small JPEG of a picture in base64."""
    side = max(pixels.shape[:2])
    ratio = THUMBNAIL_PIXELS / side
    method = cv2.INTER_AREA if ratio < 1 else cv2.INTER_NEAREST
    size = (max(1, round(pixels.shape[1] * ratio)), max(1, round(pixels.shape[0] * ratio)))
    small = cv2.resize(np.ascontiguousarray(pixels[:, :, ::-1]), size, interpolation=method)
    _, encoded = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, 85])
    return base64.b64encode(encoded.tobytes()).decode()


def own_shares(places: Places, *, alpha: float, count: int) -> Float[Tensor, " batch"]:
    """Return each picture's share of its mixture with its partner.

    Both partners share one draw, from the place of the first. The last picture of an epoch of an
    odd number has no partner and stays as it is.
    """
    size = len(places.indices)
    ends_epoch = places.first + size == count
    if places.first % 2 or (size % 2 and not ends_epoch):
        raise OctavoltError(
            f"Mixup pairs neighbours, but a batch holds {size} pictures from position "
            f"{places.first} on. Use an even batch size."
        )
    shares = [
        mixup_share(places.random(offset, MIXUP), alpha=alpha) for offset in range(0, size, 2)
    ]
    both = torch.tensor(shares).repeat_interleave(2)[:size]
    if size % 2:
        both[-1] = 1
    return both
