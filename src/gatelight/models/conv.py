"""The convolutional layers of a network."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from gatelight.config import ModelConfig
from gatelight.models.parts import Parts
from gatelight.nn import LogicConv2d, LogicConvStack, OrPool2d
from gatelight.sizes import CDLGN, TASKS, ConvSize
from gatelight.wiring import Leaves


def conv_stack(
    size: ConvSize, image: tuple[int, int, int], k: int, config: ModelConfig, parts: Parts, generator: torch.Generator
) -> LogicConvStack:
    """Blocks of D convolutional layers and 2 x 2 pooling, as many as fit the image.

    Args:
        size: The network.
        image: Channels, height and width of the encoded images.
        k: Channels of the first block.
        config: Gives the depth scale D, the depth of trees and the channels that a tree reads.
        parts: What the layers are made of.
        generator: Draws everything.
    """

    def modules() -> Iterator[LogicConv2d | OrPool2d]:
        channels, height, width = image
        for block, factor in enumerate(size.factors):
            for layer in range(config.depth_scale):
                window = size.first_window if block == layer == 0 else 3
                padding = 0 if window == 5 else 1
                height, width = height + 2 * padding - window + 1, width + 2 * padding - window + 1
                # The first block of a gray image has only one channel.
                group = None if config.channels_per_tree is None else min(config.channels_per_tree, channels)
                yield LogicConv2d(
                    channels,
                    k * factor,
                    window,
                    tree_depth=config.tree_depth,
                    padding=padding,
                    parametrization=parts.parametrization,
                    init=parts.init,
                    wiring=Leaves(group),
                    seed=int(torch.randint(0, 1 << 62, (), generator=generator)),
                )
                channels = k * factor
            yield OrPool2d(2)
            height, width = height // 2, width // 2
            if min(height, width) < 2:
                return

    return LogicConvStack(modules())


def encoded_image(dataset: str, shape: tuple[int, ...], planes: int) -> tuple[int, int, int]:
    """Channels, height and width of the encoded images of a task."""
    if len(shape) != 3 or min(shape[1:]) < 4 or (dataset in TASKS and dataset not in CDLGN):
        raise ValueError(f"the model cdlgn needs images of at least 4 x 4 pixels, but a sample of {dataset} is {shape}")
    return shape[0] * planes, shape[1], shape[2]
