"""A convolutional layer whose kernels are trees of gates."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gatelight import ops, parametrize
from gatelight.circuit.sketch import CircuitSketch
from gatelight.nn.checks import as_tensor, check_activations, check_side, check_size, drawing, to_weights, trusted
from gatelight.nn.dense import check_loaded_fanin
from gatelight.nn.layer import LogicLayer, as_init, draw_theta, make_generator
from gatelight.ops import ConvShape
from gatelight.parametrize import Init, Parametrization
from gatelight.wiring import Given, Leaves, TreeSite


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
        padding: Zeros around the image, a number or two equal ones; ``same`` keeps the image's size (odd windows,
            stride 1), ``valid`` is 0.
        stride: Steps between windows, a number or two equal ones.
        parametrization: A name or a value, as for :class:`~gatelight.nn.LogicDense`; its arity is that of the gates.
        init: Where the gates start, a name or a value.
        wiring: What the leaves read, such as ``Leaves(channels_per_tree=2)``, or given leaves [trees, leaves].
        seed: Draws leaves and parameters; None takes a seed from torch's global generator.

    Attributes:
        fanin: Leaves, int32 [out_channels, leaves]: ``(channel * kernel_size + dy) * kernel_size + dx``.
        theta: Parameters, float32 [out_channels * gates of a tree, parameters], each tree from its root.

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
        padding: int | tuple[int, int] | str = 0,
        stride: int | tuple[int, int] = 1,
        parametrization: str | Parametrization = "iwp",
        init: str | Init = "residual",
        wiring: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.in_channels = check_size("in_channels", in_channels)
        self.out_channels = check_size("out_channels", out_channels)
        self.kernel_size = check_side("kernel_size", kernel_size)
        self.tree_depth, self.stride = check_size("tree_depth", tree_depth), check_side("stride", stride)
        self.padding = _padding(padding, self.kernel_size, self.stride)
        self.parametrization = parametrize.make(parametrization)
        self.init = as_init(init)
        if isinstance(wiring, str):
            raise ValueError(
                f"the wiring of trees is a value such as gatelight.wiring.Leaves(), not a name, got {wiring!r}"
            )
        self.wiring = Leaves() if wiring is None else wiring if hasattr(wiring, "draw") else Given(wiring)
        tree = self.shape_for(self.kernel_size, self.kernel_size)
        self.tree_gates, self.leaves = tree.tree_gates, tree.leaves
        with drawing() as device:
            generator = make_generator(seed)
            fanin = self._draw_leaves(generator)
            theta = draw_theta(self.parametrization, self.gates, self.init, generator)
        self.register_buffer("fanin", fanin.to(device))
        self.theta = nn.Parameter(theta.to(device))

    @property
    def gates(self) -> int:
        """Number of truth tables: those of all trees."""
        return self.out_channels * self.tree_gates

    def shape_for(self, height: int, width: int, pool: int = 1) -> ConvShape:
        """The geometry on images of a size, with pooling after the layer."""
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

    def forward(self, x: Tensor) -> Tensor:
        """Evaluate the trees: relaxed, or rounded inside :func:`gatelight.nn.rounded`."""
        self.check_input(x)
        x = to_weights(x, self.theta)
        return trusted(ops.conv(x, self.fanin, self.current_table(), self.shape_for(x.shape[2], x.shape[3])))

    def check_input(self, x: Tensor) -> None:
        """Raise a ValueError unless x is [batch, in_channels, h, w] with values in [0, 1]."""
        check_activations(x)
        if x.ndim != 4 or x.shape[1] != self.in_channels:
            raise ValueError(f"the layer takes [batch, {self.in_channels}, h, w], got shape {tuple(x.shape)}")

    def affected(self, inputs: Tensor) -> Tensor:
        """Which outputs depend on a marked input: bool [in_channels, h, w] -> bool [out_channels, h', w']."""
        shape = self.shape_for(*inputs.shape[1:])
        pixels = shape.leaf_pixels(self.fanin)
        marked = torch.cat([inputs.flatten(), inputs.new_zeros(1)])[pixels].any(1)
        return marked.view(self.out_channels, shape.out_height, shape.out_width)

    def emit(self, sketch: CircuitSketch, pool: int = 1) -> None:
        """Unroll the rounded trees over all positions, with the pooling after the layer, and add them to a circuit."""
        image = sketch.images(self.in_channels)
        shape = self.shape_for(image.shape[1], image.shape[2], pool)
        trees, positions, arity = self.out_channels, shape.positions, shape.arity
        ops.check_fanin(self.fanin, shape.window_inputs)
        pixels = shape.leaf_pixels(self.fanin.cpu()).numpy()
        # Index -1, the padding, reads the last entry.
        nets: NDArray[np.int32] = np.append(image.reshape(-1), np.int32(-1))[pixels]
        tables = self.tables_for_circuit().reshape(trees, shape.tree_gates, 1, -1)
        first = shape.tree_gates
        for level in reversed(range(shape.depth)):
            gates = arity**level
            first -= gates
            fanin = nets.reshape(trees, gates, arity, positions).transpose(0, 1, 3, 2).reshape(-1, arity)
            table = np.broadcast_to(tables[:, first : first + gates], (trees, gates, positions, 1 << arity))
            nets = sketch.gates().add(fanin, table.reshape(-1, 1 << arity))
        windows = sketch.gates().add_or(nets.reshape(-1, pool**2))
        sketch.nets = windows.reshape(trees, shape.out_height, shape.out_width)

    def extra_repr(self) -> str:
        """A summary with the formula."""
        wiring = str(self.wiring)
        side = self.kernel_size
        return (
            f"{self.in_channels} -> {self.out_channels} channels, window {side}x{side}, padding {self.padding}, "
            f"stride {self.stride}, trees of {self.tree_gates} gates of arity {self.arity} over {self.leaves} leaves"
            f"{wiring and ', ' + wiring}\n{self._describe_gates()}, {self.theta.numel()} parameters"
        )

    def _draw_leaves(self, generator: torch.Generator) -> Tensor:
        site = TreeSite(self.in_channels, self.kernel_size**2, self.out_channels, self.leaves)
        fanin = as_tensor("wiring", self.wiring.draw(site, generator))
        if fanin.shape != (self.out_channels, self.leaves):
            raise ValueError(f"leaves must be [{self.out_channels}, {self.leaves}], got {tuple(fanin.shape)}")
        ops.check_fanin(fanin, self.in_channels * self.kernel_size**2)
        return fanin.to("cpu", torch.int32).contiguous().clone()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # Checked before anything is copied: a refused state leaves the layer unchanged.
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
