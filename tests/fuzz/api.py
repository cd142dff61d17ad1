"""Hostile calls of the public Python API: an exception is fine, a crash is not.

    tests/fuzz/api.sh [CALLS] [SEED]        builds the library under AddressSanitizer and runs this
    python tests/fuzz/api.py [CALLS] [SEED]

Every call draws a function and arguments: shapes that do not fit, dtypes that are not meant, indices out of range, odd
strides, empty and huge sizes, damaged files. What returns is read in full, so that stray memory is seen. Errors must be
of the kinds that say what is wrong; anything that hints at a check that is missing counts as a failure.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gatelight import Circuit, discretize, export, ops
from gatelight.circuit.io import from_bytes, to_bytes
from gatelight.circuit.random import layered_circuit
from gatelight.data.augment import apply_boxes, augment
from gatelight.engine import Engine, available
from gatelight.nn import (
    GateIntervention,
    GroupSum,
    LogicConv2d,
    LogicConvStack,
    LogicDense,
    LogicStack,
    OrPool2d,
    PathDropout,
    Thermometer,
    rounded,
)
from gatelight.ops import NATIVE_MAPS, ConvShape
from gatelight.ops.backends import cpu
from gatelight.ops.schemas import pack
from gatelight.parametrize import IWP
from gatelight.wiring import Leaves

#: What a hostile call may raise. IndexError, KeyError, AttributeError, AssertionError and such hint at a missing check.
FINE = (ValueError, TypeError, RuntimeError, NotImplementedError, MemoryError, OverflowError)
SIZES = (-(1 << 63), -1, 0, 1, 2, 3, 5, 7, 8, 16, 31, 33, 64)
MAPS = (*NATIVE_MAPS, "walsh", "", None)
DTYPES = (torch.float32,) * 12 + (
    torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8, torch.bool, torch.complex64,
)  # fmt: skip
NUMPY = ("f4", "f8", "f2", ">f4", ">f8", "u1", "i1", "i4", ">i8", "u8", "?", "c8", "O", "U3", "M8[s]")


class Hostile:
    """Draws arguments."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        self.numpy = np.random.default_rng(seed)
        self.level = self.random.choice((0.0, 0.2, 1.0))

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def odd(self, p: float) -> bool:
        """Whether to be hostile here; a third of the calls are not at all, a third seldom."""
        return self.random.random() < p * self.level

    def size(self, right: int) -> Any:
        """Mostly what is right."""
        if not self.odd(0.15):
            return right
        return self.pick(*SIZES, right + 1, right - 1, 2.5, "3", None, True, 100, 1 << 40)

    def small(self) -> int:
        return int(self.pick(1, 2, 3, 4, 5, 8, 13, 17, 32, 40))

    def tensor(self, *shape: int) -> Any:
        """Values in [0, 1], mostly of the right shape and dtype, in any layout."""
        sizes = [n if not self.odd(0.05) else max(0, int(self.pick(0, 1, n + 1, n - 1, 2 * n))) for n in shape]
        if self.odd(0.03):
            sizes = self.pick(sizes[:-1], [*sizes, 1], [1, *sizes], [])
        x = torch.rand(sizes)
        if self.odd(0.1) and x.numel():
            x.view(-1)[self.random.randrange(x.numel())] = self.pick(float("nan"), float("inf"), -1e30, 2.0, -0.0)
        x = x.to(self.pick(*DTYPES)) if self.odd(0.2) else x
        layout = self.random.random()
        if layout < 0.1 and x.ndim >= 2:
            x = x.transpose(0, -1).contiguous().transpose(0, -1)
        elif layout < 0.2 and x.ndim >= 1 and x.shape[0]:
            x = x[:1].expand(x.shape)
        elif layout < 0.3 and x.ndim >= 1:
            x = torch.cat([x, x], -1)[..., ::2]
        elif layout < 0.33 and x.ndim >= 1 and x.numel() > 4:
            x = x.as_strided(x.shape, [self.pick(0, 1, 1, 2)] + [0] * (x.ndim - 1))
        elif layout < 0.35 and self.odd(1.0):
            x = x.to("meta")
        elif layout < 0.37 and self.odd(1.0) and x.ndim == 2 and x.is_floating_point():
            x = x.to_sparse()
        elif layout < 0.38 and self.odd(1.0):
            return self.pick(x.tolist(), None, "x", x.to(torch.float32).numpy() if x.device.type == "cpu" else None, 3)
        if self.chance(0.1) and x.is_floating_point():
            x.requires_grad_()
        return x

    def fanin(self, gates: int, arity: int, features: int) -> Any:
        sizes = [n if not self.odd(0.05) else max(0, n + self.pick(-1, 1, 5)) for n in (gates, arity)]
        fanin = torch.randint(0, max(features, 1), sizes, dtype=torch.int32)
        if self.odd(0.2) and fanin.numel():
            at = self.random.randrange(fanin.numel())
            fanin.view(-1)[at] = self.pick(-1, features, features + 1, 1 << 30, -(1 << 31), (1 << 31) - 1)
        if self.odd(0.05):
            fanin = fanin.to(self.pick(torch.int64, torch.float32, torch.int16, torch.bool))
        if self.chance(0.1):
            fanin = fanin.t().contiguous().t()
        return fanin

    def theta(self, gates: int, map: Any, arity: int) -> Any:
        known = NATIVE_MAPS.get(map)
        columns = known.parameters(arity) if known is not None and arity <= known.max_arity else 1 << arity
        return self.tensor(gates, columns)

    def array(self, *shape: int) -> Any:
        """A numpy array of any dtype and layout."""
        sizes = [n if not self.odd(0.05) else max(0, int(self.pick(0, 1, n + 1, n - 1))) for n in shape]
        values = self.numpy.random(sizes)
        if self.chance(0.3):
            values = values.round()
        x: Any = values
        with np.errstate(all="ignore"):
            x = values.astype(self.pick(*NUMPY) if self.odd(0.3) else self.pick("f4", "f8", "u1", "?"))
        if x.dtype == np.uint8 and self.chance(0.7):
            x = self.numpy.integers(0, 256, sizes, np.uint8)
        layout = self.random.random()
        if layout < 0.1:
            x = np.asfortranarray(x)
        elif layout < 0.2:
            x = x[::-1]
        elif layout < 0.3 and x.ndim:
            x = np.repeat(x, 2, -1)[..., ::2]
        elif layout < 0.35 and len(x):
            x = np.broadcast_to(x[:1], x.shape)
        elif layout < 0.4 and x.dtype != object:
            raw = np.zeros(x.nbytes + 1, np.uint8)
            raw[1:] = np.frombuffer(x.tobytes(), np.uint8)
            x = raw[1:].view(x.dtype).reshape(x.shape)
        elif layout < 0.43:
            x = x.tolist()
        return x


