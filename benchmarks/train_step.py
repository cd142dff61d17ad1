"""Forward and backward of logic networks, parameters included, against rivals in the same run.

    python benchmarks/train_step.py                    all cases, a table and results/train_step.json
    python benchmarks/train_step.py --case mnist-s     one case
    python benchmarks/train_step.py --quick            few repetitions

Times are CPU time of one thread; ``--threads`` adds wall time at many threads. Steps are interleaved, as they
follow each other in training: each is repeated for a while before it is timed for as long. Medians over the rounds.
Nothing is reported unless the kernels' values and gradients equal the reference first. Rivals compute the same network
with its gates in the order in which they were drawn; ours have hidden gates linked (wiring/linking.py), as in models.
Wide layers are wired as in our models: every second one inside clusters; "random wiring" is without. With both
cifar-s and cifar-m among the cases, their steps are also interleaved, to show how time grows with the gates.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import conv_step
import machine
import torch
from torch import Tensor, nn

from gatelight import ops, parametrize
from gatelight.models import Parts, dense_layers
from gatelight.nn import LogicDense, LogicStack
from gatelight.ops.backends import cpu
from gatelight.wiring import NAMED
from gatelight.wiring.clustered import WIDE


@dataclass(frozen=True)
class Case:
    """A stack of dense layers and a batch."""

    features: int
    layers: int
    width: int
    batch: int
    arity: int = 2
    repeat: int = 15

    @property
    def gates(self) -> int:
        """Gates of all layers."""
        return self.layers * self.width


CASES = {
    "mnist-s": Case(784, 6, 8_000, 128, repeat=31),
    "cifar-s": Case(9_216, 4, 12_000, 100, repeat=21),
    "cifar-m": Case(9_216, 4, 128_000, 100, repeat=5),
    "deep, batch 1": Case(9_216, 80, 12_000, 1, repeat=15),
    "deep": Case(9_216, 80, 12_000, 100, repeat=5),
    "arity 4": Case(784, 3, 8_000, 128, arity=4, repeat=9),
    "arity 6": Case(784, 2, 4_000, 128, arity=6, repeat=9),
}


class FeatureMajorTorch(nn.Module):
    """Two-input layers in plain torch: row gathers and multiply-adds on [features, batch], gradients by autograd.

    Args:
        layers: The layers to copy.
        fused: Three ``addcmul`` instead of the polynomial in its usual form.
    """

    def __init__(self, layers: list[LogicDense], fused: bool) -> None:
        super().__init__()
        self.theta = nn.ParameterList(layer.theta.detach().clone() for layer in layers)
        self.rows = [layer.fanin.long().unbind(1) for layer in layers]
        self.fused = fused

    def forward(self, x: Tensor) -> Tensor:
        """[features, batch] -> [gates, batch]."""
        for theta, (first, second) in zip(self.theta, self.rows, strict=True):
            t0, t1, t2, t3 = (0.5 + 0.5 * torch.sin(theta)).unsqueeze(2).unbind(1)
            c1, c2, c3 = t1 - t0, t2 - t0, t3 - t2 - t1 + t0
            p, q = x.index_select(0, first), x.index_select(0, second)
            if self.fused:
                x = torch.addcmul(torch.addcmul(t0, c1, q), p, torch.addcmul(c2, c3, q))
            else:
                x = t0 + c1 * q + c2 * p + c3 * p * q
        return x


#: Seconds of a round, with rivals that take up to 20 times as long.
RIVALS_TURN = 0.1

#: Groups of the last layer if it is wired in clusters.
CLASSES = 10


def make_layers(case: Case, parametrization: str = "iwp", wiring: str = "clustered") -> list[LogicDense]:
    """The case's layers with new connections and parameters, linked and wired as in our models."""
    parts = Parts(parametrize.make(parametrization, arity=case.arity), wiring=NAMED[wiring])
    generator = torch.Generator().manual_seed(0)
    return dense_layers(case.features, [case.width] * case.layers, parts, generator, classes=CLASSES)


def drawn_layers(case: Case) -> list[LogicDense]:
    """The case's layers with their gates in the order in which they were drawn."""
    widths = [case.features] + [case.width] * case.layers
    return [LogicDense(*widths[i : i + 2], arity=case.arity, seed=i) for i in range(case.layers)]


