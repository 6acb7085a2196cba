"""Boxes surround what they surrounded, whatever was done to the picture: at any place, anyhow."""

import base64
import math
from dataclasses import replace
from itertools import pairwise

import cv2
import numpy as np
import pytest
import simplejpeg
import torch
from numpy.typing import NDArray

from octavolt.contract import BoxPreprocessing, Places, Recipe
from octavolt.data.boxes.examples import BoxExamples, placed, together
from octavolt.data.boxes.geometry import mapped, within
from octavolt.data.boxes.layouts import GEOMETRY, learnable, trained
from octavolt.data.boxes.samples import BoxedPictures
from octavolt.data.decode import raster
from octavolt.errors import OctavoltError
from octavolt.tasks.object_detection import BoxBatch, Detections, restored

from .squares import SIZES, boxed, fits, painted, recipe, squares

ALL = recipe(
    mirror=True,
    mosaic_share=0.4,
    expand_max=3.0,
    box_crop=True,
    scale_jitter=0.5,
    color_jitter=1.0,
)
CHAINS = {
    "mirror": recipe(mirror=True),
    "expand": recipe(expand_max=4.0),
    "crop": recipe(box_crop=True),
    "scale": recipe(scale_jitter=0.5),
    "mosaic": recipe(mosaic_share=1.0),
    "color": recipe(color_jitter=1.0),
    "all": ALL,
    "multi-scale": replace(ALL, multi_scale=0.5),
}
LETTERBOX = fits()[0]


def places(first: int, stop: int, *, epoch: int = 1, seed: int = 0, count: int = 6) -> Places:
    return Places(seed=seed, epoch=epoch, first=first, indices=np.arange(first, stop) % count)


def filled(of: BoxExamples, at: Places, *, backwards: bool = False) -> BoxBatch:
    batch, jobs = of.begin(at)
    for job in jobs[::-1] if backwards else jobs:
        job()
    return batch


def mask(boxes: NDArray[np.float64], shape: tuple[int, int], *, grow: float) -> NDArray[np.bool_]:
    """Return the pixels that lie in a box, grown by so much to each side."""
    hits = np.zeros(shape, bool)
    for left, top, right, bottom in boxes.tolist():
        rows = slice(max(0, math.floor(top - grow)), max(0, math.ceil(bottom + grow)))
        columns = slice(max(0, math.floor(left - grow)), max(0, math.ceil(right + grow)))
        if grow < 0:
            rows = slice(max(0, math.ceil(top - grow)), max(0, math.floor(bottom + grow)))
            columns = slice(max(0, math.ceil(left - grow)), max(0, math.floor(right + grow)))
        hits[rows, columns] = True
    return hits


def check_surrounded(
    pictures: BoxedPictures, preprocessing: BoxPreprocessing, of: Recipe, at: Places
) -> int:
    """Compare white pixels with boxes; return how many boxes were learned."""
    batch = filled(BoxExamples(pictures, preprocessing, recipe=of), at)
    total = 0
    for turn, scene in enumerate(batch.scenes):
        pixels = batch.pixels[turn].numpy()
        layout = trained(
            pictures,
            int(at.indices[turn]),
            recipe=of,
            preprocessing=preprocessing
            if of.multi_scale == 0
            else replace(preprocessing, height=pixels.shape[0], width=pixels.shape[1]),
            random=at.random(turn, GEOMETRY),
        )
        # All boxes, those of which too little is seen to be learned among them.
        boxes = np.concatenate(
            [
                within(mapped(learnable(pictures, index)[0], tile), tile.place)
                for index, tile in layout.tiles
            ]
        )
        # White is at least 255 / 1.5 after any change of color, black stays black.
        white = pixels.min(axis=2) > 85
        # Interpolation puts the middle between black and white within half a pixel of the edge.
        assert not (white & ~mask(boxes, white.shape, grow=1)).any()
        assert not (mask(boxes, white.shape, grow=-1) & ~white).any()
        known = {tuple(box) for box in np.float32(boxes).tolist()}
        assert known >= {tuple(box) for box in scene.boxes.tolist()}
        total += len(scene.boxes)
    return total