def turned(x: Any) -> Any:
    """Feature-major, as the kernels take it."""
    return x.t() if isinstance(x, Tensor) and x.ndim <= 2 else x


def read(result: Any) -> None:
    """Touch every byte of what came back, and go back through it."""
    for value in result if isinstance(result, list | tuple) else [result]:
        if isinstance(value, Tensor) and value.device.type == "cpu" and value.layout == torch.strided:
            if value.requires_grad and value.is_floating_point():
                value.sum().backward()
            value.detach().clone().sum()
        elif isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
            value.copy().sum()


def call_lut(h: Hostile) -> Any:
    batch, features, gates, arity = h.small(), h.small(), h.small(), h.random.randint(1, 6)
    operands = h.tensor(batch, features), h.fanin(gates, arity, features), h.tensor(gates, 1 << arity)
    if h.chance(0.2):
        return torch.ops.gatelight.lut_fwd(turned(operands[0]), *operands[1:])
    if h.chance(0.1):
        return torch.ops.gatelight.lut_bwd(h.tensor(gates, batch), turned(operands[0]), *operands[1:])
    return ops.lut(*operands)


def layers_of(h: Hostile, features: int) -> tuple[list[Any], list[Any], list[Any], int]:
    fanins, thetas, maps = [], [], []
    for _ in range(h.random.randint(1, 4)):
        gates, arity = h.small(), h.random.randint(1, 6 if h.chance(0.3) else 2)
        map = h.pick(*MAPS) if h.odd(0.1) else h.pick(*NATIVE_MAPS)
        if map in NATIVE_MAPS:
            arity = min(arity, NATIVE_MAPS[map].max_arity)
        fanins.append(h.fanin(gates, arity, features))
        thetas.append(h.theta(gates, map, arity))
        maps.append(map)
        features = gates
    if h.odd(0.03):
        h.pick(fanins, thetas, maps).pop()
    return fanins, thetas, maps, features


