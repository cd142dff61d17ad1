"""Networks trained for a moment, and the tools that compile, simulate and prove what is exported of them."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import cross_entropy

from gatelight import data, export, native, ops
from gatelight.circuit import Circuit
from gatelight.config import ModelConfig, Optimization, RunConfig
from gatelight.data import Dataset, Split
from gatelight.export.rtl import widths
from gatelight.nn import GroupSum, LogicDense, LogicNetwork, Thermometer
from gatelight.parametrize import Init
from gatelight.training.run import TrainingRun

Answers = NDArray[np.int64]
Module = tuple[Circuit, int, bool, NDArray[np.uint8]]


def _lacking(reason: str) -> None:
    """A reason to skip, but on CI to fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and CI must have it")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def tool() -> Callable[..., str]:
    """The path of the first of these programs that is installed."""

    def find(*names: str) -> str:
        found = [path for path in map(shutil.which, names) if path]
        if not found:
            _lacking(f"{' or '.join(names)} is not installed")
        return found[0]

    return find


@pytest.fixture(scope="session")
def simd_paths() -> Callable[[], list[str]]:
    """The SIMD paths of the native library on this machine."""

    def find() -> list[str]:
        library = native.load()
        if library is None:
            _lacking(f"the native library is not there: {native.why_not()}")
        assert library is not None
        return str(library.gl_simd_available().decode()).split()

    return find


@pytest.fixture(scope="session", autouse=True)
def backend() -> Iterator[None]:
    """Trains with the native kernels where they are built, else quietly with the reference."""
    before, threads = os.environ.get("GATELIGHT_BACKEND", "auto"), torch.get_num_threads()
    ops.set_backend("reference" if native.load() is None else "cpu")
    # Layers this small are not worth a second thread.
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    ops.set_backend(before)