def step(model: nn.Module, x: Tensor, weights: Tensor) -> Callable[[], None]:
    """One forward and backward pass with a fixed gradient of the outputs."""

    def run() -> None:
        for parameter in model.parameters():
            parameter.grad = None
        model(x).backward(weights)

    return run


def forward_only(model: nn.Module, x: Tensor) -> Callable[[], object]:
    """One forward pass that keeps what backward needs."""
    return lambda: model(x)


def on_reference(function: Callable[[], None]) -> Callable[[], None]:
    """The same on the reference backend."""

    def run() -> None:
        ops.set_backend("reference")
        try:
            function()
        finally:
            ops.set_backend("auto")

    return run


def check_equal(case: Case) -> None:
    """Exit with an error unless values and gradients of the kernels equal the reference on a slice of the batch."""
    layers = make_layers(case)
    x = torch.rand(min(case.batch, 20), case.features)
    weights = torch.randn(len(x), case.width)
    found = []
    for wrap in (lambda f: f, on_reference):
        model = LogicStack(layers)
        wrap(step(model, x, weights))()
        found.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    for mine, wanted in zip(*found, strict=True):
        scale = float(wanted.abs().max())
        if not torch.allclose(mine, wanted, rtol=1e-3, atol=1e-4 * scale):
            sys.exit(f"refused: gradients differ from the reference by {float((mine - wanted).abs().max()):g}")


