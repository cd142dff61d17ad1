"""Random trees of modules: what a stack computes is what ``nn.Sequential`` computes, and what its circuit computes.

    python tests/fuzz/models.py [CASES] [SEED]

Every case draws a model: logic layers, pools, flattens, encoders, sequences nested in sequences, modules used twice,
hooks of all kinds, subclasses and other people's modules, layers replaced afterwards. Then

1. the model and its twin, in which every stack is a plain ``nn.Sequential``, give the same outputs and gradients and
   call the same hooks, or both refuse;
2. its circuit equals the rounded model on fresh inputs, or ``discretize`` raises a ValueError.
"""

from __future__ import annotations

import copy
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from gatelight import discretize, parametrize
from gatelight.nn import (
    GateIntervention,
    GroupSum,
    LogicConv2d,
    LogicConvStack,
    LogicDense,
    LogicNetwork,
    LogicStack,
    OrPool2d,
    Thermometer,
    rounded,
)

#: A model is asked for two things at most; anything but a ValueError is a bug, unless plain torch says the same.
REFUSALS = (ValueError,)


class Halving(LogicDense):
    """A subclass with a forward of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * super().forward(x)


class Named(LogicDense):
    """A subclass that changes nothing."""


class Backwards(nn.Sequential):
    """A sequence with a forward of its own."""

    def forward(self, x: Tensor) -> Tensor:
        for module in reversed(list(self)):
            x = module(x)
        return x


class Drawn:
    """A model, the shape of one sample, and hooks that count their calls."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.calls: list[str] = []
        self.global_hooks: list[Callable[[], Any]] = []
        self.images = self.random.random() < 0.45
        if self.images:
            side = self.random.choice((4, 5, 6, 8))
            self.shape: tuple[int, ...] = (self.random.choice((1, 2, 3)), side, side)
        else:
            self.shape = (self.random.choice((2, 3, 5, 8, 12)),)
        self.model = self.draw_model()

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def layer_options(self) -> dict[str, Any]:
        parametrization = self.random.choice(("iwp", "iwp", "iwp", "op"))
        arity = self.random.choice((1, 2, 2, 2, 3)) if parametrization == "op" else self.random.choice((1, 2, 2, 3, 4))
        estimators = ("sin", "sin", "sigmoid", "sin-st", "sin-sign", "linear-st")
        init = self.random.choice(("residual", "gaussian", "and-or", "uniform"))
        options: dict[str, Any] = {"parametrization": parametrization, "arity": arity, "init": init}
        if parametrization == "iwp":
            options["estimator"] = self.random.choice(estimators)
        return options | {"seed": self.random.randrange(1 << 30)}

    def dense(self, features: int, gates: int) -> LogicDense:
        kind = self.random.choice((LogicDense,) * 18 + (Named, Halving))
        fixed = torch.rand(gates) < 0.3 if self.chance(0.1) else None
        layer = kind(features, gates, fixed=fixed, **self.layer_options())
        if self.chance(0.02):
            with torch.no_grad():
                layer.theta.view(-1)[:1] = float("nan")
        return layer

    def dense_part(self, features: int) -> list[nn.Module]:
        classes = self.random.choice((2, 3, 4))
        modules: list[nn.Module] = []
        for _ in range(self.random.randrange(3)):
            gates = self.random.choice((3, 6, 9, 12))
            modules.append(self.dense(features, gates))
            features = gates if not self.chance(0.03) else gates + 1
            if self.chance(0.15):
                again = self.dense(gates, gates)
                modules += [again, again]
            modules += self.between()
        modules.append(self.dense(features, classes * self.random.choice((1, 2, 5))))
        modules = self.nest(modules, LogicStack)
        if self.chance(0.98):
            modules.append(GroupSum(classes if self.chance(0.98) else 7, self.random.choice((1.0, 2.5, 10.0))))
        return modules

    def conv_part(self, channels: int) -> list[nn.Module]:
        modules: list[nn.Module] = []
        pool = OrPool2d(self.random.choice((1, 2, 2, 3)))
        for _ in range(self.random.randrange(1, 3)):
            out = self.random.choice((1, 2, 4))
            depth = self.random.choice((1, 2, 3))
            options = self.layer_options()
            options["arity"] = min(options["arity"], 2)
            window, padding = self.random.choice(((1, 0), (2, 0), (3, 1), (3, "same")))
            given = {name: options.pop(name) for name in ("parametrization", "arity", "estimator") if name in options}
            options["parametrization"] = parametrize.make(given.pop("parametrization"), **given)
            layer = LogicConv2d(channels, out, window, tree_depth=depth, padding=padding, **options)
            with torch.no_grad():  # no entries that are equal but for rounding, between which pooling would choose
                layer.theta.add_(0.1 * torch.randn(layer.theta.shape))
            modules.append(layer)
            channels = out
            if self.chance(0.5):
                modules.append(pool if self.chance(0.6) else OrPool2d(2))
            modules += self.between()
        if self.chance(0.1):
            modules.insert(0, pool)
        return self.nest(modules, LogicConvStack)

    def between(self) -> list[nn.Module]:
        """What may stand between layers: nothing, mostly."""
        choice = self.random.random()
        if choice < 0.75:
            return []
        if choice < 0.85:
            return [nn.Identity()]
        if choice < 0.90:
            return [GateIntervention(0.5, "one"), nn.Dropout(0.5)]
        if choice < 0.96:
            return [nn.Sequential()]
        return [self.random.choice((nn.Sigmoid(), nn.Flatten(0), nn.ReLU(), nn.Linear(3, 3)))]

    def nest(self, modules: list[nn.Module], stack: type[Any]) -> list[nn.Module]:
        """Some of the modules inside sequences and stacks."""
        start = self.random.randrange(len(modules) + 1)
        end = self.random.randrange(start, len(modules) + 1)
        kinds = (stack, stack, stack, nn.Sequential, nn.Sequential, Backwards)
        kind = self.random.choice(kinds)
        inner = modules[start:end]
        nested = kind(inner) if kind is stack else kind(*inner)
        return [*modules[:start], nested, *modules[end:]] if self.chance(0.8) else modules

    def draw_model(self) -> nn.Module:
        encoder = self.draw_encoder()
        bits = self.shape[0] * (1 if encoder is None else encoder.count)
        modules: list[nn.Module] = [] if encoder is None else [encoder]
        if self.images:
            conv = self.conv_part(bits)
            modules += conv
            with torch.no_grad():
                try:
                    features = nn.Sequential(*conv).eval()(torch.zeros(1, bits, *self.shape[1:])).flatten(1).shape[1]
                except (ValueError, RuntimeError, IndexError):
                    features = 4
            modules.append(nn.Flatten() if self.chance(0.95) else nn.Flatten(1, 2))
            return self.finish(modules, self.dense_part(features), encoder, conv)
        if self.chance(0.2):
            modules.insert(0, nn.Flatten())
        if self.chance(0.2):
            modules.append(nn.Flatten())
        return self.finish(modules, self.dense_part(bits), encoder, [])

    def draw_encoder(self) -> Thermometer | None:
        if self.chance(0.35):
            return None
        count = self.random.choice((1, 2, 3))
        if self.chance(0.3):
            return Thermometer(torch.rand(self.shape[0], count))
        return Thermometer.even(count)

    def finish(
        self, front: list[nn.Module], back: list[nn.Module], encoder: Thermometer | None, conv: list[nn.Module]
    ) -> nn.Module:
        plain = all(isinstance(m, LogicDense) for m in back[:-1]) and isinstance(back[-1], GroupSum)
        if self.chance(0.3) and plain and len(back) > 1:
            stack = LogicConvStack(conv) if conv else None
            try:
                dense: list[Any] = back[:-1]
                head: Any = back[-1]
                return LogicNetwork(encoder, dense, head, conv=stack, input_shape=self.shape)
            except ValueError:
                pass
        if self.chance(0.2):
            front = [nn.Sequential(*front)]
        model = nn.Sequential(*front, *back)
        if self.chance(0.02):
            model.append(nn.Softmax(1))
        return model

    def add_hooks(self, model: nn.Module) -> None:
        """Hooks that count their calls, and some that change what they see; the same for a model and its twin."""
        chooser = random.Random(self.random.random())
        if chooser.random() < 0.6:
            return
        modules = [m for m in model.modules() if not list(m.children())] + list(model.modules())
        for _ in range(chooser.randrange(1, 3)):
            module = chooser.choice(modules)
            kind = chooser.choice(("forward", "change", "pre", "backward", "backward_pre", "patch"))
            self.add_hook(module, kind)

    def add_hook(self, module: nn.Module, kind: str) -> None:
        def count(*_: Any) -> None:
            self.calls.append(kind)

        if kind == "forward":
            module.register_forward_hook(count)
        elif kind == "change":
            module.register_forward_hook(lambda _m, _x, out: 1 - out)
        elif kind == "pre":
            module.register_forward_pre_hook(count)
        elif kind == "backward":
            module.register_full_backward_hook(count)
        elif kind == "backward_pre":
            module.register_full_backward_pre_hook(count)
        else:
            before = module.forward
            module.forward = lambda x: 1 - before(x)


