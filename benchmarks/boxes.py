"""Detection on a CPU: OpenCV's Darknet reader beside ours, and torchvision's training beside ours.

    python benchmarks/boxes.py --cfg yolov3-tiny.cfg --weights yolov3-tiny.weights --data coco-ccby
    python benchmarks/boxes.py --train bccd-voc

The first needs OpenCV 4: OpenCV 5 reads no Darknet files. It compares the average precision of both
networks' boxes, by pycocotools on OpenCV's and by our own score on ours, and the time for a picture
that is decoded and letterboxed already: forward pass, decoding and suppression. The second trains
SSDLite in three loops in turn over real pictures:

ours        octavolt's loader and `train_steps`, with what the policy chooses for this machine
bare        torchvision's module in a loop written by hand: the same precision, memory format,
            optimizer and batches, already decoded
torchvision the way of its references: Pillow, fp32, NCHW, SGD, pictures resized by the network

The last line of output is one JSON document. Ratios are medians over the rounds.
"""

import argparse
import contextlib
import io
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image
from torchvision.models.detection import ssdlite320_mobilenet_v3_large
from torchvision.transforms.functional import hflip, to_tensor

from octavolt.contract import Places, Shape
from octavolt.data.boxes.examples import BoxExamples
from octavolt.data.boxes.opened import open_boxes
from octavolt.data.loader import Loader
from octavolt.data.order import epoch_order
from octavolt.data.relabel import joined
from octavolt.devices import Machine, set_up, this_machine
from octavolt.networks import ssd
from octavolt.networks.darknet import DarknetDetector, read_cfg, read_weights
from octavolt.networks.opened import placed
from octavolt.networks.torchvision_detector import targets_of
from octavolt.tasks.average_precision import DetectionScore
from octavolt.tasks.object_detection import DetectionBatch, Detections, Limits
from octavolt.train.loop import train_steps
from octavolt.train.optimizers import build_optimizer
from octavolt.train.state import TrainState

LIMITS = Limits(score=0.2, overlap=0.45, most=100)
"""OpenCV's reader leaves out what is below 0.2."""


def batches_of(examples: BoxExamples) -> Iterator[DetectionBatch]:
    """Yield the pictures one by one, letterboxed."""
    for index in range(len(examples)):
        places = Places(seed=0, epoch=0, first=index, indices=np.array([index], dtype=np.int64))
        batch, jobs = examples.begin(places)
        for job in jobs:
            job()
        yield batch.to(torch.device("cpu"))


def opencv_detections(net: Any, names: Any, blob: np.ndarray, limits: Limits) -> Detections:
    """Return what OpenCV finds in one picture, in pixels of the input."""
    net.setInput(blob)
    rows = np.concatenate(net.forward(names))
    side = np.array([blob.shape[3], blob.shape[2]] * 2, np.float32)
    boxes, scores, labels = [], [], []
    found, kinds = np.nonzero(rows[:, 5:] > limits.score)
    values = rows[found, 5 + kinds]
    middle = rows[found, :4] * side
    corners = np.concatenate([middle[:, :2] - middle[:, 2:] / 2, middle[:, 2:]], axis=1)
    for kind in np.unique(kinds).tolist():
        own = np.flatnonzero(kinds == kind)
        keep = cv2.dnn.NMSBoxes(
            corners[own].tolist(), values[own].tolist(), limits.score, limits.overlap
        )
        for row in own[np.array(keep, int).reshape(-1)].tolist():
            left, top, width, height = corners[row].tolist()
            boxes.append([left, top, left + width, top + height])
            scores.append(float(values[row]))
            labels.append(kind)
    order = np.argsort(-np.array(scores), kind="stable")[: limits.most].tolist()
    return Detections(
        boxes=torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4)[order],
        scores=torch.tensor(scores, dtype=torch.float32)[order],
        labels=torch.tensor(labels, dtype=torch.int64)[order],
    )


