"""A convolutional layer whose kernels are trees of gates."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gatelight import ops, parametrize
from gatelight.nn.checks import check_activations, check_side, check_size, drawing, to_weights, trusted
from gatelight.nn.dense import check_loaded_fanin, make_generator
from gatelight.nn.rounding import LogicLayer
from gatelight.nn.wiring import draw_sets
from gatelight.ops import ConvShape


class LogicConv2d(LogicLayer):
    """Trees of logic gates that slide over an image.

    Each output channel is a complete tree of gates: ``arity**tree_depth`` leaves read values of the window, each gate
    reads the outputs of the gates below, and the root is the output. Every position uses the same tables.

    >>> layer = LogicConv2d(3, 16, 3, padding=1, seed=0)
    >>> layer(torch.rand(2, 3, 8, 8)).shape
    torch.Size([2, 16, 8, 8])
    >>> layer
    LogicConv2d(
      3 -> 16 channels, window 3x3, padding 1, stride 1, trees of 7 gates of arity 2 over 8 leaves
      iwp: table = 1/2 + 1/2 sin(theta), init=residual, 448 parameters
    )

    Args:
        in_channels: Channels of the input.
        out_channels: Number of trees.
        kernel_size: Side of the window, a number or two equal ones.
        tree_depth: Levels of gates.
        arity: Inputs of a gate.
        padding: Zeros around the image, a number or two equal ones; ``same`` keeps the image's size (odd windows,
            stride 1), ``valid`` is 0.
        stride: Steps between windows, a number or two equal ones.
        channels_per_tree: Channels a tree reads, in groups: neighbouring trees read neighbouring channels. None lets
            a leaf read any channel.
        parametrization: As for :class:`~gatelight.nn.LogicDense`, like the next four.
        estimator: Of ``iwp``.
        init: Where the gates start.
        init_strength: How far the init leans to its function.
        init_spread: Standard deviation of the init.
        seed: Draws leaves and parameters; None takes a seed from torch's global generator.

    Attributes:
        fanin: Leaves, int32 [out_channels, leaves]: ``(channel * kernel_size + dy) * kernel_size + dx``.
        theta: Parameters, float32 [out_channels * gates of a tree, parameters], a tree from its root on.

    Shape:
        [batch, in_channels, h, w] -> [batch, out_channels, h', w'] with
        ``h' = (h + 2 padding - kernel_size) // stride + 1``.
    """

    fanin: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        *,
        tree_depth: int = 3,
        arity: int = 2,
        padding: int | tuple[int, int] | str = 0,
        stride: int | tuple[int, int] = 1,
        channels_per_tree: int | None = None,
        parametrization: str = "iwp",
        estimator: str = "sin",
        init: str = "residual",
        init_strength: float | None = None,
        init_spread: float | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.in_channels = check_size("in_channels", in_channels)
        self.out_channels = check_size("out_channels", out_channels)
        self.kernel_size = check_side("kernel_size", kernel_size)
        self.tree_depth, self.stride = check_size("tree_depth", tree_depth), check_side("stride", stride)
        self.padding = _padding(padding, self.kernel_size, self.stride)
        self.channels_per_tree = channels_per_tree
        self.parametrization = parametrize.make(parametrization, arity, estimator)
        self.init = init
        tree = self.shape_for(self.kernel_size, self.kernel_size)
        self.tree_gates, self.leaves = tree.tree_gates, tree.leaves
        with drawing() as device:
            generator = make_generator(seed)
            fanin = self._draw_leaves(generator)
            strength_and_spread = {"strength": init_strength, "spread": init_spread}
            theta = self.parametrization.init(self.gates, init, generator, **strength_and_spread)
        self.register_buffer("fanin", fanin.to(device))
        self.theta = nn.Parameter(theta.to(device))

    @property
    def arity(self) -> int:
        """Inputs of a gate."""
        return self.parametrization.arity

    @property
    def gates(self) -> int:
        """Number of truth tables: those of all trees."""
        return self.out_channels * self.tree_gates

    def shape_for(self, height: int, width: int, pool: int = 1) -> ConvShape:
        """The geometry on images of a size, with pooling behind the layer."""
        return ConvShape(
            self.in_channels,
            height,
            width,
            self.kernel_size,
            self.padding,
            self.stride,
            self.tree_depth,
            self.arity,
            pool,
        )

    def table(self) -> Tensor:
        """Soft tables, differentiable in theta, [out_channels * gates of a tree, 2**arity]."""
        return self.parametrization.table(self.theta)

    @torch.no_grad()
    def rounded_table(self) -> Tensor:
        """Tables rounded to 0 and 1 by the parametrization's rule."""
        return self.parametrization.rounded(self.theta)

    def forward(self, x: Tensor) -> Tensor:
        """Evaluate the trees: soft, or rounded inside :func:`gatelight.nn.rounded`."""
        self.check_input(x)
        x = to_weights(x, self.theta)
        table = self.rounded_table() if self.discrete else self.table()
        return trusted(ops.conv(x, self.fanin, table, self.shape_for(x.shape[2], x.shape[3])))

    def check_input(self, x: Tensor) -> None:
        """Raise a ValueError unless x is [batch, in_channels, h, w] with values in [0, 1]."""
        check_activations(x)
        if x.ndim != 4 or x.shape[1] != self.in_channels:
            raise ValueError(f"the layer takes [batch, {self.in_channels}, h, w], got shape {tuple(x.shape)}")

    def kernel_operands(self) -> tuple[Tensor, str]:
        """What :func:`gatelight.ops.conv_chain` takes for this layer: theta and the name of its map to a table."""
        if self.discrete:
            return self.rounded_table(), "table"
        kind = ops.native_map_of(self.parametrization)
        return (self.table(), "table") if kind is None else (self.theta, kind)

    def affected(self, inputs: Tensor) -> Tensor:
        """Which outputs depend on a marked input: bool [in_channels, h, w] -> bool [out_channels, h', w']."""
        shape = self.shape_for(*inputs.shape[1:])
        pixels = shape.leaf_pixels(self.fanin)
        marked = torch.cat([inputs.flatten(), inputs.new_zeros(1)])[pixels].any(1)
        return marked.view(self.out_channels, shape.out_height, shape.out_width)

    def extra_repr(self) -> str:
        """A summary with the formula."""
        name = "op" if self.parametrization.kind == "op" else "iwp"
        groups = "" if self.channels_per_tree is None else f", {self.channels_per_tree} channels a tree"
        side = self.kernel_size
        return (
            f"{self.in_channels} -> {self.out_channels} channels, window {side}x{side}, padding {self.padding}, "
            f"stride {self.stride}, trees of {self.tree_gates} gates of arity {self.arity} over {self.leaves} leaves"
            f"{groups}\n{name}: {self.parametrization.describe()}, init={self.init}, {self.theta.numel()} parameters"
        )

    def _draw_leaves(self, generator: torch.Generator) -> Tensor:
        """Distinct values of the window for the leaves of a tree where there are enough, all used equally often."""
        window = self.kernel_size**2
        group = self.channels_per_tree
        if group is None:
            return draw_sets(self.in_channels * window, self.out_channels, self.leaves, generator).int()
        if not 1 <= group <= self.in_channels:
            raise ValueError(f"channels_per_tree must be from 1 to {self.in_channels}, got {group}")
        inside = draw_sets(group * window, self.out_channels, self.leaves, generator)
        # Trees are dealt over all places at which a group of neighbouring channels can start.
        first = torch.arange(self.out_channels) * (self.in_channels - group + 1) // self.out_channels
        return (inside + (first * window).unsqueeze(1)).int()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # Before anything is copied: a refused state leaves the layer as it was.
        check_loaded_fanin(state_dict.get(f"{prefix}fanin"), self.in_channels * self.kernel_size**2)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _padding(padding: Any, kernel: int, stride: int) -> int:
    """Zeros on each side, from a number, a pair, or torch's words."""
    if padding == "valid":
        return 0
    if padding == "same":
        if kernel % 2 == 0 or stride != 1:
            raise ValueError(f"padding 'same' needs an odd window and stride 1, got {kernel} and {stride}")
        return kernel // 2
    return check_side("padding", padding, least=0)