def twin_of(model: nn.Module) -> nn.Module:
    """A copy in which stacks are plain sequences."""
    twin = copy.deepcopy(model)
    for module in twin.modules():
        if type(module) in (LogicStack, LogicConvStack):
            module.__class__ = nn.Sequential
    return twin


def outcome(model: nn.Module, x: Tensor, seed: int) -> Any:
    """Outputs and gradients, or what was raised."""
    torch.manual_seed(seed)
    try:
        out = model(x)
        parameters = [p for p in model.parameters() if p.requires_grad]
        weights = torch.linspace(0.1, 1.0, max(out.numel(), 1))[: out.numel()].view(out.shape)
        if out.requires_grad:
            (out * weights).sum().backward()
    except Exception as error:
        return type(error)
    return out.detach(), [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, type) or isinstance(other, type):
        return bool(one is other)
    close = torch.allclose(one[0], other[0], rtol=1e-4, atol=1e-4, equal_nan=True)
    pairs = zip(one[1], other[1], strict=True)
    return close and all(torch.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True) for a, b in pairs)


def check_stack(drawn: Drawn, seed: int) -> str:
    """Compare a model with its twin."""
    generator = torch.Generator().manual_seed(seed)
    batch = random.Random(seed).choice((1, 2, 17))
    x = torch.rand(batch, *drawn.shape, generator=generator)
    twin = twin_of(drawn.model)
    state = drawn.random.getstate()
    drawn.add_hooks(drawn.model)
    drawn.random.setstate(state)
    drawn.add_hooks(twin)
    handles = []
    if drawn.chance(0.05):
        handles.append(torch_module.register_module_forward_hook(lambda *_: drawn.calls.append("global")))
    if drawn.chance(0.05):
        handles.append(torch_module.register_module_full_backward_hook(lambda *_: drawn.calls.append("backward")))
    training = drawn.chance(0.5)
    outcomes, calls = [], []
    for model in (drawn.model, twin):
        model.train(training)
        drawn.calls = []
        outcomes.append(outcome(model, x, seed))
        calls.append(drawn.calls)
    for handle in handles:
        handle.remove()
    mine, plain = outcomes
    if not same(mine, plain):
        raise AssertionError(f"stack {mine} is not sequential {plain}\n{drawn.model}")
    if calls[0] != calls[1] and not isinstance(mine, type):
        raise AssertionError(f"hooks were called {calls[0]} and {calls[1]}\n{drawn.model}")
    return "refused" if isinstance(mine, type) else "ran"


