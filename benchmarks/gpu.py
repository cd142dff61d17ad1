"""The GPU kernels: equal to the reference, and how close to the bound of the cost model.

    python benchmarks/gpu.py                 the deep networks of docs/gpu.md, a table and results/gpu.json
    python benchmarks/gpu.py --case small    one case
    python benchmarks/gpu.py --model         only the computed bounds, without a GPU
    python benchmarks/gpu.py --check         only the comparison with the reference (also with TRITON_INTERPRET=1)

Nothing is measured unless values and gradients equal the reference first. Times are medians between CUDA events, of
forward and backward with the parameters, launched one by one and as a CUDA graph; the bound takes the bandwidth that
a large copy reaches on the same GPU. difflogic is measured as well if it is installed: the same widths and depth,
its own connections and its sixteen parameters for each gate.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import gpu_model
import torch
from torch import Tensor, nn

from gatelight import ops, parametrize
from gatelight.models import Parts, dense_layers
from gatelight.nn import LogicStack
from gatelight.ops.backends import triton
from gatelight.training import cuda_graphs
from gatelight.wiring import NAMED


@dataclass(frozen=True)
class Case:
    """A stack of dense layers and a batch."""

    features: int
    layers: int
    width: int
    batch: int
    repeat: int = 20


CASES = {
    "small": Case(784, 6, 8_000, 100, 50),
    "deep M, batch 1": Case(9_216, 80, 128_000, 1),
    "deep M, batch 25": Case(9_216, 80, 128_000, 25),
    "deep M, batch 100": Case(9_216, 80, 128_000, 100),
}


def make_stack(case: Case, parametrization: str, device: torch.device) -> LogicStack:
    """The network with linked hidden gates, as in our models, and with random wiring."""
    parts = Parts(parametrize.make(parametrization), wiring=NAMED["random"])
    widths = [case.width] * case.layers
    return LogicStack(dense_layers(case.features, widths, parts, torch.Generator().manual_seed(0))).to(device)


def differentiated(stack: LogicStack, x: Tensor, weights: Tensor) -> list[Tensor]:
    """The loss and the gradients of all parameters."""
    stack.zero_grad(set_to_none=True)
    loss = (stack(x) * weights).sum()
    loss.backward()
    return [loss.detach(), *[p.grad for p in stack.parameters() if p.grad is not None]]


def check(device: torch.device) -> None:
    """Exit unless kernels and reference agree in values and gradients, for both parametrizations and small batches."""
    for parametrization in ("iwp", "op"):
        for batch in (1, 25, 67):
            # The interpreter takes seconds for what a GPU does in an instant.
            case = Case(12, 2, 9, batch) if device.type == "cpu" else Case(784, 4, 8_000, batch)
            stack = make_stack(case, parametrization, device)
            x = torch.rand(batch, case.features, device=device).round().requires_grad_()
            weights = torch.randn(batch, case.width, device=device)
            got = [*differentiated(stack, x, weights), x.grad]
            x.grad = None
            ops.set_backend("reference")
            want = [*differentiated(stack, x, weights), x.grad]
            ops.set_backend("triton")
            for a, b in zip(got, want, strict=True):
                assert a is not None
                assert b is not None
                if not torch.allclose(a, b, rtol=1e-4, atol=1e-5 * float(b.abs().max())):
                    sys.exit(f"{parametrization}, batch {batch}: kernels and reference differ by {(a - b).abs().max()}")
    print("kernels equal the reference in values and gradients")


def seconds(function: Callable[[], object], repeat: int) -> float:
    """Median seconds between CUDA events."""
    for _ in range(3):
        function()
    times = []
    for _ in range(repeat):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        function()
        end.record()
        end.synchronize()
        times.append(1e-3 * float(begin.elapsed_time(end)))
    return statistics.median(times)


def copy_bandwidth() -> float:
    """Bytes read plus bytes written by a large copy, per second."""
    source = torch.ones(1 << 28, device="cuda")
    target = torch.empty_like(source)
    return 2 * 4 * source.numel() / seconds(lambda: target.copy_(source), 10)


def measure(case: Case, device: gpu_model.Gpu) -> dict[str, float]:
    """Seconds of a step, by itself and as a graph, with the bound for either parametrization."""
    measured: dict[str, float] = {}
    for parametrization, parameters in (("iwp", 4), ("op", 16)):
        stack = make_stack(case, parametrization, torch.device("cuda"))
        x = torch.rand(case.batch, case.features, device="cuda").round()
        weights = torch.randn(case.batch, case.width, device="cuda")

        def step(stack: LogicStack = stack, x: Tensor = x, weights: Tensor = weights) -> list[Tensor]:
            return differentiated(stack, x, weights)

        net = gpu_model.Network(case.features, case.layers, case.width, parameters)
        bound = gpu_model.bound(net, case.batch, device)
        launched = seconds(step, case.repeat)
        _, replay = cuda_graphs.record(step)
        graphed = seconds(replay, case.repeat)
        values = {"bound": bound, "launched": launched, "graph": graphed, "fraction": bound / graphed}
        measured |= {f"{parametrization} {name}": value for name, value in values.items()}
    if importlib.util.find_spec("difflogic") is not None:
        measured["difflogic"] = _difflogic(case)
    return measured


def _difflogic(case: Case) -> float:
    from difflogic import LogicLayer

    widths = [case.features, *[case.width] * case.layers]
    layers = [LogicLayer(a, b, device="cuda", implementation="cuda") for a, b in itertools.pairwise(widths)]
    model = nn.Sequential(*layers)
    x = torch.rand(case.batch, case.features, device="cuda").round()
    weights = torch.randn(case.batch, case.width, device="cuda")

    def step() -> None:
        model.zero_grad(set_to_none=True)
        (model(x) * weights).sum().backward()

    return seconds(step, case.repeat)


def show(results: dict[str, dict[str, float]]) -> None:
    """Print a table in Markdown, in milliseconds."""
    names = list(next(iter(results.values())))
    print("| case, ms | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for case, values in results.items():
        cells = [f"{v:.0%}" if name.endswith("fraction") else f"{1e3 * v:.2f}" for name, v in values.items()]
        print(f"| {case} | " + " | ".join(cells) + " |")


def main() -> None:
    """Parse, check, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("results/gpu.json"))
    arguments = parser.parse_args()
    if arguments.model:
        print(gpu_model.table())
        return
    reason = triton.why_not()
    if reason is not None:
        sys.exit(f"the GPU kernels cannot run here: {reason}; --model prints the computed bounds without a GPU")
    ops.set_backend("triton")
    check(torch.device("cpu" if triton.interpreted() else "cuda"))
    if arguments.check:
        return
    if triton.interpreted():
        sys.exit("TRITON_INTERPRET=1 runs the kernels on the CPU: only --check makes sense")
    device = gpu_model.Gpu(torch.cuda.get_device_name(), copy_bandwidth())
    print(f"{device.name}, copies at {1e-9 * device.memory:.0f} GB/s; milliseconds of forward and backward\n")
    results = {name: measure(CASES[name], device) for name in arguments.case or CASES}
    show(results)
    arguments.out.parent.mkdir(exist_ok=True)
    facts = {"gpu": device.name, "bytes_per_s": device.memory, "torch": torch.__version__}
    cases = {name: {"case": asdict(CASES[name]), "seconds": values} for name, values in results.items()}
    arguments.out.write_text(json.dumps({"machine": facts, "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()