@pytest.mark.parametrize("preprocessing", fits())
@pytest.mark.parametrize("chain", [name for name in CHAINS if name != "multi-scale"])
def test_boxes_surround_their_squares_after_any_chain(
    chain: str, preprocessing: BoxPreprocessing
) -> None:
    found = check_surrounded(squares(), preprocessing, CHAINS[chain], places(0, 36))
    assert found > 30


def test_boxes_surround_their_squares_at_all_sizes() -> None:
    seen = set()
    for first in range(0, 80, 20):
        at = places(first, first + 20)
        check_surrounded(squares(), LETTERBOX, CHAINS["multi-scale"], at)
        examples = BoxExamples(squares(), LETTERBOX, recipe=CHAINS["multi-scale"])
        seen.add(examples.begin(at)[0].pixels.shape[1])
    assert seen <= {32, 64, 96}
    assert len(seen) > 1


@pytest.mark.parametrize("preprocessing", fits(128))
def test_boxes_surround_their_squares_in_jpegs_that_are_stored_turned(
    preprocessing: BoxPreprocessing,
) -> None:
    assert check_surrounded(squares(jpeg=True), preprocessing, ALL, places(0, 40)) > 40


@pytest.mark.parametrize("preprocessing", fits())
def test_true_boxes_surround_their_squares_in_evaluation(preprocessing: BoxPreprocessing) -> None:
    batch = filled(BoxExamples(squares(), preprocessing, recipe=None), places(0, 6))
    for pixels, scene in zip(batch.pixels.numpy(), batch.scenes, strict=True):
        assert scene.truth is not None
        assert len(scene.boxes) == len(scene.labels) == 0
        frame = scene.frame
        scale = np.array([frame.scale_x, frame.scale_y] * 2)
        boxes = scene.truth.boxes.numpy() * scale + np.array([frame.left, frame.top] * 2)
        white = pixels.min(axis=2) > 127
        # Interpolation puts the middle between black and white within half a pixel of the edge.
        assert not (white & ~mask(boxes, white.shape, grow=1)).any()
        assert not (mask(boxes, white.shape, grow=-1) & ~white).any()
        found = Detections(
            boxes=torch.from_numpy(boxes), scores=torch.ones(2), labels=scene.truth.labels
        )
        # Of fp32, in which detections are.
        torch.testing.assert_close(
            restored(found, frame).boxes.double(), scene.truth.boxes, atol=1e-4, rtol=0
        )


def test_scenes_of_evaluation_name_their_samples_and_all_truths() -> None:
    pictures = boxed(
        [painted(20, 30, [])] * 2,
        [(20, 30)] * 2,
        [[(1, 1, 9, 9), (2, 2, 20, 12)], []],
        crowd=[True, False],
    )
    batch = filled(BoxExamples(pictures, LETTERBOX, recipe=None), places(0, 2, count=2))
    first, second = batch.scenes
    assert (first.index, second.index) == (0, 1)
    assert first.truth is not None
    assert first.truth.crowd.tolist() == [True, False]
    assert second.truth is not None
    assert len(second.truth.boxes) == 0


def test_crowds_are_evaluated_but_not_learned() -> None:
    pictures = boxed(
        [painted(20, 30, [])], [(20, 30)], [[(1, 1, 9, 9), (2, 2, 20, 12)]], crowd=[True, False]
    )
    batch = filled(BoxExamples(pictures, LETTERBOX, recipe=recipe()), places(0, 1, count=1))
    assert batch.scenes[0].labels.tolist() == [1]
    assert batch.scenes[0].truth is None


@pytest.mark.parametrize("cuts", [(0, 6, 12), (0, 1, 5, 12), tuple(range(13))])
def test_training_does_not_depend_on_how_a_batch_is_split(cuts: tuple[int, ...]) -> None:
    of = BoxExamples(squares(), LETTERBOX, recipe=ALL)
    whole = filled(of, places(0, 12))
    parts = [filled(of, places(first, stop)) for first, stop in pairwise(cuts)]
    assert torch.equal(torch.cat([part.pixels for part in parts]), whole.pixels)
    scenes = [scene for part in parts for scene in part.scenes]
    for one, other in zip(scenes, whole.scenes, strict=True):
        assert torch.equal(one.boxes, other.boxes)
        assert torch.equal(one.labels, other.labels)