def check_circuit(drawn: Drawn, seed: int) -> str:
    """Compare the circuit with the rounded model."""
    shape = drawn.shape if drawn.images or drawn.chance(0.5) else None
    if drawn.chance(0.03):
        shape = (*drawn.shape, 1)
    try:
        circuit = discretize(drawn.model, input_shape=shape)
    except REFUSALS:
        return "no circuit"
    bits = not any(isinstance(m, Thermometer) for m in drawn.model.modules())
    generator = np.random.default_rng(seed)
    x = generator.random((33, *drawn.shape), np.float32)
    if bits:
        x = x.round()
    head = next(m for m in drawn.model.modules() if isinstance(m, GroupSum))
    with rounded(drawn.model):
        counts = (drawn.model(torch.from_numpy(x)).double() * head.temperature).round().to(torch.int32).numpy()
    if not np.array_equal(circuit.scores(x), counts):
        raise AssertionError(f"the circuit is not the rounded model\n{drawn.model}")
    return "circuit"


def run(cases: int, seed: int) -> dict[str, int]:
    """Check so many models; raises with the case's number at the first difference."""
    counts = dict.fromkeys(("not built", "ran", "refused", "circuit", "no circuit"), 0)
    for case in range(seed, seed + cases):
        torch.manual_seed(case)
        try:
            drawn = Drawn(case)
        except REFUSALS:
            counts["not built"] += 1
            continue
        try:
            counts[check_stack(drawn, case)] += 1
            counts[check_circuit(drawn, case)] += 1
        except Exception as error:
            raise AssertionError(f"case {case}: {error}") from error
    return counts


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    given = [int(argument) for argument in sys.argv[1:3]]
    cases, first = [*given, *(2_000, 0)[len(given) :]]
    counted = run(cases, first)
    print(f"{cases} models, 0 differences: " + ", ".join(f"{n} {what}" for what, n in counted.items()))  # noqa: T201
