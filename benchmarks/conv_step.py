"""The convolutional blocks of CIFAR-10 S and M, forward and backward, for benchmarks/train_step.py."""

from __future__ import annotations

import copy
import itertools
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import machine
import torch
from torch import Tensor, nn

from gatelight.nn import LogicConv2d, LogicConvStack, OrPool2d
from gatelight.ops import ConvShape
from gatelight.ops.backends import cpu


@dataclass(frozen=True)
class ConvCase:
    """Four blocks of trees of depth 3 over 3 x 3 windows with 2 x 2 pooling, on 9 x 32 x 32 bits."""

    k: int
    batch: int
    repeat: int
    torch_batch: int  # plain torch works in pieces of this size, to limit its memory

    @property
    def gates(self) -> int:
        """Gates that are evaluated for one sample."""
        return 7 * 1024 * self.k * 7 // 2


CASES = {
    "conv cifar-s": ConvCase(32, 128, 21, 32),
    "conv cifar-m": ConvCase(256, 128, 5, 4),
}

#: Multiply-adds of a gate at a position and for a sample, as for dense gates: 3 forward, 10 backward. Ours does less
#: in backward, which handles only the position that won the pooling.
MULTIPLY_ADDS = 13


def make_stack(case: ConvCase) -> LogicConvStack:
    """The blocks with fresh leaves and parameters."""
    channels = [9, *(case.k * factor for factor in (1, 4, 16, 32))]
    layers: list[LogicConv2d | OrPool2d] = []
    for seed, (before, after) in enumerate(itertools.pairwise(channels)):
        layers += [LogicConv2d(before, after, 3, padding=1, seed=seed), OrPool2d(2)]
    return LogicConvStack(layers)


class PlainTorch(nn.Module):
    """The same trees in plain torch: a gather over unfolded positions, multiply-adds on [features, batch], autograd."""

    def __init__(self, stack: LogicConvStack, height: int, width: int) -> None:
        super().__init__()
        self.shapes = stack.shapes(height, width)
        self.theta = nn.ParameterList(layer.theta.detach().clone() for layer in stack.layers)
        self.rows = []
        for layer, shape in zip(stack.layers, self.shapes, strict=True):
            inputs = shape.channels * shape.height * shape.width
            self.rows.append((shape.leaf_pixels(layer.fanin) % (inputs + 1)).flatten())

    def forward(self, x: Tensor) -> Tensor:
        """[features, batch] -> [features, batch]."""
        for shape, theta, rows in zip(self.shapes, self.theta, self.rows, strict=True):
            x = self._layer(x, shape, theta, rows)
        return x

    def _layer(self, x: Tensor, shape: ConvShape, theta: Tensor, rows: Tensor) -> Tensor:
        batch, trees = x.shape[1], len(theta) // shape.tree_gates
        t0, t1, t2, t3 = (0.5 + 0.5 * torch.sin(theta)).view(trees, -1, 4, 1, 1).unbind(2)
        c1, c2, c3 = t1 - t0, t2 - t0, t3 - t2 - t1 + t0
        padded = torch.cat([x, x.new_zeros(1, batch)])
        value = padded.index_select(0, rows).view(trees, shape.leaves, shape.positions, batch)
        first = shape.tree_gates
        for level in reversed(range(shape.depth)):
            gates = 2**level
            first -= gates
            p, q = value[:, 0::2], value[:, 1::2]
            own = slice(first, first + gates)
            value = t0[:, own] + c1[:, own] * q + c2[:, own] * p + c3[:, own] * p * q
        return value.view(-1, shape.pool**2, batch).max(1).values


def in_pieces(model: nn.Module, x: Tensor, weights: Tensor, size: int) -> Callable[[], None]:
    """A forward and backward pass over the batch, piece by piece, gradients added up."""

    def run() -> None:
        for parameter in model.parameters():
            parameter.grad = None
        for part, weight in zip(x.split(size, 1), weights.split(size, 1), strict=True):
            model(part).backward(weight)

    return run


