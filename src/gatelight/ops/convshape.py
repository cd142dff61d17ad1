"""The geometry of a convolutional logic layer: window, tree and pooling, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatelight import truthtable

#: Larger trees are a mistake and would not fit in memory.
MAX_LEVELS = 64
MAX_LEAVES = 1 << 20


@dataclass(frozen=True)
class ConvShape:
    """A layer of trees of gates over the windows of an image, with max-pooling after it.

    A tree of arity n and depth d has n**d leaves. Its gates are stored from the root, level by level: gate i reads
    the nodes ``n i + 1 ... n i + n``, and nodes from ``tree_gates`` are the leaves.

    >>> shape = ConvShape(channels=3, height=8, width=8, kernel=3, padding=1, pool=2)
    >>> shape.leaves, shape.tree_gates, shape.out_height, shape.out_width
    (8, 7, 4, 4)

    Attributes:
        channels: Channels of the input.
        height: Height of the input, in pixels.
        width: Width of the input, in pixels.
        kernel: Side of the window.
        padding: Zeros around the image.
        stride: Steps between windows.
        depth: Levels of gates in a tree.
        arity: Inputs of a gate.
        pool: Side of the pooling window, which moves by its side; 1 means none. Incomplete windows are dropped.
    """

    channels: int
    height: int
    width: int
    kernel: int
    padding: int = 0
    stride: int = 1
    depth: int = 3
    arity: int = 2
    pool: int = 1

    def __post_init__(self) -> None:
        truthtable.check_arity(self.arity)
        for name in ("channels", "height", "width", "kernel", "stride", "depth", "pool"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.depth > MAX_LEVELS or self.arity**self.depth > MAX_LEAVES:
            raise ValueError(
                f"a tree of depth {self.depth} and arity {self.arity} is too large: more than a million leaves"
            )
        if self.padding < 0:
            raise ValueError(f"padding must not be negative, got {self.padding}")
        if self.out_height < 1 or self.out_width < 1:
            raise ValueError(
                f"an image of {self.height} x {self.width} with padding {self.padding} is too small for a window of "
                f"{self.kernel} x {self.kernel} and pooling of {self.pool} x {self.pool}"
            )

    @property
    def leaves(self) -> int:
        """Leaves of a tree."""
        return int(self.arity**self.depth)

    @property
    def tree_gates(self) -> int:
        """Gates of a tree."""
        return sum(int(self.arity**level) for level in range(self.depth))

    @property
    def window_inputs(self) -> int:
        """Values a tree may read: those of its window in every channel."""
        return self.channels * self.kernel * self.kernel

    @property
    def out_height(self) -> int:
        """Pixels of the pooled output from top to bottom."""
        return ((self.height + 2 * self.padding - self.kernel) // self.stride + 1) // self.pool

    @property
    def out_width(self) -> int:
        """Pixels of the pooled output from left to right."""
        return ((self.width + 2 * self.padding - self.kernel) // self.stride + 1) // self.pool

    @property
    def positions(self) -> int:
        """Windows at which a tree is evaluated."""
        return self.out_height * self.out_width * self.pool * self.pool

    def leaf_pixels(self, fanin: Tensor) -> Tensor:
        """Where each leaf reads, int64 [trees, leaves, positions]: an index into channels * height * width, or -1.

        Positions go through the pooled image row by row and, for each of its pixels, through the pooling window.

        Args:
            fanin: ``(channel * kernel + dy) * kernel + dx`` for each leaf, int [trees, leaves].
        """
        device, kernel, pool = fanin.device, self.kernel, self.pool
        span = torch.arange(pool, device=device)
        place = torch.arange(kernel, device=device).view(-1, 1, 1) - self.padding
        y = place + (torch.arange(self.out_height, device=device).view(-1, 1) * pool + span) * self.stride
        x = place + (torch.arange(self.out_width, device=device).view(-1, 1) * pool + span) * self.stride
        # [dy, dx, out y, out x, pool y, pool x]
        rows, columns = y[:, None, :, None, :, None], x[None, :, None, :, None, :]
        inside = (rows >= 0) & (rows < self.height) & (columns >= 0) & (columns < self.width)
        pixel = torch.where(inside, rows * self.width + columns, -1).reshape(kernel * kernel, -1)
        leaf = pixel[fanin.long() % (kernel * kernel)]
        plane = (fanin.long() // (kernel * kernel) * (self.height * self.width)).unsqueeze(2)
        return torch.where(leaf < 0, -1, leaf + plane)
