"""Batches of images prepared by native code: bit for bit what torch computes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gatelight import native
from gatelight.data.augment import apply_boxes, draw_boxes
from gatelight.nn import Thermometer
from gatelight.ops import set_backend
from gatelight.ops.backends.cpu import images

pytestmark = pytest.mark.skipif(native.load() is None, reason="needs the native library")

Shape = tuple[int, int, int, int]
shapes = st.tuples(st.integers(1, 6), st.integers(1, 3), st.integers(1, 40), st.integers(1, 40))


def both(compute: Callable[..., Tensor], *arguments: Tensor) -> tuple[Tensor, Tensor]:
    """The same by native code and by torch."""
    assert images.supports(arguments[0])
    fast = compute(*arguments)
    set_backend("reference")
    try:
        assert not images.supports(arguments[0])
        return fast, compute(*arguments)
    finally:
        set_backend("auto")


def made(shape: tuple[int, ...], seed: int, *, floats: bool) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if floats:
        return torch.rand(shape, generator=generator)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(0, 1_000), st.booleans(), st.booleans(), st.sampled_from([0.02, 0.5, 1.0]))
def test_resampling(shape: Shape, seed: int, floats: bool, strided: bool, smallest: float) -> None:
    x = made(shape, seed, floats=floats)
    x = x.flip(3).transpose(2, 3).contiguous().transpose(2, 3) if strided else x
    generator = torch.Generator().manual_seed(seed)
    boxes = draw_boxes(shape[0], shape[2], shape[3], generator, scale=(smallest, 1.0), ratio=(0.2, 5.0))
    fast, slow = both(apply_boxes, x, boxes)
    assert torch.equal(fast, slow)


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(0, 1_000), st.booleans(), st.booleans(), st.integers(1, 40))
def test_thermometer(shape: Shape, seed: int, floats: bool, fitted: bool, count: int) -> None:
    x = made(shape, seed, floats=floats)
    fast, slow = both(Thermometer.fit(x, count) if fitted else Thermometer.even(count), x)
    assert fast.shape == slow.shape
    assert torch.equal(fast, slow)


def test_every_byte_against_every_threshold() -> None:
    x = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    at_bytes = Thermometer(torch.arange(256) / 255)
    fast, slow = both(at_bytes, x)
    assert torch.equal(fast, slow)
    assert fast.sum() == 255 * 256 / 2


def test_planes_longer_than_a_run() -> None:
    fast, slow = both(Thermometer.even(2), made((2, 2, 50, 51), 0, floats=False))
    assert torch.equal(fast, slow)


@pytest.mark.parametrize(
    "box", [(-1, 0, 2, 2, 0), (0, 0, 0, 2, 0), (0, 5, 2, 4, 0), (3, 0, 6, 8, 1), (2**62, 0, 2**62, 1, 0)]
)
@pytest.mark.parametrize("name", ["auto", "reference"])
def test_a_box_outside_the_image_is_refused(box: tuple[int, ...], name: str) -> None:
    set_backend(name)
    try:
        with pytest.raises(ValueError, match="must lie inside the 8 x 8 pixels"):
            apply_boxes(torch.zeros(1, 1, 8, 8), torch.tensor([box]))
    finally:
        set_backend("auto")


def test_a_box_outside_the_image_never_reaches_memory() -> None:
    with pytest.raises(ValueError, match="rejected"):
        images.resample(torch.zeros(1, 1, 8, 8), torch.tensor([[7, 0, 2, 8, 0]]))


def test_boxes_of_another_kind_are_refused() -> None:
    with pytest.raises(ValueError, match=r"boxes must be int64 \[1, 5\], got torch.float32"):
        apply_boxes(torch.zeros(1, 1, 8, 8), torch.tensor([[0.0, 0, 8, 8, 0]]))


def test_what_the_kernels_leave_to_torch() -> None:
    assert not images.supports(torch.zeros(4, 7))
    assert not images.supports(torch.zeros(4, 1, 8, 8, dtype=torch.float64))
    assert not images.supports(torch.zeros(0, 1, 8, 8))
    assert Thermometer.even(2)(torch.zeros(0, 1, 8, 8)).shape == (0, 2, 8, 8)
    assert apply_boxes(torch.zeros(0, 1, 8, 8), torch.zeros(0, 5, dtype=torch.int64)).shape == (0, 1, 8, 8)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_converted_encoder_gives_the_same_bits(dtype: torch.dtype) -> None:
    x = torch.rand(4, 3, 6, 6)
    encoder = Thermometer.even(3)  # quarters, which every dtype holds
    expected = encoder(x)
    assert torch.equal(encoder.to(dtype)(x), expected)