def check_equal(stack: LogicConvStack, plain: PlainTorch) -> None:
    """Exit with an error unless values and gradients equal plain torch's in double precision, sample by sample.

    Where two positions of a pooling window differ by less than a rounding error, the gradient may go to the other one,
    in plain torch's single precision as well. That affects few samples, a wrong kernel all of them: most must agree.
    """
    exact = copy.deepcopy(plain).double()
    random = torch.Generator().manual_seed(0)
    errors = []
    for _ in range(5):
        x = torch.randint(0, 2, (1, 9, 32, 32), generator=random).float()
        ours, theirs = stack(x).flatten(1).t(), exact(x.flatten(1).t().double())
        if not torch.allclose(ours.double(), theirs, atol=1e-5):
            sys.exit("refused: values differ from plain torch")
        weights = torch.randn(theirs.shape, generator=random)
        mine = torch.autograd.grad(ours, list(stack.parameters()), weights)
        wanted = torch.autograd.grad(theirs, list(exact.parameters()), weights.double())
        errors.append(max(float((a - b).norm() / b.norm()) for a, b in zip(mine, wanted, strict=True)))
    if statistics.median(errors) > 1e-5:
        sys.exit(f"refused: gradients differ from plain torch by {statistics.median(errors):g} of their norm")


def run_case(case: ConvCase, threads: int, quick: bool) -> dict[str, object]:
    """Measure one case against plain torch."""
    stack = make_stack(case)
    plain = PlainTorch(stack, 32, 32)
    check_equal(stack, plain)
    repeat = max(3, case.repeat // 5) if quick else case.repeat
    x = torch.randint(0, 2, (case.batch, 9, 32, 32)).float()
    weights = torch.randn(32 * case.k * 4, case.batch)
    images = weights.view(-1, 2, 2, case.batch).permute(3, 0, 1, 2)

    def step() -> None:
        for parameter in stack.parameters():
            parameter.grad = None
        stack(x).backward(images)

    seconds = machine.interleaved({"gatelight": step, "gatelight, forward": lambda: stack(x)}, repeat)
    rows = x.flatten(1).t().contiguous()
    rivals = machine.interleaved(
        {"gatelight": step, "plain torch": in_pieces(plain, rows, weights, case.torch_batch)}, 1 if quick else 3
    )
    cpu.set_threads(threads)
    wall = machine.interleaved({"wall": step}, repeat, time.monotonic)["wall"]
    cpu.set_threads(1)
    saved, pooled = saved_values(stack, x)
    return {
        "case": asdict(case),
        "milliseconds": {key: round(1e3 * value, 3) for key, value in (seconds | rivals).items()},
        "times as fast as": {"plain torch": round(rivals["plain torch"] / rivals["gatelight"], 2)},
        f"wall milliseconds at {threads} threads": round(1e3 * wall, 3),
        "saved values for each pooled output": round(saved / pooled, 3),
    }


def saved_values(stack: LogicConvStack, x: Tensor) -> tuple[float, int]:
    """Float values that forward keeps for backward besides its input and coefficients, and the pooled outputs."""
    shapes = stack.shapes(x.shape[2], x.shape[3])
    fanins = [layer.fanin for layer in stack.layers]
    thetas = [layer.theta.detach() for layer in stack.layers]
    maps = ["iwp-sin"] * len(shapes)
    _, [saved] = cpu.conv_chain_fwd(x.flatten(1).t(), shapes, fanins, thetas, maps)
    coefficients = sum(theta.numel() for theta in thetas)
    pooled = sum(len(f) * s.out_height * s.out_width for f, s in zip(fanins, shapes, strict=True)) * len(x)
    return saved.numel() / 4 - coefficients, pooled


def show(name: str, result: dict[str, object], facts: dict[str, str | int | float]) -> None:
    """Print one case."""
    case = CASES[name]
    milliseconds = result["milliseconds"]
    assert isinstance(milliseconds, dict)
    print(f"\n{name}: four blocks, k = {case.k}, {case.gates:,} gates at all positions, batch {case.batch}")
    for key, value in milliseconds.items():
        print(f"  {key:<30}{value:>10.2f} ms  {value / milliseconds['gatelight']:>7.2f} x")
    adds = MULTIPLY_ADDS * case.gates * case.batch / (milliseconds["gatelight"] / 1e3) / 1e9
    of_peak = adds / float(facts["multiply_adds_g_per_s"])
    print(f"  {adds:.1f} G multiply-adds/s as plain backward would need, {100 * of_peak:.0f}% of a matrix product's")
    print(f"  {result['saved values for each pooled output']} saved values for each pooled output")