def call_stack(h: Hostile) -> Any:
    batch, features = h.small(), h.small()
    fanins, thetas, maps, gates = layers_of(h, features)
    x, mode = h.tensor(batch, features), h.pick("auto", "keep", "keep-bf16", "recompute") if not h.odd(0.1) else "all"
    if h.chance(0.6):
        return ops.dense_chain(x, fanins, thetas, maps, mode)
    if h.chance(0.3):
        return torch.ops.gatelight.dense_chain_fwd(turned(x), fanins, thetas, ",".join(maps), mode, h.chance(0.5))[0]
    out, saved = cpu.dense_chain_fwd(turned(x), fanins, thetas, maps, mode)
    if h.odd(0.3):
        one = saved[0]
        wrong = one[1:], one[:-1], torch.zeros_like(one), one.flip(0), one[::2]
        saved = h.pick(*[[w] for w in wrong], [], [one, one])
    grads = cpu.dense_chain_bwd(h.tensor(gates, batch), turned(x), saved, fanins, thetas, maps, mode, [True])
    return [*grads[1], out]


def call_conv(h: Hostile) -> Any:
    channels, side = h.small() % 4 + 1, h.pick(3, 4, 5, 6, 8)
    shapes, fanins, thetas, maps = [], [], [], []
    image = (channels, side, side)
    for _ in range(h.random.randint(1, 3)):
        arity, depth = h.pick((2, 1), (2, 2), (2, 3), (1, 1), (3, 1), (6, 1), (4, 2))
        shape = ConvShape(
            image[0], image[1], h.size(image[2]), h.size(h.pick(1, 2, 3)), h.size(h.pick(0, 1)), h.size(1), depth,
            arity, h.pick(1, 1, 2, 2, 3),
        )  # fmt: skip
        trees = h.small() % 6 + 1
        shapes.append(shape)
        fanins.append(h.fanin(trees, shape.leaves, shape.window_inputs))
        map = "table" if arity > 3 else h.pick(*NATIVE_MAPS)
        thetas.append(h.theta(trees * shape.tree_gates, map, arity))
        maps.append(map)
        image = (trees, shape.out_height, shape.out_width)
    x = h.tensor(h.small(), channels, side, side)
    if h.chance(0.3):
        return ops.conv(x, fanins[0], thetas[0], shapes[0])
    if isinstance(x, Tensor) and x.ndim > 1 and h.chance(0.2):
        rows = turned(x.flatten(1))
        return torch.ops.gatelight.conv_chain_fwd(rows, pack(shapes), fanins, thetas, ",".join(maps), h.chance(0.5))[0]
    return ops.conv_chain(x, shapes, fanins, thetas, maps)


def call_layers(h: Hostile) -> Any:
    features, batch = h.small(), h.small()
    layers = []
    width: Any = features
    for _ in range(h.random.randint(1, 3)):
        gates, arity = h.small(), h.random.randint(1, 4)
        wiring: Any = "all" if h.odd(0.1) else "random"
        if h.chance(0.3):
            wiring = h.fanin(gates, arity, width)
            wiring = h.pick(wiring, wiring.tolist(), wiring.numpy())
        layers.append(
            LogicDense(
                h.size(width), h.size(gates), arity=h.size(arity), wiring=wiring, seed=0,
                parametrization=h.pick("iwp", "iwp", "op"), estimator=h.pick("sin", "sin-st", "sin-sign", "sigmoid"),
            )
        )  # fmt: skip
        width = gates
    stack = LogicStack(layers, memory=h.pick("auto", "keep", "recompute"))
    if h.odd(0.2):
        layer = h.pick(*layers)
        layer.fanin[0, 0] = h.pick(-1, 10**6, 1 << 30, 0)
    if h.odd(0.1):
        h.pick(*layers).fanin = h.fanin(3, 2, features)
    if h.odd(0.1):
        h.pick(*layers).theta = nn.Parameter(torch.rand(2, 4))
    if h.odd(0.1):
        stack._modules["0"] = LogicDense(h.small(), h.small())
    x = h.tensor(batch, features)
    out = stack(x)
    with rounded(stack):
        stack(x)
    return out