def _train(model: nn.Module, split: Split, steps: int, rate: float = 0.05) -> nn.Module:
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        rows = rng.integers(0, len(split), 64)
        loss = cross_entropy(model(torch.from_numpy(split.x[rows])), torch.from_numpy(split.y[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def _mixed(split: Split) -> nn.Sequential:
    """Arities 3, 1, 6 and 2, estimators of all kinds, thresholds of its own for every pixel."""
    pixels = torch.from_numpy(split.x).flatten(1)
    return nn.Sequential(
        nn.Flatten(),
        Thermometer.fit(pixels, 2),
        LogicDense(128, 150, arity=3, seed=1),
        LogicDense(150, 150, arity=1, estimator="sigmoid", seed=2),
        LogicDense(150, 150, arity=6, estimator="linear-st", seed=3),
        LogicDense(150, 150, estimator="sin-st", seed=4),
        GroupSum(10, 4.0),
    )


def _constant() -> LogicNetwork:
    """Every output is a constant, ones and zeros in every class."""
    first = LogicDense(64, 60, seed=1)
    last, zeros = (LogicDense(60, 60, init=Init(init, std=0.1), seed=2) for init in ("true", "false"))
    with torch.no_grad():
        last.theta[::7] = zeros.theta[::7]
    return LogicNetwork(Thermometer.even(1), [first, last], GroupSum(10, 2.0), input_shape=(1, 8, 8))


@pytest.fixture(scope="session")
def digits() -> Dataset:
    return data.load("digits")


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the run of the digits network is written."""
    return tmp_path_factory.mktemp("runs") / "digits"


@pytest.fixture(scope="session")
def trained(digits: Dataset, run_folder: Path) -> Callable[[str], tuple[nn.Module, Dataset]]:
    """The network of a name and its data; each is trained once, when it is first asked for."""
    made: dict[str, tuple[nn.Module, Dataset]] = {}

    def one_layer() -> nn.Module:
        layers = (nn.Flatten(), Thermometer.even(3), LogicDense(192, 250, estimator="sigmoid", seed=1))
        return _train(nn.Sequential(*layers, GroupSum(10, 3.0)), digits.train, 150)

    def mnist() -> Dataset:
        folder = os.environ.get("GATELIGHT_DATA", "")
        if not folder or data.check("mnist", folder, deep=False).state != "present":
            pytest.skip("GATELIGHT_DATA has no mnist")
        return data.load("mnist", folder, download=False)

    def run(config: RunConfig, dataset: Dataset, folder: Path) -> nn.Module:
        trainer = TrainingRun(config, dataset, folder)
        trainer.start()
        assert trainer.run()
        return trainer.model

    def make(name: str) -> tuple[nn.Module, Dataset]:
        if name == "mnist":
            dataset = mnist()
            part = Split(dataset.train.x[:4000], dataset.train.y[:4000])
            less = Dataset("mnist", part, Split(dataset.test.x[:500], dataset.test.y[:500]), dataset.classes, (), False)
            model = ModelConfig(layers=6, width=500, temperature=5.0)
            config = RunConfig("mnist", model, Optimization(steps=200, lr=0.05, eval_every=200))
            return run(config, less, run_folder.with_name("mnist")), less
        if name == "digits":
            model = ModelConfig(layers=3, width=200, temperature=3.0)
            config = RunConfig("digits", model, Optimization(steps=300, lr=0.05, eval_every=300))
            return run(config, digits, run_folder), digits
        if name == "mixed":
            return _train(_mixed(digits.train), digits.train, 150), digits
        return (one_layer() if name == "one_layer" else _constant()), digits

    def get(name: str) -> tuple[nn.Module, Dataset]:
        if name not in made:
            made[name] = make(name)
        return made[name]

    return get


def _command(*words: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def compile_c(tool: Callable[..., str]) -> Callable[..., Callable[..., Answers]]:
    """Compiles an exported circuit; what it returns gives the answers to samples, all at once or one by one."""

    def build(circuit: Circuit, folder: Path, optimize: str = "-O1") -> Callable[..., Answers]:
        gcc = tool("gcc", "cc")
        for file, text in export.c(circuit, "net").items():
            (folder / file).write_text(text)
        strict = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
        _command(gcc, *strict, optimize, "-shared", "-fPIC", "-o", "net.so", "net.c", cwd=folder)
        library = ctypes.CDLL(str(folder / "net.so"))
        size = re.search(r"#define NET_SCRATCH (\d+)", (folder / "net.h").read_text())
        assert size is not None
        scratch = np.zeros(int(size[1]), np.uint64)

        def run(x: NDArray[Any], one_by_one: bool = False) -> Answers:
            rows = np.ascontiguousarray(x.reshape(len(x), -1))
            scores, labels = np.full((len(x), circuit.classes), -77, np.int32), np.full(len(x), -77, np.int32)
            kind = "u8" if x.dtype == np.uint8 else "f32"
            if one_by_one:
                call = library[f"net_one_{kind}"]
                for index in range(len(x)):
                    labels[index] = call(_address(rows[index]), _address(scores[index]), _address(scratch))
            else:
                count = ctypes.c_size_t(len(x))
                call = library[f"net_batch_{kind}"]
                call(_address(rows), count, _address(scores), _address(labels), _address(scratch))
            return np.column_stack([scores, labels]).astype(np.int64)

        return run

    return build


def _address(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


# It prints what the module says and judges nothing: the answers are compared with those of the torch model.
_BENCH = """\
module {name}_show;
    reg [{inputs}-1:0] given, given_of [0:{count}-1];
    reg clk = 1'b0;
    wire [{scores}-1:0] scores;
    wire [{label}-1:0] label;
    integer i;
    {name} dut ({clock}.{port}(given), .scores(scores), .label(label));
    initial begin
        $readmemh("{name}.hex", given_of);
        for (i = 0; i < {count} + {latency}; i = i + 1) begin
            if (i < {count}) given = given_of[i];
            #1;
            if (i >= {latency}) $display("{name} %h %h", scores, label);
            clk = 1'b1;
            #1;
            clk = 1'b0;
        end
    end
endmodule
"""


def _write_verilog(folder: Path, name: str, module: Module) -> list[str]:
    """The module and a bench that shows its answers."""
    circuit, pipeline, encoder, x = module
    width = widths(circuit, encoder)
    bench = _BENCH.format(
        name=name,
        inputs=width.inputs,
        count=len(x),
        scores=width.score * circuit.classes,
        label=width.label,
        clock=".clk(clk), " if pipeline else "",
        port="features" if encoder else "bits",
        latency=export.latency(circuit, pipeline, encoder),
    )
    # The first feature or bit belongs at the right end of the number.
    digits = [row[::-1].tobytes().hex() if encoder else f"{int(''.join(map(str, row[::-1])), 2):x}" for row in x]
    (folder / f"{name}.hex").write_text("\n".join(digits) + "\n")
    (folder / f"{name}.v").write_text(export.verilog(circuit, name, pipeline, encoder))
    (folder / f"{name}_show.v").write_text(bench)
    return [f"{name}.v", f"{name}_show.v"]


def _read_verilog(said: str, name: str, circuit: Circuit) -> Answers:
    width, rows = widths(circuit).score, []
    for scores, label in re.findall(rf"^{name} (\w+) (\w+)$", said, re.MULTILINE):
        number = int(scores, 16)
        fields = [number >> width * c & (1 << width) - 1 for c in range(circuit.classes)]
        rows.append([*(f - (f >> width - 1 << width) for f in fields), int(label, 16)])
    return np.array(rows, np.int64)


@pytest.fixture(scope="session")
def simulate(tool: Callable[..., str]) -> Callable[[str, Path, dict[str, Module]], dict[str, Answers]]:
    """The answers of exported modules, by name.

    Each is a circuit, after how many levels it has registers, whether it has its encoder, and its features or bits.
    """

    def run(simulator: str, folder: Path, modules: dict[str, Module]) -> dict[str, Answers]:
        files = [file for name, module in modules.items() for file in _write_verilog(folder, name, module)]
        if simulator == "iverilog":
            iverilog, vvp = tool("iverilog"), tool("vvp")
            _command(iverilog, "-g2012", "-o", "all.vvp", *files, cwd=folder)
            said = _command(vvp, "-n", "all.vvp", cwd=folder)
        else:
            shown = "".join(f"    {name}_show of_{name}();\n" for name in modules)
            (folder / "top.v").write_text(f"module top;\n{shown}endmodule\n")
            # Compiling takes nearly all the time, and what is compiled runs for a moment.
            plain = "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0"
            options = ("--binary", "--timing", "--output-split", "0", "-MAKEFLAGS", plain)
            _command(tool("verilator"), *options, "--top-module", "top", "-Mdir", "built", "top.v", *files, cwd=folder)
            said = _command(folder / "built" / "Vtop", cwd=folder)
        return {name: _read_verilog(said, name, module[0]) for name, module in modules.items()}

    return run


def _blif_of_model(model: nn.Module) -> str:
    """The rounded layers as a netlist, entry by entry, with nothing of the circuit in between."""
    layers = [module for module in model.modules() if isinstance(module, LogicDense)]
    names = [f"x{k}" for k in range(layers[0].in_features)]
    lines = [".model net", " ".join([".inputs", *names])]
    lines.append(" ".join([".outputs", *(f"y{k}" for k in range(layers[-1].out_features))]))
    for depth, layer in enumerate(layers):
        stem = "y" if layer is layers[-1] else f"n{depth}_"
        for gate, (fanin, table) in enumerate(zip(layer.fanin.tolist(), layer.rounded_table().tolist(), strict=True)):
            # A gate that is never one has no lines, and ABC wants it to have no inputs either.
            operands = [names[net] for net in fanin] if any(table) else []
            lines.append(" ".join([".names", *operands, f"{stem}{gate}"]))
            lines += [f"{entry:0{layer.arity}b} 1" for entry, one in enumerate(table) if one]
        names = [f"{stem}{gate}" for gate in range(layer.out_features)]
    return "\n".join([*lines, ".end", ""])


@pytest.fixture(scope="session")
def abc_proves(tool: Callable[..., str]) -> Callable[[nn.Module, Path], bool]:
    """Whether ABC proves that a file holds the same outputs as a rounded model."""

    def prove(model: nn.Module, file: Path) -> bool:
        (file.parent / "model.blif").write_text(_blif_of_model(model))
        abc = tool("abc", "berkeley-abc", "yosys-abc")
        said = _command(abc, "-q", f"cec model.blif {file.name}", cwd=file.parent)
        verdict = re.search(r"Networks are (equivalent|NOT EQUIVALENT)", said)
        assert verdict, said
        return verdict[1] == "equivalent"

    return prove
