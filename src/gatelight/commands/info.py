"""``gatelight info``."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
from typing import Any

from gatelight import __version__
from gatelight.runtime import usable_cores

_EXAMPLES = """\
examples:
  gatelight info
  GATELIGHT_BACKEND=reference gatelight info              shows the effect of a variable
"""


def add_parsers(commands: Any) -> None:
    """Add this family's parsers."""
    info = commands.add_parser(
        "info", help="versions, backends and cores: what to put in a bug report", epilog=_EXAMPLES
    )
    info.set_defaults(run=run_info, parser=info)


def run_info(_args: argparse.Namespace) -> int:
    """Print one fact per line."""
    sys.stdout.write("".join(f"{name:<16}{value}\n" for name, value in _facts()))
    return 0


def _facts() -> list[tuple[str, str]]:
    facts = [
        ("gatelight", __version__),
        ("python", f"{platform.python_version()} on {platform.platform()}"),
        ("cores", f"{usable_cores()} usable of {os.cpu_count()}"),
    ]
    for package in ("numpy", "safetensors", "torch", "rich", "matplotlib", "scikit-learn", "tensorboard", "triton"):
        try:
            facts.append((package, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            facts.append((package, "not installed"))
    facts.append(("engine", _engine()))
    try:
        import torch
    except ModuleNotFoundError:
        facts.append(("training", "needs torch: pip install 'gatelight[train]'"))
    else:
        gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none that torch can use"
        facts += [("torch threads", str(torch.get_num_threads())), *_backend(), ("GPU", gpu), ("GPU backend", _gpu())]
    facts.append(("data folder", os.environ.get("GATELIGHT_DATA", "user cache (GATELIGHT_DATA is not set)")))
    return facts


def _engine() -> str:
    """What runs circuits here; needs no torch."""
    from gatelight import native
    from gatelight.circuit.random import layered_circuit
    from gatelight.engine import Engine, available

    if not available():
        return f"only numpy: {native.why_not() or 'the native library has no engine'}"
    stats = Engine(layered_circuit(2, (2,))).stats
    return f"native, {stats.simd}, {'machine code' if stats.code_bytes else 'interpreted'}"


def _gpu() -> str:
    from gatelight.ops import dispatch
    from gatelight.ops.backends import triton

    reason = "GATELIGHT_BACKEND=reference" if dispatch.is_reference_forced() else triton.why_not()
    if reason is None:
        steps = "off (GATELIGHT_CUDA_GRAPHS=0)" if os.environ.get("GATELIGHT_CUDA_GRAPHS") == "0" else "on"
        interpreted = ", interpreted on the CPU" if triton.interpreted() else ""
        return f"Triton kernels{interpreted}; CUDA graphs {steps}"
    return f"not used: {reason}"


def _backend() -> list[tuple[str, str]]:
    from gatelight import native, ops
    from gatelight.ops.backends import cpu

    if native.load() is None:
        return [("backend", f"reference (plain torch): {native.why_not()}")]
    paths = ", ".join(cpu.available_simd())
    chosen = "native kernels" if ops.get_backend() == "cpu" else "reference (plain torch), as GATELIGHT_BACKEND says"
    return [("backend", chosen), ("SIMD", f"{cpu.simd()} of {paths}"), ("kernel threads", str(cpu.get_threads()))]