def call_images(h: Hostile) -> Any:
    channels, side = h.small() % 4 + 1, h.pick(3, 4, 6, 8)
    layers: list[Any] = []
    for _ in range(h.random.randint(1, 2)):
        out = h.small() % 5 + 1
        layers.append(
            LogicConv2d(
                h.size(channels), h.size(out), h.size(h.pick(1, 2, 3, (2, 2))), tree_depth=h.size(h.pick(1, 2, 3)),
                padding=h.pick("same", -1, 40, 1 << 40) if h.odd(0.3) else h.pick(0, 1, "valid", (1, 1)),
                stride=h.size(h.pick(1, 2)), seed=0,
                parametrization=IWP(h.pick(2, 2, 3)),
                wiring=Leaves(h.pick(None, 1) if not h.odd(0.2) else channels + 1),
            )
        )  # fmt: skip
        channels = out
        if h.chance(0.5):
            layers.append(OrPool2d(h.size(h.pick(1, 2, 3))))
    if h.odd(0.2):
        layers[0].fanin[0, 0] = h.pick(-1, 10**6, 0)
    return LogicConvStack(layers)(h.tensor(h.small(), layers[0].in_channels, side, side))


def call_small_modules(h: Hostile) -> Any:
    x = h.tensor(h.small(), h.small()) if h.chance(0.5) else h.tensor(h.small(), h.small() % 4 + 1, 6, 6)
    which = h.random.randrange(6)
    if which == 0:
        return GroupSum(h.size(2), h.pick(1.0, 0.0, float("nan"), "a", -1))(x)
    if which == 1:
        return OrPool2d(h.size(2))(x)
    if which == 2:
        return Thermometer(h.tensor(h.pick(1, 2, 3)) if h.chance(0.5) else h.tensor(h.small(), 2))(x)
    if which == 3:
        return Thermometer.fit(x, h.size(2))(x)
    if which == 4:
        return GateIntervention(h.pick(0.0, 0.5, 1.0, -1, float("nan")), h.pick("zero", "uniform", "bernoulli"))(x)
    layers = [LogicDense(h.small(), h.small(), seed=0), LogicDense(h.small(), h.small(), seed=1)]
    return PathDropout(h.pick(0.1, 0.9, 2)).kept(layers)


def call_augment(h: Hostile) -> Any:
    images = h.tensor(h.small(), h.small() % 4 + 1, h.pick(1, 5, 8), h.pick(1, 5, 8))
    if h.chance(0.5):
        return augment(images, torch.Generator().manual_seed(0), scale=h.pick((0.5, 1.0), (0.0, 1.0), (1e-9, 2.0)))
    boxes = torch.randint(0, 4, (len(images), 5)) + torch.tensor([0, 0, 1, 1, 0])
    if h.odd(0.4):
        boxes.view(-1)[h.random.randrange(max(boxes.numel(), 1)) :][:1] = h.pick(-1, 1 << 40, 0, 100)
    return apply_boxes(images, boxes)


def circuit_of(h: Hostile) -> Circuit:
    made = layered_circuit(h.small(), tuple(h.small() for _ in range(h.random.randint(1, 3))), classes=1)
    fields = {name: getattr(made, name) for name in made.__dataclass_fields__}
    fields["feature_kind"] = h.pick("bits", "bytes", "reals")
    if h.odd(0.4):
        name = h.pick(*fields)
        value = fields[name]
        if isinstance(value, np.ndarray) and value.size:
            value = value.copy()
            value.reshape(-1)[h.random.randrange(value.size)] = h.pick(0, 1, 7, 100)
            value = h.pick(value, value[:-1], value[None], value.tolist(), value.astype(np.float64))
        else:
            value = h.pick(0, -1, 1 << 40, "x", None, (), (3, 3))
        fields[name] = value
    return Circuit(**fields)