def test_jobs_may_be_done_in_any_order() -> None:
    of = BoxExamples(squares(jpeg=True), LETTERBOX, recipe=ALL)
    forwards, backwards = filled(of, places(0, 9)), filled(of, places(0, 9), backwards=True)
    assert torch.equal(forwards.pixels, backwards.pixels)


def test_augmentation_differs_by_epoch_seed_and_position() -> None:
    of = BoxExamples(squares(), LETTERBOX, recipe=recipe(scale_jitter=0.5))
    same = np.zeros(2, np.int64)
    batches = [
        filled(of, Places(seed=seed, epoch=epoch, first=0, indices=same)).pixels
        for seed, epoch in ((0, 1), (0, 2), (1, 1))
    ]
    assert len({one.numpy().tobytes() for batch in batches for one in batch}) == 6


def test_color_does_not_change_where_pictures_lie() -> None:
    plain = replace(ALL, color_jitter=0.0)
    ours = filled(BoxExamples(squares(), LETTERBOX, recipe=ALL), places(0, 12))
    others = filled(BoxExamples(squares(), LETTERBOX, recipe=plain), places(0, 12))
    assert not torch.equal(ours.pixels, others.pixels)
    for one, other in zip(ours.scenes, others.scenes, strict=True):
        assert torch.equal(one.boxes, other.boxes)


def test_each_picture_of_a_mosaic_has_its_own_color() -> None:
    grey = np.full((40, 40, 3), 120, np.uint8)
    pictures = boxed([grey] * 4, [(40, 40)] * 4, [[]] * 4)
    of = BoxExamples(pictures, LETTERBOX, recipe=recipe(mosaic_share=1.0, color_jitter=1.0))
    levels = np.unique(filled(of, places(0, 1, count=4)).pixels[0].numpy())
    assert len(levels) == 4


@pytest.mark.parametrize("preprocessing", fits())
def test_evaluation_is_the_same_at_any_place_and_as_prediction(
    preprocessing: BoxPreprocessing,
) -> None:
    preprocessing = replace(preprocessing, padding=128)
    pictures = squares()
    of = BoxExamples(pictures, preprocessing, recipe=None)
    batch = filled(of, places(0, 6))
    again = filled(of, Places(seed=5, epoch=9, first=3, indices=np.arange(6)))
    predicted = together(
        [placed(raster(pictures.read(index)), preprocessing) for index in range(6)], preprocessing
    )
    for other in (again, predicted):
        for mine, its, one, two in zip(
            batch.pixels, other.pixels, batch.scenes, other.scenes, strict=True
        ):
            height, width = one.filled
            assert torch.equal(mine[:height, :width], its[:height, :width])
            assert (one.frame, one.filled) == (two.frame, two.filled)


def test_letterbox_is_the_usual_one_but_for_single_levels() -> None:
    """Resized by OpenCV with the aspect kept, centered on grey: what Darknet's users do."""
    pixels = np.random.default_rng(0).integers(0, 256, (70, 120, 3), dtype=np.uint8)
    slot, frame, size = placed(raster(pixels), BoxPreprocessing(height=64, width=64))
    usual = np.full((64, 64, 3), 128, np.uint8)
    usual[13:50] = cv2.resize(pixels, (64, 37))
    assert size == (64, 64)
    np.testing.assert_array_equal(slot, usual)
    assert (frame.scale_x, frame.left, frame.top) == (64 / 120, 0, 13)
    assert frame.scale_y == 37 / 70


