"""Native kernels that prepare batches of images: the same bits as torch computes, several times as fast."""

from __future__ import annotations

import torch
from torch import Tensor

from gatelight.ops import dispatch
from gatelight.ops.backends.cpu.library import call_alone
from gatelight.ops.backends.cpu.memory import empty
from gatelight.ops.transforms import is_symbolic, is_transformed


def supports(images: Tensor) -> bool:
    """Whether the kernels prepare a batch [batch, channels, ...]: float32 or uint8 images on the CPU."""
    if images.ndim < 3 or images.numel() == 0 or is_symbolic(images) or is_transformed(images):
        return False
    readable = images.dtype in (torch.uint8, torch.float32) and images.device.type == "cpu"
    return readable and dispatch.get_backend() == "cpu"


def resample(images: Tensor, boxes: Tensor) -> Tensor:
    """See :func:`gatelight.data.augment.apply_boxes`."""
    images, boxes = images.contiguous(), boxes.cpu().contiguous()
    batch, channels, height, width = images.shape
    out = empty(batch, channels * height * width).view(images.shape)
    is_bytes = images.dtype == torch.uint8
    pointers = boxes.data_ptr(), out.data_ptr()
    call_alone("gl_resample", images.data_ptr(), is_bytes, batch, channels, height, width, *pointers)
    return out


def thermometer(x: Tensor, thresholds: Tensor) -> Tensor:
    """Bits ``x > t`` of images [batch, channels, ...] for thresholds [k] or [channels, k]; uint8 is divided by 255."""
    if not thresholds.is_cpu or thresholds.dtype != torch.float32:
        raise ValueError(f"thresholds must be float32 on the CPU, got {thresholds.dtype} on {thresholds.device}")
    x, thresholds = x.contiguous(), thresholds.contiguous()
    (batch, channels), count = x.shape[:2], thresholds.shape[-1]
    out = empty(batch, count * x[0].numel()).view(batch, channels * count, *x.shape[2:])
    sizes = batch, channels, x[0, 0].numel()
    stride = count if thresholds.ndim == 2 else 0
    limits = thresholds.data_ptr(), count, stride
    call_alone("gl_thermometer", x.data_ptr(), x.dtype == torch.uint8, *sizes, *limits, out.data_ptr())
    return out