def by_pycocotools(score: DetectionScore, classes: int) -> float:
    """Return pycocotools' AP50 of the boxes of a score."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    table = score.table()
    areas = table.true[:, 8].copy().view(np.float64)
    true = table.true[:, 4:8].copy().view(np.float64)
    fractions = table.found[:, 2:].astype(np.int32).view(np.float32).astype(np.float64)
    scores, found = fractions[:, 0], fractions[:, 1:]
    data = COCO()
    data.dataset = {
        "images": [{"id": int(one)} for one in table.pictures],
        "categories": [{"id": one} for one in range(classes)],
        "annotations": [
            {
                "id": number,
                "image_id": int(row[0]),
                "category_id": int(row[1]),
                "bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]],
                "area": area,
                "iscrowd": int(row[2]),
            }
            for number, (row, box, area) in enumerate(
                zip(table.true, true.tolist(), areas.tolist(), strict=True), 1
            )
        ],
    }
    results = [
        {
            "image_id": int(row[0]),
            "category_id": int(row[1]),
            "bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]],
            "score": float(value),
        }
        for row, box, value in zip(table.found, found.tolist(), scores, strict=True)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        data.createIndex()
        evaluation = COCOeval(data, data.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(evaluation.stats[1])


def beside_opencv(arguments: argparse.Namespace, machine: Machine) -> dict[str, Any]:
    """Return average precisions and times of both readers."""
    if not hasattr(cv2.dnn, "readNetFromDarknet"):
        return {"skipped": f"OpenCV {cv2.__version__} reads no Darknet files"}
    config = read_cfg(Path(arguments.cfg))
    network = DarknetDetector(config)
    network.body.load_state_dict(read_weights(Path(arguments.weights), config))
    network.limits = LIMITS
    network = placed(network, machine).eval()
    cv2.setNumThreads(machine.threads)
    net = cv2.dnn.readNetFromDarknet(arguments.cfg, arguments.weights)
    names = net.getUnconnectedOutLayersNames()
    data = open_boxes(arguments.data, seed=0)
    entry_input = replace(ssd.SSD300.preprocessing, height=config.height, width=config.width)
    preprocessing = replace(entry_input, fit="letterbox", padding=128)
    pictures = joined([*data.splits.values()])
    batches = [*batches_of(BoxExamples(pictures, preprocessing, recipe=None))]
    blobs = [np.ascontiguousarray(one.images.numpy()) for one in batches]

    def ours(precision: str) -> Callable[[DetectionBatch], list[Detections]]:
        def run(batch: DetectionBatch) -> list[Detections]:
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                return network.decode(network(*batch.inputs))

        return run

    result: dict[str, Any] = {"pictures": len(batches), "opencv": cv2.__version__}
    with torch.inference_mode():
        scores = {name: DetectionScore(data.classes) for name in ("fp32", "bf16", "opencv")}
        for batch, blob in zip(batches, blobs, strict=True):
            for precision in ("fp32", "bf16"):
                scores[precision].update(ours(precision)(batch), batch)
            scores["opencv"].update([opencv_detections(net, names, blob, LIMITS)], batch)
        result["ap50"] = {
            "opencv, pycocotools": by_pycocotools(scores["opencv"], len(data.classes)),
            "fp32": scores["fp32"].result()["ap50"],
            "bf16": scores["bf16"].result()["ap50"],
        }
        times: dict[str, list[float]] = {name: [] for name in scores}
        for batch, blob in islice(cycle(zip(batches, blobs, strict=True)), arguments.rounds):
            for name, taken in times.items():
                began = time.perf_counter()
                if name == "opencv":
                    opencv_detections(net, names, blob, LIMITS)
                else:
                    ours(name)(batch)
                taken.append(time.perf_counter() - began)
    for name in ("fp32", "bf16"):
        ratios = [one / own for one, own in zip(times["opencv"], times[name], strict=True)]
        result[f"{name} against opencv"] = statistics.median(ratios)
    result["milliseconds"] = {
        name: 1000 * statistics.median(values) for name, values in times.items()
    }
    return result


def endless_places(examples: BoxExamples, batch: int) -> Iterator[Places]:
    """Yield full batches without end."""
    for epoch in range(1, 10**6):
        order = epoch_order(len(examples), seed=0, epoch=epoch)
        for first in range(0, len(order) - batch + 1, batch):
            yield Places(seed=0, epoch=epoch, first=first, indices=order[first : first + batch])


def state_for(machine: Machine, classes: int) -> TrainState:
    """Return SSDLite in training."""
    torch.manual_seed(0)
    shape = Shape(task="object-detection", classes=classes)
    network = placed(ssd.SSDLITE.build(shape), machine).train()
    return TrainState(
        network=network,
        optimizer=build_optimizer(network.named_parameters(), ssd.SSDLITE.recipes["published"]),
        scaler=torch.amp.GradScaler("cpu", enabled=False),
        precision=machine.policy.precision,
        device=machine.device,
    )


def bare(machine: Machine, classes: int, batches: list[Any]) -> Callable[[int], None]:
    """Return a loop by hand around torchvision's own module, over decoded batches."""
    torch.manual_seed(0)
    body = ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=classes + 1
    )
    body = body.to(memory_format=torch.channels_last).train()
    body.transform.resize = lambda image, target: (image, target)
    optimizer = torch.optim.SGD(body.parameters(), lr=1e-3, momentum=0.9, weight_decay=4e-5)
    turns = cycle(batches)
    narrow = machine.policy.precision == "bf16"

    def steps(count: int) -> None:
        for _ in range(count):
            _, batch = next(turns)
            ready = batch.to(torch.device("cpu"))
            with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
                losses = body([*ready.images], targets_of(ready.scenes))
            loss = torch.stack([*losses.values()]).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()

    return steps