def test_pictures_of_other_sizes_are_padded_right_and_below_to_a_multiple_of_32() -> None:
    preprocessing = BoxPreprocessing(height=40, width=70, fit="shorter-side", padding=7)
    white = [np.full((*size, 3), 255, np.uint8) for size in SIZES]
    pictures = boxed([*white], list(SIZES), [[] for _ in SIZES])
    batch = filled(BoxExamples(pictures, preprocessing, recipe=None), places(0, 6))
    # The fourth is 61 pixels high, the fifth 70 wide.
    assert batch.pixels.shape == (6, 64, 96, 3)
    for pixels, scene in zip(batch.pixels.numpy(), batch.scenes, strict=True):
        height, width = scene.filled
        assert (pixels[:height, :width] == 255).all()
        assert (pixels[height:] == 7).all()
        assert (pixels[:, width:] == 7).all()
        assert (scene.frame.left, scene.frame.top) == (0, 0)


def test_lengths_are_aspects_where_sizes_vary_and_absent_elsewhere() -> None:
    varied = BoxExamples(squares(), fits()[2], recipe=None)
    assert varied.lengths is not None
    assert varied.lengths.tolist() == [150, 67, 100, 65, 400, 142]
    assert varied.evaluation_batch_size == 4
    fixed = BoxExamples(squares(), LETTERBOX, recipe=None)
    assert fixed.lengths is None
    assert fixed.evaluation_batch_size is None


def test_a_damaged_picture_is_named() -> None:
    pictures = boxed([b"\xff\xd8\xff\xe0 no more"], [(20, 30)], [[]])
    with pytest.raises(OctavoltError, match=r"photos/0\.jpg: .*--skip-damaged"):
        filled(BoxExamples(pictures, LETTERBOX, recipe=recipe()), places(0, 1, count=1))


def test_a_picture_that_could_not_be_read_is_named_when_it_is_its_turn() -> None:
    pictures = boxed([b""], [(0, 0)], [[]])
    with pytest.raises(OctavoltError, match=r"photos/0\.jpg: the file is empty"):
        filled(BoxExamples(pictures, fits()[2], recipe=ALL), places(0, 1, count=1))


def test_a_picture_that_has_another_size_than_before_is_named() -> None:
    pictures = boxed([painted(20, 30, [])], [(30, 20)], [[]])
    with pytest.raises(OctavoltError, match="it has 30 x 20 pixels, but had 20 x 30 when"):
        filled(BoxExamples(pictures, LETTERBOX, recipe=None), places(0, 1, count=1))


def shown(encoded: dict[str, str]) -> NDArray[np.uint8]:
    pixels: NDArray[np.uint8] = simplejpeg.decode_jpeg(base64.b64decode(encoded["jpeg_base64"]))
    return pixels


def test_a_picture_is_shown_small_with_its_true_boxes() -> None:
    pictures = boxed([np.zeros((300, 640, 3), np.uint8)], [(300, 640)], [[(100, 60, 500, 240)]])
    pixels = shown(BoxExamples(pictures, LETTERBOX, recipe=None).show(0))
    assert pixels.shape == (150, 320, 3)
    green = np.argwhere(pixels[:, :, 1] > 100)
    # Half the size: from 50 to 250 and from 30 to 120, drawn three pixels wide around the edge.
    np.testing.assert_allclose(green.min(axis=0), [30, 50], atol=2)
    np.testing.assert_allclose(green.max(axis=0), [120, 250], atol=2)


def test_what_was_found_is_drawn_in_another_color() -> None:
    pictures = boxed([np.zeros((300, 640, 3), np.uint8)], [(300, 640)], [[(100, 60, 500, 240)]])
    examples = BoxExamples(pictures, LETTERBOX, recipe=None)
    marks = Detections(
        boxes=torch.tensor([[20.0, 20.0, 60.0, 280.0]]),
        scores=torch.ones(1),
        labels=torch.zeros(1, dtype=torch.int64),
    )
    pixels = shown(examples.show_marked(0, marks)).astype(int)
    red = np.argwhere(pixels[:, :, 0] - pixels[:, :, 1] > 60)
    # Of a line one pixel wide a JPEG makes colors of two.
    np.testing.assert_allclose(red.min(axis=0), [10, 10], atol=2)
    np.testing.assert_allclose(red.max(axis=0), [140, 30], atol=2)
    assert not np.argwhere(shown(examples.show(0)).astype(int)[:, :, 0] > 100).size
