"""Random resized crops and flips of a batch of images, in native code or plain torch.

For training images only, and before they are encoded as bits. All random numbers of a batch are drawn first, in
:func:`draw_boxes`; :func:`apply_boxes` is then a pure function of each image and its box, so the result
is the same for any number of threads and if a batch is cut into slices.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gatelight.ops.backends.cpu import images as native

_ATTEMPTS = 10
#: Values resampled at a time on a CPU: small enough for its cache and for the allocator to reuse the memory, which
#: halves the time compared with one pass over a batch of 100 images of 3 x 32 x 32.
_CHUNK = 1 << 16


def augment(
    images: Tensor,
    generator: torch.Generator,
    *,
    flip: bool = True,
    crop: bool = True,
    scale: tuple[float, float] = (0.5, 1.0),
    ratio: tuple[float, float] = (0.8, 1.2),
) -> Tensor:
    """Crop each image at random, scale the crop back to full size (bilinear), and mirror half of them.

    Args:
        images: uint8 (scaled by 1/255) or floating point in [0, 1], [batch, channels, height, width].
        generator: The source of randomness, on the CPU.
        flip: Mirror left and right with probability 0.5.
        crop: Crop at random.
        scale: Smallest and largest share of the area that a crop covers.
        ratio: Smallest and largest width over height of a crop, drawn uniformly in its logarithm.

    Returns:
        float32 in [0, 1], [batch, channels, height, width].

    >>> images = torch.full((2, 3, 32, 32), 255, dtype=torch.uint8)
    >>> out = augment(images, torch.Generator().manual_seed(0))
    >>> out.shape, float(out.min())
    (torch.Size([2, 3, 32, 32]), 1.0)
    """
    if not isinstance(images, Tensor) or images.ndim != 4 or 0 in images.shape[1:]:
        raise ValueError(f"images must be a tensor [batch, channels, height, width], got {_described(images)}")
    batch, _, height, width = images.shape
    boxes = draw_boxes(batch, height, width, generator, flip=flip, crop=crop, scale=scale, ratio=ratio)
    return apply_boxes(images, boxes)


def draw_boxes(
    batch: int,
    height: int,
    width: int,
    generator: torch.Generator,
    *,
    flip: bool = True,
    crop: bool = True,
    scale: tuple[float, float] = (0.5, 1.0),
    ratio: tuple[float, float] = (0.8, 1.2),
) -> Tensor:
    """Draw a box for each image: int64 [batch, 5] of top, left, height, width and flip (0 or 1).

    Area and ratio are drawn until the box fits, ten times at most; then the largest central box whose ratio is
    allowed is taken. The same number of random numbers is drawn whatever the options.
    """
    for name, (low, high) in (("scale", scale), ("ratio", ratio)):
        if not 0 < low <= high < math.inf:
            raise ValueError(f"{name} must be a range of positive numbers, got ({low}, {high})")
    if scale[1] > 1:
        raise ValueError(f"scale is a share of the area, at most 1, got {scale[1]}")
    # One row for each image; in double precision, so that rounding to whole pixels meets no ties.
    drawn = torch.rand(batch, 2 * _ATTEMPTS + 3, dtype=torch.float64, generator=generator)
    boxes = torch.zeros(batch, 5, dtype=torch.int64)
    boxes[:, 2] = height
    boxes[:, 3] = width
    if crop:
        area = height * width * (scale[0] + (scale[1] - scale[0]) * drawn[:, :_ATTEMPTS])
        low, high = math.log(ratio[0]), math.log(ratio[1])
        aspect = torch.exp(low + (high - low) * drawn[:, _ATTEMPTS : 2 * _ATTEMPTS])
        w = torch.sqrt(area * aspect).round()
        h = torch.sqrt(area / aspect).round()
        fits = (w >= 1) & (w <= width) & (h >= 1) & (h <= height)
        first = fits.to(torch.int8).argmax(1, keepdim=True)
        found = fits.any(1)
        central_h, central_w = _central(height, width, ratio)
        h = torch.where(found, h.gather(1, first)[:, 0], central_h)
        w = torch.where(found, w.gather(1, first)[:, 0], central_w)
        room = torch.stack([height - h, width - w], 1)
        at = torch.where(found[:, None], drawn[:, -3:-1], 0.5)
        boxes[:, :2] = torch.where(found[:, None], at * (room + 1), at * room).long()
        boxes[:, 2] = h.long()
        boxes[:, 3] = w.long()
    if flip:
        boxes[:, 4] = drawn[:, -1] < 0.5
    return boxes


@torch.no_grad()
def apply_boxes(images: Tensor, boxes: Tensor) -> Tensor:
    """Resample each image's box to the full size, float32 [batch, channels, height, width].

    Pixel i of n reads position ``(i + 0.5) * size / n - 0.5`` of a box of the given size, clamped to the box, as
    ``torch.nn.functional.interpolate(mode="bilinear", align_corners=False)`` does.
    """
    if not isinstance(images, Tensor) or images.ndim != 4 or 0 in images.shape[1:]:
        raise ValueError(f"images must be a tensor [batch, channels, height, width], got {_described(images)}")
    batch, _, height, width = images.shape
    if boxes.shape != (batch, 5) or boxes.dtype != torch.int64:
        raise ValueError(f"boxes must be int64 [{batch}, 5], got {boxes.dtype} {list(boxes.shape)}")
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise ValueError(f"images must be uint8 or floating point, got {images.dtype}")
    corner, size = boxes[:, :2], boxes[:, 2:4]
    inside = (corner >= 0) & (size >= 1) & (corner <= torch.tensor([height, width], device=boxes.device) - size)
    if not bool(inside.all()):
        raise ValueError(f"boxes must lie inside the {height} x {width} pixels of an image")
    if native.supports(images):
        return native.resample(images, boxes)
    top, left, box_height, box_width, flip = boxes.to(images.device).unbind(1)
    rows = _positions(top, box_height, height)
    mirrored = (flip != 0)[:, None]
    low, high, share = (torch.where(mirrored, v.flip(1), v) for v in _positions(left, box_width, width))
    out = torch.empty(images.shape, dtype=torch.float32, device=images.device)
    step = max(1, _CHUNK // images[0].numel()) if batch and images.device.type == "cpu" else max(1, batch)
    for start in range(0, batch, step):
        part = slice(start, start + step)
        values = _resample_rows(_unit(images[part]), *(v[part] for v in rows))
        _resample_columns(values, low[part], high[part], share[part], out[part])
    return out


def _described(images: object) -> str:
    return str(list(images.shape)) if isinstance(images, Tensor) else type(images).__name__


def _unit(images: Tensor) -> Tensor:
    """The images as float32, bytes scaled to [0, 1]."""
    values = images.to(torch.float32)
    return values.div_(255) if images.dtype == torch.uint8 else values


def _resample_rows(values: Tensor, low: Tensor, high: Tensor, share: Tensor) -> Tensor:
    """Mix two rows of each image for every row of the result; whole rows are copied at once."""
    batch, channels, height, width = values.shape
    first_row = torch.arange(batch * channels, device=values.device).view(batch, channels, 1) * height
    rows = values.reshape(-1, width)
    upper, lower = (
        rows.index_select(0, (first_row + index[:, None]).flatten()).view(values.shape) for index in (low, high)
    )
    return _mix(upper, lower, share[:, None, :, None])


def _resample_columns(values: Tensor, low: Tensor, high: Tensor, share: Tensor, out: Tensor) -> None:
    """Mix two columns of each image for every column of the result."""
    left = values.gather(3, low[:, None, None].expand(values.shape))
    torch.gather(values, 3, high[:, None, None].expand(values.shape), out=out)
    _mix(left, out, share[:, None, None])


def _mix(first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    """``first + (second - first) * share``, in the memory of ``second``; faster than lerp on a broadcast share."""
    return second.sub_(first).mul_(share).add_(first)


def _central(height: int, width: int, ratio: tuple[float, float]) -> tuple[float, float]:
    """The largest box (height, width) with an allowed ratio."""
    if width / height < ratio[0]:
        return float(max(1, round(width / ratio[0]))), float(width)
    if width / height > ratio[1]:
        return float(height), float(max(1, round(height * ratio[1])))
    return float(height), float(width)


def _positions(start: Tensor, size: Tensor, full: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each output pixel the two input pixels it lies between and how far along, each [batch, full]."""
    step = size.to(torch.float32) / full
    at = ((torch.arange(full, dtype=torch.float32, device=start.device) + 0.5) * step[:, None] - 0.5).clamp_min_(0)
    low = at.long()
    high = torch.minimum(low + 1, size[:, None] - 1)
    return start[:, None] + low, start[:, None] + high, at - low
