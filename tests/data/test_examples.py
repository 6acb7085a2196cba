"""A picture's augmentation follows from its place alone: never of its batch, thread or rank."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from octavolt.contract import Places, Preprocessing
from octavolt.data.decode import decode
from octavolt.data.examples import Augmentation, PictureExamples
from octavolt.errors import OctavoltError
from octavolt.tasks.image_classification import PictureBatch

from .memory import MemoryPictures, photos

SIZE = 16
COUNT = 12


def places(first: int, stop: int, *, epoch: int = 1, seed: int = 0) -> Places:
    return Places(seed=seed, epoch=epoch, first=first, indices=np.arange(first, stop) % COUNT)


def examples(
    augmentation: Augmentation | None = None, pictures: MemoryPictures | None = None
) -> PictureExamples:
    return PictureExamples(
        pictures or photos(COUNT),
        Preprocessing(image_size=SIZE),
        class_count=3,
        augmentation=augmentation,
    )


def filled(of: PictureExamples, at: Places, *, backwards: bool = False) -> PictureBatch:
    batch, jobs = of.begin(at)
    for job in jobs[::-1] if backwards else jobs:
        job()
    return batch


def test_batch_has_a_slot_and_a_label_for_each_place() -> None:
    batch = filled(examples(), places(4, 9))
    assert batch.pixels.shape == (5, SIZE, SIZE, 3)
    assert batch.labels.tolist() == [1, 2, 0, 1, 2]


def test_jobs_may_be_done_in_any_order() -> None:
    of = examples(Augmentation())
    forwards, backwards = filled(of, places(0, 8)), filled(of, places(0, 8), backwards=True)
    assert torch.equal(forwards.pixels, backwards.pixels)


@pytest.mark.parametrize("cuts", [(0, 6, 12), (0, 2, 4, 10, 12), tuple(range(0, 13, 2))])
def test_pixels_and_targets_do_not_depend_on_how_a_batch_is_split(cuts: tuple[int, ...]) -> None:
    of = examples(Augmentation(mixup_alpha=0.4, label_smoothing=0.1))
    cpu = torch.device("cpu")
    whole = filled(of, places(0, 12)).to(cpu)
    parts = [filled(of, places(first, stop)).to(cpu) for first, stop in pairwise(cuts)]
    assert torch.equal(torch.cat([part.images for part in parts]), whole.images)
    assert torch.equal(torch.cat([part.targets for part in parts]), whole.targets)


def test_augmentation_differs_by_epoch_seed_and_position() -> None:
    of = examples(Augmentation())
    same = np.zeros(2, np.int64)
    batches = [
        filled(of, Places(seed=seed, epoch=epoch, first=0, indices=same)).pixels
        for seed, epoch in ((0, 1), (0, 2), (1, 1))
    ]
    pictures = {picture.numpy().tobytes() for batch in batches for picture in batch}
    assert len(pictures) == 6


def test_evaluation_is_the_same_at_any_place() -> None:
    one = filled(examples(), Places(seed=0, epoch=1, first=0, indices=np.array([7])))
    other = filled(examples(), Places(seed=5, epoch=9, first=3, indices=np.array([7])))
    assert torch.equal(one.pixels, other.pixels)


def test_picture_of_just_the_size_is_left_as_it_is() -> None:
    pictures = photos(1, height=SIZE, width=SIZE)
    of = PictureExamples(pictures, Preprocessing(image_size=SIZE, crop_fraction=1.0), class_count=3)
    batch = filled(of, Places(seed=0, epoch=0, first=0, indices=np.array([0])))
    assert np.array_equal(batch.pixels[0].numpy(), decode(pictures.files[0]))


def test_half_the_pictures_are_mirrored_if_asked() -> None:
    pictures = photos(1, height=SIZE, width=SIZE)
    same = np.zeros(40, np.int64)
    at = Places(seed=0, epoch=1, first=0, indices=same)
    seen = {
        mirror: {
            picture.numpy().tobytes()
            for picture in filled(
                examples(Augmentation(crop_scale_min=1.0, mirror=mirror), pictures), at
            ).pixels
        }
        for mirror in (False, True)
    }
    assert len(seen[False]) == 1
    assert len(seen[True]) == 2


def test_crops_are_the_same_with_and_without_mixup() -> None:
    with_mixup = filled(examples(Augmentation(mixup_alpha=0.4)), places(0, 8))
    without = filled(examples(Augmentation()), places(0, 8))
    assert torch.equal(with_mixup.pixels, without.pixels)


def test_partners_mix_by_shares_that_add_up() -> None:
    """Where 2k keeps s, 2k + 1 keeps s too: its own label has s, its partner's 1 - s."""
    batch = filled(examples(Augmentation(mixup_alpha=0.4)), places(0, 4))
    assert batch.own_share is not None
    assert batch.own_share[0] == batch.own_share[1]
    assert batch.own_share[2] == batch.own_share[3] != batch.own_share[0]
    targets = batch.to(torch.device("cpu")).targets
    share = batch.own_share[0]
    assert_close(targets[0], torch.stack([share, 1 - share, torch.tensor(0.0)]))


def test_last_picture_of_an_odd_epoch_stays_itself() -> None:
    of = examples(Augmentation(mixup_alpha=0.4), photos(5))
    batch = filled(of, Places(seed=0, epoch=1, first=2, indices=np.array([0, 1, 4])))
    assert batch.own_share is not None
    assert batch.own_share[2] == 1
    plain = filled(
        examples(Augmentation(), photos(5)),
        Places(seed=0, epoch=1, first=2, indices=np.array([0, 1, 4])),
    )
    cpu = torch.device("cpu")
    assert_close(batch.to(cpu).images[2], plain.to(cpu).images[2], rtol=0, atol=0)


@pytest.mark.parametrize(("first", "stop"), [(1, 5), (0, 3)])
def test_mixup_refuses_batches_that_part_partners(first: int, stop: int) -> None:
    of = examples(Augmentation(mixup_alpha=0.4))
    with pytest.raises(OctavoltError) as raised:
        of.begin(places(first, stop))
    assert str(raised.value) == (
        f"Mixup pairs neighbours, but a batch holds {stop - first} pictures from position {first} "
        "on. Use an even batch size."
    )


def test_damaged_picture_is_named_with_what_to_do() -> None:
    pictures = photos(COUNT)
    pictures.files[3] = b""
    with pytest.raises(OctavoltError) as raised:
        filled(examples(pictures=pictures), places(0, 8))
    assert str(raised.value) == (
        "photos/3.jpg: the file is empty. Mend or remove it; a training leaves damaged pictures "
        "out with --skip-damaged."
    )


def test_dark_scans_of_sixteen_bits_are_spread_by_the_white_level() -> None:
    pictures = MemoryPictures([np.full((SIZE, SIZE), 4000, np.uint16)], [0])
    of = PictureExamples(pictures, Preprocessing(image_size=SIZE, white_level=4000), class_count=1)
    batch = filled(of, Places(seed=0, epoch=0, first=0, indices=np.array([0])))
    assert int(batch.pixels.min()) == 255
