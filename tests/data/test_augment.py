from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from gatelight.data.augment import apply_boxes, augment, draw_boxes


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_images(*shape: int) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=rng(7))


def one_by_one(images: Tensor, boxes: Tensor) -> Tensor:
    """The same with a loop and torch's own resampling."""
    size = images.shape[2:]
    out = []
    for image, (top, left, height, width, flip) in zip(images, boxes.tolist(), strict=True):
        part = image[None, :, top : top + height, left : left + width].float() / 255
        full = interpolate(part, size=size, mode="bilinear", align_corners=False)
        out.append(full.flip(3) if flip else full)
    return torch.cat(out)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("shape", [(40, 3, 32, 32), (9, 1, 28, 28), (5, 2, 7, 12), (3, 1, 1, 1), (4, 3, 20, 3)])
def test_equals_the_slow_loop(shape: tuple[int, int, int, int]) -> None:
    images = random_images(*shape)
    boxes = draw_boxes(shape[0], shape[2], shape[3], rng(1), scale=(0.1, 1.0))
    torch.testing.assert_close(apply_boxes(images, boxes), one_by_one(images, boxes), rtol=0, atol=1e-6)


def test_whole_box_is_the_image_itself() -> None:
    images = random_images(4, 3, 9, 11)
    whole = draw_boxes(4, 9, 11, rng(), crop=False, flip=False)
    assert whole.tolist() == [[0, 0, 9, 11, 0]] * 4
    assert torch.equal(apply_boxes(images, whole), images.float() / 255)
    whole[:, 4] = 1
    assert torch.equal(apply_boxes(images, whole), images.flip(3).float() / 255)


def test_boxes_have_the_asked_area_and_ratio_and_lie_inside() -> None:
    boxes = draw_boxes(4000, 32, 32, rng(), scale=(0.5, 1.0), ratio=(0.8, 1.2)).double()
    top, left, height, width, flip = boxes.unbind(1)
    assert top.min() == 0
    assert left.min() == 0
    assert (top + height).max() == 32
    assert (left + width).max() == 32
    area, ratio = height * width / 1024, width / height
    # half a pixel on each side
    assert area.min() > 0.5 - 0.04
    assert area.mean() == pytest.approx(0.73, abs=0.02)
    assert ratio.min() > 0.8 - 0.05
    assert ratio.max() < 1.2 + 0.06
    assert ratio.log().mean() == pytest.approx((math.log(0.8) + math.log(1.2)) / 2, abs=0.02)
    assert flip.mean() == pytest.approx(0.5, abs=0.03)


def test_positions_are_uniform() -> None:
    boxes = draw_boxes(3000, 10, 10, rng(), scale=(0.25, 0.25), ratio=(1.0, 1.0))
    assert boxes[:, 2:4].unique().tolist() == [5]
    counts = torch.bincount(boxes[:, 0], minlength=6)
    assert counts.tolist() == pytest.approx([500] * 6, rel=0.2)


def test_a_box_that_never_fits_becomes_the_central_one() -> None:
    # 16 x 4 pixels: a ratio near 1 cannot cover the whole area.
    wide = draw_boxes(3, 4, 16, rng(), scale=(1.0, 1.0), ratio=(0.9, 1.1), flip=False)
    assert wide.tolist() == [[0, 6, 4, 4, 0]] * 3
    tall = draw_boxes(3, 16, 4, rng(), scale=(1.0, 1.0), ratio=(0.9, 1.1), flip=False)
    assert tall.tolist() == [[6, 0, 4, 4, 0]] * 3


def test_same_bits_for_any_number_of_threads(threads: None) -> None:
    images = random_images(100, 3, 32, 32)
    results = []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        results.append(augment(images, rng(5)))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_a_slice_is_the_slice_of_the_whole() -> None:
    images = random_images(20, 3, 16, 16)
    boxes = draw_boxes(20, 16, 16, rng(2))
    whole = apply_boxes(images, boxes)
    assert torch.equal(whole, augment(images, rng(2)))
    for part in (slice(0, 7), slice(7, 8), slice(8, 20)):
        assert torch.equal(apply_boxes(images[part], boxes[part]), whole[part])


def test_options_do_not_shift_the_random_numbers() -> None:
    both = draw_boxes(50, 32, 32, rng(3))
    assert torch.equal(draw_boxes(50, 32, 32, rng(3), flip=False)[:, :4], both[:, :4])
    assert torch.equal(draw_boxes(50, 32, 32, rng(3), crop=False)[:, 4], both[:, 4])
    assert not torch.equal(draw_boxes(50, 32, 32, rng(4)), both)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_output_is_float32_in_the_unit_range(dtype: torch.dtype) -> None:
    images = random_images(30, 3, 8, 8)
    out = augment(images if dtype == torch.uint8 else (images > 127).to(dtype), rng())
    assert out.dtype == torch.float32
    assert out.min() >= 0
    assert out.max() <= 1
    assert out.std() > 0.1


def test_input_is_left_alone() -> None:
    images = random_images(5, 3, 8, 8).float() / 255
    before = images.clone()
    augment(images, rng())
    assert torch.equal(images, before)
    assert augment(images[:0], rng()).shape == (0, 3, 8, 8)


def test_wrong_arguments_are_refused() -> None:
    images = random_images(2, 3, 8, 8)
    with pytest.raises(ValueError, match="images must be a tensor"):
        augment(images[0], rng())
    with pytest.raises(ValueError, match=r"uint8 or floating point, got torch\.int64"):
        augment(images.long(), rng())
    with pytest.raises(ValueError, match="scale must be a range"):
        augment(images, rng(), scale=(1.0, 0.5))
    with pytest.raises(ValueError, match="at most 1"):
        augment(images, rng(), scale=(0.5, 1.5))
    with pytest.raises(ValueError, match="ratio must be a range"):
        augment(images, rng(), ratio=(0.0, 1.0))
    with pytest.raises(ValueError, match=r"boxes must be int64 \[2, 5\]"):
        apply_boxes(images, torch.zeros(3, 5, dtype=torch.int64))
