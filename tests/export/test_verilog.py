"""The exported Verilog, simulated by Icarus and by Verilator, gives the scores and labels of the circuit."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gatelight import export
from gatelight.circuit import Circuit
from gatelight.circuit.random import layered_circuit
from gatelight.export.rtl import widths

Samples = Callable[[Circuit, int], NDArray[np.uint8]]
Tool = Callable[..., str]


def _run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False
    )


def _variants(circuits: dict[str, Circuit]) -> list[tuple[str, Circuit, int, bool]]:
    """Each circuit combinational and pipelined, with and without the encoder, not all of the four for each."""
    made = []
    for index, (name, circuit) in enumerate(circuits.items()):
        encoder = index % 2 == 0
        made.append((f"{name}_flat", circuit, 0, encoder))
        made.append((f"{name}_piped", circuit, 1 + index % 4, not encoder))
    return made


def _write(
    folder: Path, name: str, circuit: Circuit, pipeline: int, encoder: bool, features: NDArray[np.uint8]
) -> list[str]:
    vectors = features if encoder else circuit.bits(features)
    (folder / f"{name}.v").write_text(export.verilog(circuit, name, pipeline, encoder))
    (folder / f"{name}_tb.v").write_text(export.verilog_testbench(circuit, vectors, name, pipeline, encoder))
    return [f"{name}.v", f"{name}_tb.v"]


def _simulate_icarus(tool: Tool, folder: Path, files: list[str]) -> subprocess.CompletedProcess[str]:
    iverilog, vvp = tool("iverilog"), tool("vvp")
    built = _run(iverilog, "-g2012", "-Wall", "-o", "all.vvp", *files, cwd=folder)
    assert (built.returncode, built.stdout) == (0, "")
    return _run(vvp, "-n", "all.vvp", cwd=folder)


def _simulate_verilator(tool: Tool, folder: Path, files: list[str]) -> subprocess.CompletedProcess[str]:
    """Verilator wants one top module, so one is made of all testbenches."""
    verilator = tool("verilator")
    benches = [file.removesuffix(".v") for file in files if file.endswith("_tb.v")]
    (folder / "top.v").write_text(f"module top;\n{''.join(f'{bench} of_{bench}();' for bench in benches)}\nendmodule\n")
    # Compiling takes nearly all the time, and what is compiled runs for a moment.
    plain = "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0"
    options = ("--binary", "--timing", "-MAKEFLAGS", plain, "--top-module", "top", "-Mdir", "built")
    built = _run(verilator, *options, "top.v", *files, cwd=folder)
    assert built.returncode == 0, built.stdout
    return _run(folder / "built" / "Vtop", cwd=folder)


def test_icarus(tool: Tool, circuits: dict[str, Circuit], samples: Samples, tmp_path: Path) -> None:
    files = []
    variants = _variants(circuits)
    for name, circuit, pipeline, encoder in variants:
        files += _write(tmp_path, name, circuit, pipeline, encoder, samples(circuit, 20))
    done = _simulate_icarus(tool, tmp_path, files)
    assert done.returncode == 0, done.stdout
    assert sorted(done.stdout.split("\n")) == sorted(["", *(f"PASS {name}: 20 vectors" for name, *_ in variants)])


def test_verilator(tool: Tool, circuits: dict[str, Circuit], samples: Samples, tmp_path: Path) -> None:
    files = []
    chosen = ("one_layer", "constant_outputs", "no_outputs", "hostile", "odd1", "odd2", "odd3")
    variants = _variants({name: circuits[name] for name in chosen})
    for name, circuit, pipeline, encoder in variants:
        files += _write(tmp_path, name, circuit, pipeline, encoder, samples(circuit, 10))
    done = _simulate_verilator(tool, tmp_path, files)
    assert done.returncode == 0, done.stdout
    for name, *_ in variants:
        assert f"PASS {name}: 10 vectors" in done.stdout


@pytest.mark.parametrize(
    ("simulate", "pipeline"), [(_simulate_icarus, 0), (_simulate_icarus, 2), (_simulate_verilator, 2)]
)
def test_a_flipped_table_bit_fails_the_testbench(
    tool: Tool,
    circuits: dict[str, Circuit],
    samples: Samples,
    spoil: Callable[..., Circuit],
    tmp_path: Path,
    simulate: Callable[..., subprocess.CompletedProcess[str]],
    pipeline: int,
) -> None:
    circuit = circuits["one_layer"]
    features = samples(circuit, 20)
    files = _write(tmp_path, "net", circuit, pipeline, True, features)
    (tmp_path / "net.v").write_text(export.verilog(spoil(circuit, features), "net", pipeline, True))
    done = simulate(tool, tmp_path, files)
    assert done.returncode != 0
    assert "FAIL net:" in done.stdout
    assert "PASS" not in done.stdout


def test_lint(tool: Tool, circuits: dict[str, Circuit], tmp_path: Path) -> None:
    verilator = tool("verilator")
    for name, circuit, pipeline, encoder in _variants(circuits):
        (tmp_path / f"{name}.v").write_text(export.verilog(circuit, name, pipeline, encoder))
        said = _run(verilator, "--lint-only", "-Wall", f"{name}.v", cwd=tmp_path)
        assert (said.returncode, said.stdout) == (0, ""), name


def test_plain_verilog(tool: Tool, circuits: dict[str, Circuit], tmp_path: Path) -> None:
    iverilog = tool("iverilog")
    files = []
    for name, circuit, pipeline, encoder in _variants(circuits):
        (tmp_path / f"{name}.v").write_text(export.verilog(circuit, name, pipeline, encoder))
        files.append(f"{name}.v")
    said = _run(iverilog, "-g2001", "-Wall", "-t", "null", *files, cwd=tmp_path)
    assert (said.returncode, said.stdout) == (0, "")


def test_yosys(tool: Tool, circuits: dict[str, Circuit], tmp_path: Path) -> None:
    yosys = tool("yosys")
    (tmp_path / "net.v").write_text(export.verilog(circuits["mixed"], "net", 3, True))
    said = _run(
        yosys,
        "-q",
        "-p",
        "read_verilog net.v; hierarchy -check -top net; proc; flatten; opt; check -assert",
        cwd=tmp_path,
    )
    assert (said.returncode, said.stdout) == (0, "")


def test_latency_counts_gates_adders_and_comparators() -> None:
    # Two layers of gates, sums of 4 in two levels, two classes to compare: five levels, six with the encoder.
    circuit = layered_circuit(8, (12, 8), classes=2, seed=1)
    circuit = replace(circuit, table=np.full(20, 0b0110, np.uint64), fanin=np.where(circuit.fanin < 8, [0, 1], [8, 9]))
    assert [export.latency(circuit, n) for n in (0, 1, 2, 5, 99)] == [0, 5, 3, 1, 1]
    assert [export.latency(circuit, n, encoder=True) for n in (0, 1, 2, 5, 99)] == [0, 6, 3, 2, 1]


def test_latency_is_exact(tool: Tool, samples: Samples, tmp_path: Path) -> None:
    circuit = layered_circuit(10, (30, 30), classes=3, seed=2)
    files = _write(tmp_path, "net", circuit, 1, False, samples(circuit, 30))
    bench = (tmp_path / "net_tb.v").read_text()
    right = f"LATENCY = {export.latency(circuit, 1)};"
    assert right in bench
    for off in (-1, 1):
        (tmp_path / "net_tb.v").write_text(bench.replace(right, f"LATENCY = {export.latency(circuit, 1) + off};"))
        assert _simulate_icarus(tool, tmp_path, files).returncode != 0


def test_nets_are_scalars(circuits: dict[str, Circuit]) -> None:
    text = export.verilog(circuits["six_layers"], pipeline=2)
    assert "wire n150 = " in text
    assert text.count("bits[") <= circuits["six_layers"].inputs


@pytest.mark.parametrize(
    ("bias", "width"), [([0, 0], 4), ([1, 0], 4), ([4, 0], 5), ([-8, 0], 4), ([-9, 0], 5), ([-(2**31), 2**31 - 5], 32)]
)
def test_scores_are_as_wide_as_needed(bias: list[int], width: int) -> None:
    circuit = replace(layered_circuit(4, (8,), classes=2), bias=np.array(bias, np.int32))
    assert widths(circuit).score == width


@pytest.mark.parametrize("name", ["bits", "label", "n7", "s1_2_3", "always", "int", "a-b", "net;"])
def test_bad_names_are_refused(circuits: dict[str, Circuit], name: str) -> None:
    with pytest.raises(ValueError, match="name must"):
        export.verilog(circuits["one_layer"], name)


@pytest.mark.parametrize("pipeline", [-1, 1.5, True])
def test_bad_pipelines_are_refused(circuits: dict[str, Circuit], pipeline: int) -> None:
    with pytest.raises(ValueError, match="pipeline must be"):
        export.verilog(circuits["one_layer"], pipeline=pipeline)


def test_bad_vectors_are_refused(circuits: dict[str, Circuit]) -> None:
    circuit = circuits["one_layer"]
    with pytest.raises(ValueError, match="at least one"):
        export.verilog_testbench(circuit, np.zeros((0, circuit.inputs), np.uint8))
    with pytest.raises(ValueError, match="uint8"):
        export.verilog_testbench(circuit, np.zeros((1, circuit.features)), encoder=True)