def torchvisions(pictures: Any, classes: int, batch: int) -> Callable[[int], None]:
    """Return the loop of torchvision's references: fp32, NCHW, SGD, pictures by Pillow."""
    torch.manual_seed(0)
    body = ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=classes + 1
    ).train()
    optimizer = torch.optim.SGD(body.parameters(), lr=1e-3, momentum=0.9, weight_decay=4e-5)
    random = np.random.default_rng(0)

    def example() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        index = int(random.integers(len(pictures)))
        with Image.open(io.BytesIO(pictures.read(index))) as image:
            tensor = to_tensor(image.convert("RGB"))
        truth = pictures.truth(index)
        boxes = truth.boxes.float()
        if random.random() < 0.5:
            tensor = hflip(tensor)
            boxes = torch.stack(
                [
                    tensor.shape[2] - boxes[:, 2],
                    boxes[:, 1],
                    tensor.shape[2] - boxes[:, 0],
                    boxes[:, 3],
                ],
                dim=1,
            )
        return tensor, {"boxes": boxes, "labels": truth.labels + 1}

    def steps(count: int) -> None:
        for _ in range(count):
            images, targets = zip(*[example() for _ in range(batch)], strict=True)
            losses = body([*images], [*targets])
            loss = torch.stack([*losses.values()]).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()

    return steps


def training(arguments: argparse.Namespace, machine: Machine) -> dict[str, Any]:
    """Return the medians of the three loops."""
    data = open_boxes(arguments.train, seed=0)
    pictures = data.splits["train"]
    recipe = replace(ssd.SSDLITE.recipes["small-data"], batch_size=arguments.batch)
    examples = BoxExamples(pictures, ssd.SSDLITE.preprocessing, recipe=recipe)
    classes, batch = len(data.classes), arguments.batch
    with Loader(threads=machine.threads, ahead=machine.ahead) as loader:
        decoded = [
            (one.places, one.batch)
            for one in islice(loader.batches(examples, endless_places(examples, batch)), 4)
        ]
        loaded = loader.batches(examples, endless_places(examples, batch))
        own = train_steps(
            state_for(machine, classes),
            ([(one.places, one.batch)] for one in loaded),
            lambda _: 1e-3,
        )
        loops: dict[str, Callable[[int], None]] = {
            "ours": lambda count: [None for _ in islice(own, count)] and None,
            "bare": bare(machine, classes, decoded),
            "torchvision": torchvisions(pictures, classes, batch),
        }
        times: dict[str, list[float]] = {name: [] for name in loops}
        for steps in loops.values():
            steps(1)
        for _ in range(arguments.rounds):
            for name, steps in loops.items():
                began = time.perf_counter()
                steps(1)
                times[name].append(time.perf_counter() - began)
    rates = {name: batch / statistics.median(values) for name, values in times.items()}
    return {
        "pictures_per_second": rates,
        **{
            f"ours against {name}": statistics.median(
                one / own for one, own in zip(times[name], times["ours"], strict=True)
            )
            for name in ("bare", "torchvision")
        },
    }


def main() -> None:
    """Run what was asked for and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cfg")
    parser.add_argument("--weights")
    parser.add_argument("--data", help="Pictures with the classes of the weights.")
    parser.add_argument("--train", help="Pictures with boxes to train SSDLite on.")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", type=int, default=16)
    arguments = parser.parse_args()
    machine = this_machine()
    set_up(machine)
    result: dict[str, Any] = {"torch": torch.__version__, "threads": machine.threads}
    result["precision"] = machine.policy.precision
    if arguments.cfg:
        result["opencv"] = beside_opencv(arguments, machine)
    if arguments.train:
        result["training"] = training(arguments, machine)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