def run_case(name: str, case: Case, threads: int, quick: bool) -> dict[str, object]:
    """Measure one case against its rivals."""
    check_equal(case)
    repeat = max(3, case.repeat // 5) if quick else case.repeat
    x = torch.randint(0, 2, (case.features, case.batch)).float().t()
    weights = torch.randn(case.width, case.batch).t()
    layers = make_layers(case)
    stack = LogicStack(layers)
    functions: dict[str, Callable[[], object]] = {
        "gatelight": step(stack, x, weights),
        "gatelight, forward": forward_only(stack, x),
        "gatelight, keep": step(LogicStack(layers, "keep"), x, weights),
        "gatelight, recompute": step(LogicStack(layers, "recompute"), x, weights),
        "gatelight, layer by layer": step(nn.Sequential(*layers), x, weights),
        "gatelight, OP": lambda: None,
    }
    if case.arity <= 2:
        original = LogicStack(make_layers(case, "op"))
        functions["gatelight, OP"] = step(original, x, weights)
        functions["gatelight, OP, forward"] = forward_only(original, x)
    else:
        del functions["gatelight, OP"]
    if case.width >= WIDE:
        functions["gatelight, random wiring"] = step(LogicStack(make_layers(case, wiring="random")), x, weights)
    seconds = machine.sustained(functions, repeat)
    slow: dict[str, Callable[[], object]] = {"gatelight": functions["gatelight"]}
    drawn = drawn_layers(case)
    slow["reference"] = on_reference(step(LogicStack(drawn_layers(case)), x, weights))
    if case.arity == 2:
        slow["plain torch"] = step(FeatureMajorTorch(drawn, fused=False), x.t(), weights.t())
        slow["plain torch, addcmul"] = step(FeatureMajorTorch(drawn, fused=True), x.t(), weights.t())
    if torchlogix := _torchlogix(case):
        slow["torchlogix"] = step(torchlogix, x.contiguous(), weights)
    rivals = machine.sustained(slow, max(3, repeat // 4), RIVALS_TURN)
    ratios = {other: value / rivals["gatelight"] for other, value in rivals.items() if other != "gatelight"}
    cpu.set_threads(threads)
    wall = machine.sustained({"wall": functions["gatelight"]}, repeat, clock=time.monotonic)["wall"]
    cpu.set_threads(1)
    return {
        "case": asdict(case),
        "milliseconds": {key: round(1e3 * value, 3) for key, value in (seconds | rivals).items()},
        "times as fast as": {key: round(value, 2) for key, value in ratios.items()},
        f"wall milliseconds at {threads} threads": round(1e3 * wall, 3),
    }


def growth(repeat: int) -> dict[str, float]:
    """Milliseconds of a step of four layers of 12,000 and of 128,000 gates, measured interleaved, and their ratios."""
    functions: dict[str, Callable[[], object]] = {}
    for name in ("cifar-s", "cifar-m"):
        case = CASES[name]
        x = torch.randint(0, 2, (case.features, case.batch)).float().t()
        weights = torch.randn(case.width, case.batch).t()
        functions[name] = step(LogicStack(make_layers(case)), x, weights)
    seconds = machine.sustained(functions, repeat, RIVALS_TURN)
    times = seconds["cifar-m"] / seconds["cifar-s"]
    gates = CASES["cifar-m"].gates / CASES["cifar-s"].gates
    return {
        **{name: round(1e3 * value, 3) for name, value in seconds.items()},
        "times the gates": round(gates, 2),
        "times the time": round(times, 2),
        "time of a gate": round(times / gates, 3),
    }


def _torchlogix(case: Case) -> nn.Module | None:
    """The same network in torchlogix if it is installed (0.2.2 needs Python 3.12)."""
    if case.arity != 2 or importlib.util.find_spec("torchlogix") is None:
        return None
    from torchlogix.layers import LogicDense as Theirs  # type: ignore[import-not-found]

    widths = [case.features] + [case.width] * case.layers
    return nn.Sequential(
        *(Theirs(widths[i], widths[i + 1], parametrization="raw", device="cpu") for i in range(case.layers))
    )


#: Multiply-adds of a two-input gate and sample: 3 forward; backward 4 for the input gradients, 2 to add them up,
#: 4 for the four sums.
MULTIPLY_ADDS = 13
#: Bytes through the caches for a two-input gate and sample: forward reads p, q and writes out; backward reads the
#: out-gradient, p, q and reads and writes two rows of the input gradient.
CACHE_BYTES = 4 * (3 + 3 + 4)


def show(
    results: dict[str, dict[str, object]], facts: dict[str, str | int | float], grows: dict[str, float] | None
) -> None:
    """Print the table."""
    print("  ".join(f"{key}: {value}" for key, value in facts.items()))
    for name, result in results.items():
        if name in conv_step.CASES:
            conv_step.show(name, result, facts)
            continue
        case = CASES[name]
        milliseconds = result["milliseconds"]
        assert isinstance(milliseconds, dict)
        print(f"\n{name}: {case.features} -> {case.layers} x {case.width:,}, arity {case.arity}, batch {case.batch}")
        for key, value in milliseconds.items():
            ratio = value / milliseconds["gatelight"]
            print(f"  {key:<30}{value:>10.2f} ms  {ratio:>7.2f} x")
        if case.arity == 2:
            work = case.gates * case.batch / (milliseconds["gatelight"] / 1e3) / 1e9
            adds, moved = MULTIPLY_ADDS * work, CACHE_BYTES * work
            of_peak = adds / float(facts["multiply_adds_g_per_s"])
            of_copy = moved / float(facts["copy_gb_per_s"])
            print(f"  {adds:.1f} G multiply-adds/s, {100 * of_peak:.0f}% of a matrix product's")
            print(f"  {moved:.0f} GB/s through the caches, {of_copy:.1f} x the copy bandwidth of memory")
    if grows:
        print(
            f"\ncifar-m interleaved with cifar-s: {grows['cifar-m']:.1f} and {grows['cifar-s']:.2f} ms, "
            f"{grows['times the time']:.1f} times the time for {grows['times the gates']:.1f} times the gates"
        )
    print(f"\npeak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def main() -> None:
    """Run the requested cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=[*CASES, *conv_step.CASES], help="a case (default: all)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="threads of the wall time")
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--out", type=Path, default=Path("results/train_step.json"))
    arguments = parser.parse_args()
    if ops.get_backend() != "cpu":
        sys.exit("the native kernels are missing; see 'gatelight info'")
    if importlib.util.find_spec("torchlogix") is None:
        print("torchlogix is not installed: left out")
    torch.set_num_threads(1)
    cpu.set_threads(1)
    facts = machine.describe() | {"simd": cpu.simd()}
    results = {}
    for name in arguments.case or [*CASES, *conv_step.CASES]:
        if name in conv_step.CASES:
            results[name] = conv_step.run_case(conv_step.CASES[name], arguments.threads, arguments.quick)
        else:
            results[name] = run_case(name, CASES[name], arguments.threads, arguments.quick)
        print(f"measured {name}", file=sys.stderr)
    grows = growth(5 if arguments.quick else 21) if {"cifar-s", "cifar-m"} <= results.keys() else None
    show(results, facts, grows)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"machine": facts, "cases": results, "growth": grows}, indent=1) + "\n")
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
