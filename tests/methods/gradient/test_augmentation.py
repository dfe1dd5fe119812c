"""Random changes of images: what they keep, what they change, and that all is drawn from a generator."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from aircl.methods.gradient.augmentation import OPERATIONS, cut_mix, rand_augment, random_crops  # noqa: E402


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def pixels():
    return torch.randint(256, (40, 3, 16, 16), generator=seeded(), dtype=torch.uint8)


def test_a_crop_is_a_part_of_the_image_of_the_asked_area():
    """Of a picture of places, the least and the largest say which part was cut out."""
    ramp = ((torch.arange(64) + 0.5) / 64).expand(64, 64)
    places = torch.stack([ramp, ramp.T]).expand(500, -1, -1, -1)
    crops = random_crops(places, seeded(), flip=True)
    step = crops[:, 0, :, 1:] - crops[:, 0, :, :-1]
    width = 64 * step.flatten(1).median(1).values
    height = 64 * (crops[:, 1, 1:] - crops[:, 1, :-1]).flatten(1).median(1).values
    area = (width.abs() * height).numpy()
    assert 0.45 < (width < 0).float().mean() < 0.55  # mirrored
    assert (height > 0).all()
    assert 0.03 < area.min() < 0.12
    assert area.max() > 0.85
    ratio = (width.abs() / height).numpy()
    assert 0.7 < ratio.min() < 0.8
    assert 1.25 < ratio.max() < 1.4
    assert crops.min() >= 0
    assert crops.max() <= 1
    assert (random_crops(places, seeded(), flip=False)[:, 0].diff(dim=-1) >= 0).all()


def test_a_mix_has_as_much_of_its_partner_as_it_says(pixels):
    images = pixels.float()
    for seed in range(20):
        mixed, partners, share = cut_mix(images, seeded(seed))
        own = (mixed == images).all(1)
        theirs = (mixed == images[partners]).all(1)
        assert (own | theirs).all()
        others = partners != torch.arange(40)
        assert own[others].float().mean() == pytest.approx(share, abs=0.01)
    assert torch.equal(images, pixels.float())


def test_every_operation_changes_images_but_for_the_first_and_stays_in_range(pixels):
    images, strength = pixels.float() / 255, torch.full((40,), 0.3)
    for number, operation in enumerate(OPERATIONS):
        changed = operation(images.clone(), strength).clamp(0, 1)
        assert changed.shape == images.shape
        assert torch.equal(changed, images) == (number == 0), number
    dim = images * 0.5
    np.testing.assert_allclose(OPERATIONS[12](dim, strength).amax((2, 3)), 1, atol=1e-6)


def test_two_random_changes_are_the_same_for_the_same_seed_and_change_most_images(pixels):
    one, again, other = (rand_augment(pixels, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert one.min() >= 0
    assert one.max() <= 255
    same = (one.round() == pixels).flatten(1).all(1).float().mean()
    assert same < 0.2  # identity twice: 1 of 196, and what changes nothing
    torch.testing.assert_close(rand_augment(pixels, seeded(1), changes=0), pixels.float())
