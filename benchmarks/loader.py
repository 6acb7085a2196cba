"""Measure the loader: decoding and cropping, threads, memory, the packed cache.

    python benchmarks/loader.py --pictures FOLDER

Every ratio is of two ways measured in turn, in the same round, and the median of all rounds, so
that a machine that is busy with other things slows both. The last line is one JSON document.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import simplejpeg
import torch
from numpy.typing import NDArray
from PIL import Image

from octavolt.contract import Pictures, Places, Preprocessing
from octavolt.data.examples import Augmentation, PictureExamples
from octavolt.data.loader import Loader
from octavolt.data.order import epoch_order, epoch_updates
from octavolt.data.packed import packed

IMAGE_SIZE, BATCH_SIZE = 224, 32
QUALITY = 92
PREPROCESSING = Preprocessing(image_size=IMAGE_SIZE)


class Encoded(Pictures):
    """Encoded pictures in memory, each as often as it takes to make up the count."""

    def __init__(self, files: list[bytes], count: int) -> None:
        self.files = files
        self.labels = np.zeros(count, np.int64)

    def read(self, index: int) -> bytes:
        """Return the picture."""
        return self.files[index % len(self.files)]

    def name(self, index: int) -> str:
        """Return the index."""
        return str(index)

    def select(self, indices: NDArray[np.int64]) -> "Encoded":
        """Return only those pictures."""
        return Encoded([self.read(int(index)) for index in indices], len(indices))


def photos(folder: Path, *, width: int, height: int, count: int) -> list[bytes]:
    """Return JPEGs of that size, colors at half of it, made from the pictures of a folder."""
    made = []
    for path in sorted(one for one in folder.rglob("*") if one.suffix.lower() in {".jpg", ".bmp"}):
        if len(made) == count:
            break
        with Image.open(path) as image:
            sized = image.convert("RGB").resize((width, height), Image.Resampling.BICUBIC)
        made.append(simplejpeg.encode_jpeg(np.asarray(sized), QUALITY, colorsubsampling="420"))
    if not made:
        sys.exit(f"There is no .jpg or .bmp picture in {folder}. Name another with --pictures.")
    return made


def places(count: int, *, epoch: int = 1) -> Iterator[Places]:
    """Yield the batches of an epoch."""
    order = epoch_order(count, seed=0, epoch=epoch)
    for update in epoch_updates(
        order, seed=0, epoch=epoch, batch_size=BATCH_SIZE, micro_batch_size=BATCH_SIZE
    ):
        yield from update


def training(pictures: Pictures) -> PictureExamples:
    """Return the pictures with random crops and mirroring."""
    return PictureExamples(
        pictures, PREPROCESSING, class_count=1, augmentation=Augmentation(crop_scale_min=0.08)
    )


def octavolt_epoch(pictures: Pictures, *, threads: int) -> Callable[[], None]:
    """Return what loads all pictures once."""
    examples = training(pictures)

    def load() -> None:
        with Loader(threads=threads, ahead=0) as loader:
            for _ in loader.batches(examples, places(len(pictures))):
                pass

    return load


def decode_epoch(pictures: Encoded) -> Callable[[], None]:
    """Return what decodes all pictures in full, as simplejpeg does it when told nothing."""

    def load() -> None:
        for index in range(len(pictures)):
            simplejpeg.decode_jpeg(pictures.read(index))

    return load


def torchvision_epoch(pictures: Encoded) -> Callable[[], None]:
    """Return what torchvision's training reference does to all pictures: Pillow, then floats."""
    from torchvision.transforms import v2

    transform = v2.Compose(
        [
            v2.RandomResizedCrop(IMAGE_SIZE, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(PREPROCESSING.mean, PREPROCESSING.deviation),
        ]
    )

    def load() -> None:
        torch.set_num_threads(1)
        for index in range(len(pictures)):
            transform(Image.open(BytesIO(pictures.read(index))).convert("RGB"))

    return load


def seconds(action: Callable[[], None]) -> float:
    """Return how long it takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def in_turn(ways: Mapping[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each way in each round, after one round that isn't counted."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, action in ways.items():
            spent = seconds(action)
            if turn:
                taken[name].append(spent)
    return taken


def ratio(taken: Mapping[str, list[float]], of: str, to: str) -> float:
    """Return the median over the rounds of how many times as fast `of` is as `to`."""
    pairs = zip(taken[of], taken[to], strict=True)
    return statistics.median(other / one for one, other in pairs)


def measure_rates(folder: Path, rounds: int) -> dict[str, Any]:
    """Return rates on ordinary photos, and how they compare."""
    files = photos(folder, width=500, height=375, count=64)
    pictures = Encoded(files, 4 * BATCH_SIZE)
    ways = {
        "full decode": decode_epoch(pictures),
        "octavolt, 1 thread": octavolt_epoch(pictures, threads=1),
        "octavolt, 2 threads": octavolt_epoch(pictures, threads=2),
        "torchvision with Pillow": torchvision_epoch(pictures),
    }
    if dali := dali_epoch(pictures):
        ways["DALI on the CPU, 1 thread"] = dali
    taken = in_turn(ways, rounds)
    return {
        "photo_bytes": round(statistics.mean(map(len, files))),
        "pictures_per_second": {
            name: round(len(pictures) / statistics.median(spent)) for name, spent in taken.items()
        },
        "of_full_decode": round(ratio(taken, "octavolt, 1 thread", "full decode"), 3),
        "two_threads_of_one": round(ratio(taken, "octavolt, 2 threads", "octavolt, 1 thread"), 3),
        "of_torchvision": round(ratio(taken, "octavolt, 1 thread", "torchvision with Pillow"), 3),
        "of_dali": round(ratio(taken, "octavolt, 1 thread", "DALI on the CPU, 1 thread"), 3)
        if dali
        else None,
    }


def dali_epoch(pictures: Encoded) -> Callable[[], None] | None:
    """Return what DALI's CPU operators do to all pictures, or None if it isn't installed."""
    try:
        from nvidia.dali import fn, pipeline_def, types
    except ImportError:
        return None

    arrays = [np.frombuffer(pictures.read(index), np.uint8) for index in range(len(pictures))]

    @pipeline_def(batch_size=BATCH_SIZE, num_threads=1, device_id=None)
    def pipeline() -> Any:
        encoded = fn.external_source(
            source=lambda info: arrays[info.idx_in_epoch % len(arrays)], batch=False
        )
        decoded = fn.decoders.image_random_crop(
            encoded, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3]
        )
        resized = fn.resize(
            decoded, size=IMAGE_SIZE, interp_type=types.INTERP_LINEAR, antialias=False
        )
        return fn.flip(resized, horizontal=fn.random.coin_flip())

    built = pipeline()
    built.build()

    def load() -> None:
        for _ in range(len(arrays) // BATCH_SIZE):
            built.run()

    return load


def resident_bytes() -> int:
    """Return the memory that this process holds: Linux only."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def measure_memory(folder: Path, count: int, threads: int) -> dict[str, Any]:
    """Return the memory held at a tenth of the pictures and at their end."""
    pictures = Encoded(photos(folder, width=500, height=375, count=64), count)
    held: list[int] = []
    with Loader(threads=threads, ahead=3) as loader:
        for loaded in loader.batches(training(pictures), places(count)):
            if loaded.places.first % (BATCH_SIZE * 8) == 0:
                held.append(resident_bytes())
    tenth = held[len(held) // 10]
    return {
        "pictures": count,
        "at_a_tenth_bytes": tenth,
        "at_the_end_bytes": held[-1],
        "growth_fraction": round(held[-1] / tenth - 1, 4),
    }


def measure_cache(folder: Path, rounds: int, threads: int) -> dict[str, Any]:
    """Return how much faster large photos are read when they are packed."""
    large = Encoded(photos(folder, width=4000, height=3000, count=24), 24)
    with tempfile.TemporaryDirectory() as aside:
        plans: list[Any] = []
        began = time.perf_counter()
        small = packed(
            large,
            Path(aside),
            "train",
            image_size=IMAGE_SIZE,
            source_digest="benchmark",
            threads=threads,
            announce=plans.append,
        )
        built_seconds = time.perf_counter() - began
        real_bytes = (Path(aside) / "train.octavolt").stat().st_size
        ways = {
            "originals": octavolt_epoch(large, threads=1),
            "packed": octavolt_epoch(small, threads=1),
        }
        taken = in_turn(ways, rounds)
    return {
        "planned_bytes": plans[0].bytes,
        "real_bytes": real_bytes,
        "planned_seconds": round(plans[0].seconds, 2),
        "plan_and_build_seconds": round(built_seconds, 2),
        "pictures_per_second": {
            name: round(24 / statistics.median(spent), 1) for name, spent in taken.items()
        },
        "packed_of_originals": round(ratio(taken, "packed", "originals"), 2),
    }


def show(found: Mapping[str, Any], indent: str = "") -> None:
    """Print figures, one a line, for people."""
    for name, value in found.items():
        if isinstance(value, Mapping):
            print(f"{indent}{name}")
            show(value, indent + "  ")
        else:
            print(f"{indent}{name:<{32 - len(indent)}} {value}")


def main() -> None:
    """Measure what is asked for, print a table, and as the last line one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=Path, default=Path("../shared/data/coco-ccby/images"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2, help="for memory and packing")
    parser.add_argument("--memory-pictures", type=int, default=50_000)
    parser.add_argument(
        "--only",
        nargs="*",
        choices=("rates", "memory", "cache"),
        default=("rates", "memory", "cache"),
    )
    chosen = parser.parse_args()
    cv2.setNumThreads(0)
    parts = {
        "rates": lambda: measure_rates(chosen.pictures, chosen.rounds),
        "memory": lambda: measure_memory(chosen.pictures, chosen.memory_pictures, chosen.threads),
        "cache": lambda: measure_cache(chosen.pictures, chosen.rounds, chosen.threads),
    }
    found = {name: parts[name]() for name in chosen.only}
    show(found)
    if "rates" in found and found["rates"]["of_dali"] is None:
        print("DALI isn't installed (nvidia-dali-cuda120): it was left out.")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