def call_circuit(h: Hostile) -> Any:
    circuit = circuit_of(h)
    x = h.array(h.small(), circuit.features)
    if h.chance(0.1):
        return circuit.outputs_of(h.array(h.small(), circuit.inputs))
    if available() and h.chance(0.7):
        engine = Engine(
            circuit,
            simd=h.pick(None, None, "base", "avx2", "avx1"),
            threads=h.pick(1, 2, 3, 0, "2"),
            code=h.chance(0.5),
        )
        if h.chance(0.3):
            words = h.array(circuit.inputs, h.small())
            return engine.run_bits(np.asarray(words).astype(np.uint64) if h.chance(0.8) else words)
        return [engine.scores(x), engine.predict(x)]
    return [circuit.scores(x), circuit.predict(x), circuit.bits(x)]


def call_passes(h: Hostile) -> Any:
    circuit = circuit_of(h)
    if h.chance(0.6):
        return circuit.simplify(h.size(h.pick(0, 1, 2))).outputs
    return circuit.map_to_arity(h.size(h.pick(2, 4, 6))).outputs


def call_export(h: Hostile) -> Any:
    circuit = circuit_of(h)
    name = h.pick("net", "int", "1a", "", "a b", "x" * 300)
    which = h.random.randrange(4)
    if which == 0:
        return len(export.c(circuit, name))
    if which == 1:
        return len(export.verilog(circuit, name, pipeline=h.size(0)))
    if which == 2:
        return len(export.aiger(circuit, ascii=h.chance(0.5)))
    return len(export.blif(circuit, name))


def call_file(h: Hostile) -> Any:
    data = bytearray(to_bytes(circuit_of(h)))
    for _ in range(h.random.randint(1, 4)):
        data[h.random.randrange(len(data))] = h.random.randrange(256)
    if h.chance(0.2):
        data = data[: h.random.randrange(len(data))]
    return from_bytes(bytes(data)).outputs


def call_discretize(h: Hostile) -> Any:
    features, gates = h.small(), h.small()
    model = nn.Sequential(
        Thermometer.even(2), LogicDense(2 * features, gates, seed=0), LogicDense(gates, 4, seed=1), GroupSum(2)
    )
    if h.odd(0.3):
        h.pick(model[1], model[2]).fanin[0, 0] = h.pick(-1, 1 << 30, 10**6)
    if h.odd(0.3):
        model.insert(h.random.randrange(5), h.pick(nn.Sigmoid(), nn.Flatten(0), OrPool2d(2), GroupSum(2)))
    circuit = discretize(
        model, input_shape=h.pick(None, (features,)) if not h.odd(0.3) else h.pick((1, features), features, (0,), "ab")
    )
    return circuit.scores(np.random.default_rng(0).random((9, features), np.float32))


CALLS: tuple[Callable[[Hostile], Any], ...] = (
    call_lut, call_lut, call_stack, call_stack, call_stack, call_conv, call_conv, call_layers, call_layers,
    call_images, call_small_modules, call_augment, call_circuit, call_circuit, call_passes, call_export, call_file,
    call_discretize,
)  # fmt: skip


def run(calls: int, seed: int) -> Counter[str]:
    """Make so many calls; raises at the first error of a kind that hints at a missing check."""
    counts: Counter[str] = Counter()
    for number in range(seed, seed + calls):
        hostile = Hostile(number)
        call = CALLS[number % len(CALLS)]
        try:
            read(call(hostile))
            counts["answered"] += 1
        except FINE as error:
            counts[type(error).__name__] += 1
        except Exception as error:
            raise AssertionError(f"call {number}, {call.__name__}: {type(error).__name__}: {error}") from error
    return counts


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    given = [int(argument) for argument in sys.argv[1:3]]
    number, first = [*given, *(20_000, 0)[len(given) :]]
    counted = run(number, first)
    print(f"{number} calls, no crash: " + ", ".join(f"{n} {what}" for what, n in counted.most_common()))  # noqa: T201
