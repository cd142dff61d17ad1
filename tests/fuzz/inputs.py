"""What circuits take: drawn inputs through ``Circuit``, ``Engine`` and the exported C against a slow definition.

    python tests/fuzz/inputs.py [cases] [seed]

Each case is a circuit of some kind of feature and an array of some dtype, layout, shape and range. Circuit and engine,
interpreted and as machine code, must give the scores that the definition below gives, or refuse with one and the same
message what it refuses. What is taken goes through the exported C as well. Case n of a seed is the only case of seed
+ n, which is what a difference is reported with.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatelight import export
from gatelight.circuit import Circuit
from gatelight.circuit.features import KINDS
from gatelight.circuit.random import random_circuit
from gatelight.engine import Engine, available

#: Cases that share a circuit, and circuits that share a library of exported C.
CASES, CIRCUITS = 25, 40
INTEGERS = ("u1", "u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", ">i2", ">u4", ">i8")
FLOATS = ("f2", "f4", "f4", "f8", "f8", "g", ">f2", ">f4", ">f8")
OTHERS = ("O", "c8", "c16", "U", "S", "M8[s]", "m8[s]")
RANGES = ("in", "in", "only 0 and 1", "one odd", "some odd", "bytes", "any")
SHAPES = ("flat", "flat", "shaped", "shaped", "plane", "empty", "single", "wrong")
BATCHES = (1, 1, 2, 3, 7, 20, 64, 65, 70)
WHOLE = (-1, 2, 17, 127, 128, 254, 255, 256, -128, 2**15, 2**31 - 1, -(2**31), 2**53 + 1, 2**63)
REAL = (
    np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e-45, -1e-45, -1e-300, 1e300, 3.4e38, -3.5e38, 1 + 2**-52, 1 + 2**-23,
    1 - 2**-53, 1 - 2**-24, 0.5, 0.5 + 2**-30, 17.0, 255.0, -1.0,
)  # fmt: skip


def draw_circuit(number: int) -> Circuit:
    """A small circuit with thresholds on, between and beyond the values of its kind."""
    rng = np.random.default_rng([1, number])
    kind = KINDS[number % 3]
    shape = [(), (1, 2, 3), (1, 4, 4), (3, 2, 2), (2, 5), (6,), (1, 1, 1), (70,)][int(rng.integers(8))]
    features = int(np.prod(shape)) if shape else int(rng.choice([0, 1, 3, 9, 64, 67]))
    inputs = int(rng.integers(1, 20)) if features else 0
    circuit = random_circuit(
        inputs,
        int(rng.integers(1, 20)),
        outputs=int(rng.integers(1, 20)),
        classes=int(rng.integers(1, 4)),
        arities=(0, 1, 2, 2, 3, 6),
        seed=number,
    )
    steps = np.arange(256, dtype=np.float32) / np.float32(255 if kind == "bytes" else 1)
    odd = np.array([-1, 0, 0.25, 0.5, 1, 7.5, 300, np.inf, -np.inf], np.float32)
    threshold = np.where(rng.random(inputs) < 0.5, rng.choice(odd, inputs), rng.choice(steps, inputs))
    return replace(
        circuit,
        features=features,
        encoder_feature=rng.integers(0, max(1, features), inputs).astype(np.int32),
        encoder_threshold=np.where(rng.random(inputs) < 0.4, np.float32(0.5), threshold).astype(np.float32),
        feature_shape=shape,
        feature_kind=kind,
        bias=rng.integers(-3, 4, circuit.classes).astype(np.int32),
    )


def draw_shape(circuit: Circuit, rng: np.random.Generator) -> tuple[int, ...]:
    batch = int(rng.choice(BATCHES)) if rng.random() < 0.97 else 600
    shape, flat = circuit.feature_shape, (circuit.features,)
    match str(rng.choice(SHAPES)):
        case "flat":
            return (batch, *flat)
        case "shaped":
            return (batch, *(shape or flat))
        case "plane":
            return (batch, *(shape[1:] or flat))
        case "empty":
            return (0, *(shape if shape and rng.random() < 0.5 else flat))
        case "single":
            return shape if shape and rng.random() < 0.5 else flat
    near = (shape[::-1], (*shape, 1), (1, *shape), (circuit.features + 1,), (max(0, circuit.features - 1),), (0,), ())
    return (batch, *near[int(rng.integers(len(near)))]) if rng.random() < 0.9 else ()


def draw_values(circuit: Circuit, rng: np.random.Generator) -> NDArray[Any]:
    """An array of some shape, range and dtype, in C order."""
    shape = draw_shape(circuit, rng)
    which = rng.random()
    dtype = np.dtype(str(rng.choice(FLOATS if which < 0.45 else INTEGERS if which < 0.85 else OTHERS)))
    if which > 0.98:
        dtype = np.dtype(bool)
    chosen = str(rng.choice(RANGES))
    whole = dtype.kind in "iu"
    bits = rng.integers(0, 2, shape)
    x: NDArray[Any]
    if chosen == "only 0 and 1" or circuit.feature_kind == "bits" or dtype.kind == "b":
        x = bits
    elif whole or chosen == "bytes":
        x = rng.integers(0, 256, shape)
    else:
        fractions = np.where(bits, rng.random(shape), rng.integers(0, 256, shape).astype(np.float32) / np.float32(255))
        x = fractions if circuit.feature_kind == "bytes" else 100 * rng.normal(size=shape)
    if chosen == "any":
        x = rng.integers(-(2**62), 2**62, shape) if whole else rng.normal(size=shape) * 10.0 ** rng.integers(-50, 50)
    if chosen in ("one odd", "some odd") and x.size:
        odd = np.array(WHOLE, object) if whole else np.array(REAL)
        x = x.astype(object) if whole else x.astype(np.float64)
        at = rng.integers(0, x.size, 1 if chosen == "one odd" else max(1, x.size // 3))
        x.reshape(-1)[at] = rng.choice(odd, len(at))
    if whole:
        bounds = np.iinfo(dtype)
        x = np.clip(x.astype(object), int(bounds.min), int(bounds.max)) if x.size else x
    if dtype.kind in "Mm":
        x = bits
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(dtype)


def unaligned(x: NDArray[Any]) -> NDArray[Any]:
    if x.dtype.hasobject:
        return x
    raw = np.zeros(x.nbytes + 1, np.uint8)[1:]
    raw[:] = np.frombuffer(x.tobytes(), np.uint8)
    return raw.view(x.dtype).reshape(x.shape) if x.size else x


def read_only(x: NDArray[Any]) -> NDArray[Any]:
    still = x.copy()
    still.setflags(write=False)
    return still


LAYOUTS: tuple[Callable[[NDArray[Any]], Any], ...] = (
    lambda x: x,
    lambda x: x,
    np.asfortranarray,
    lambda x: np.repeat(x, 2, -1)[..., ::2] if x.ndim else x,
    lambda x: np.repeat(x, 3, 0)[::3] if x.ndim else x,
    lambda x: x[::-1, ..., ::-1] if x.ndim > 1 else x,
    lambda x: np.broadcast_to(x[:1], x.shape) if x.ndim else x,
    lambda x: np.broadcast_to(x[..., :1], x.shape) if x.ndim else x,
    unaligned,
    read_only,
    lambda x: x.view(np.memmap),
    lambda x: x.tolist(),
)


def features_of(circuit: Circuit, x: Any) -> list[list[np.float32]] | None:
    """The definition: what each feature of each sample is, or None for what must be refused."""
    try:
        given = np.asarray(x)
    except (ValueError, OverflowError):
        return None
    kind, count, shape = circuit.feature_kind, circuit.features, circuit.feature_shape
    shapes = [(count,), shape or (count,), shape[1:] if len(shape) == 3 and shape[0] == 1 else (count,)]
    if given.dtype.kind not in "biuf" or given.ndim < 2 or given.shape[1:] not in shapes:
        return None
    whole = given.dtype.kind in "iu"
    if kind == "bytes" and whole and given.dtype != np.uint8 and given.size and max(map(int, given.flat)) == 1:
        return None
    samples = []
    for sample in given:
        values = []
        for value in sample.flat:
            number = feature_of(kind, value, whole)
            if number is None:
                return None
            values.append(number)
        samples.append(values)
    return samples


def feature_of(kind: str, value: Any, whole: bool) -> np.float32 | None:
    """One feature, or None if it is not of the kind."""
    if kind == "bits":
        return np.float32(value) if value in (0, 1) else None
    if kind == "bytes" and whole:
        return np.float32(value) / np.float32(255) if 0 <= int(value) <= 255 else None
    with np.errstate(all="ignore"):
        number = np.float32(value)
    fine = 0 <= number <= 1 if kind == "bytes" else bool(np.isfinite(number))
    return number if fine else None


def scores_of(circuit: Circuit, sample: Sequence[np.float32]) -> list[int]:
    """The scores of one sample, bit by bit."""
    threshold = circuit.encoder_threshold
    nets = [int(sample[feature] > threshold[i]) for i, feature in enumerate(circuit.encoder_feature.tolist())]
    for row, arity, table in zip(circuit.fanin.tolist(), circuit.arity.tolist(), circuit.table.tolist(), strict=True):
        entry = 0
        for net in row[:arity]:
            entry = 2 * entry + nets[net]
        nets.append(table >> entry & 1)
    ones = [nets[net] for net in circuit.outputs.tolist()]
    start = circuit.group_start.tolist()
    return [sum(ones[start[c] : start[c + 1]]) + int(circuit.bias[c]) for c in range(circuit.classes)]


class Exported:
    """Circuits as exported C, in one library."""

    def __init__(self, circuits: dict[int, Circuit], gcc: str) -> None:
        self.scratch: dict[int, int] = {}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for number, circuit in circuits.items():
                for file, text in export.c(circuit, f"net{number}").items():
                    (folder / file).write_text(text)
                    size = re.search(r"_SCRATCH (\d+)\n", text)
                    if size:
                        self.scratch[number] = int(size[1])
            (folder / "all.c").write_text("".join(f'#include "net{number}.c"\n' for number in circuits))
            subprocess.run([gcc, "-std=c99", "-shared", "-fPIC", "-o", "all.so", "all.c"], cwd=folder, check=True)
            self.library = ctypes.CDLL(str(folder / "all.so"))

    def scores(self, number: int, circuit: Circuit, x: NDArray[Any]) -> NDArray[np.int32]:
        """Scores of uint8 or float32 features [batch, features]; one sample goes through the function for one."""
        rows = np.ascontiguousarray(x)
        scores = np.full((len(rows), circuit.classes), -77, np.int32)
        scratch = np.zeros(self.scratch[number], np.uint64)
        kind = "u8" if rows.dtype == np.uint8 else "f32"
        given, out, memory = (ctypes.c_void_p(array.ctypes.data) for array in (rows, scores, scratch))
        if len(rows) == 1:
            self.library[f"net{number}_one_{kind}"](given, out, memory)
        else:
            self.library[f"net{number}_batch_{kind}"](given, ctypes.c_size_t(len(rows)), out, None, memory)
        return scores


def said(run: Callable[[Any], NDArray[Any]], x: Any) -> tuple[str, Any]:
    """What a call gives, as lists, or with what message it refuses."""
    try:
        return "gives", run(x).tolist()
    except ValueError as error:
        return "refuses", str(error)
    except Exception as error:
        return "fails", repr(error)


def differs(seed: int, circuit: Circuit, engines: dict[str, Engine], exported: Exported | None) -> tuple[bool, str]:
    """Whether a case is refused, and what is wrong with it, if anything."""
    rng = np.random.default_rng([2, seed])
    x = LAYOUTS[int(rng.integers(len(LAYOUTS)))](draw_values(circuit, rng))
    features = features_of(circuit, x)
    scores = [] if features is None else [scores_of(circuit, sample) for sample in features]
    labels = [row.index(max(row)) for row in scores]
    calls: dict[str, tuple[Callable[[Any], NDArray[Any]], Any]] = {
        "Circuit.scores": (circuit.scores, scores),
        "Circuit.predict": (circuit.predict, labels),
    }
    for name, engine in engines.items():
        calls |= {f"{name}.scores": (engine.scores, scores), f"{name}.predict": (engine.predict, labels)}
    first = said(circuit.scores, x)
    for name, (run, right) in calls.items():
        wanted = ("refuses", first[1]) if features is None else ("gives", right)
        got = said(run, x)
        if got != wanted or (got[0] == "refuses" and not got[1].startswith("features must ")):
            given = f"{circuit.feature_kind} {circuit.feature_shape or circuit.features}, {describe(x)}"
            return (
                features is None,
                f"{name} on {given}: {got[0]} {got[1]!r:.300}, expected {wanted[0]} {wanted[1]!r:.300}",
            )
    if exported is not None and features is not None:
        flat = np.asarray(x).reshape(len(features), circuit.features)
        same = flat if flat.dtype == np.uint8 else np.array(features, np.float32).reshape(flat.shape)
        if exported.scores(seed // CASES, circuit, same).tolist() != scores:
            return False, f"the exported C on {circuit.feature_kind} {circuit.features}, {describe(x)}"
    return features is None, ""


def describe(x: Any) -> str:
    if not isinstance(x, np.ndarray):
        return f"{x!r:.200}"
    return f"{x.dtype.str} {x.shape} strides {x.strides}, {np.array2string(x, threshold=20):.200}"


def main(arguments: Sequence[str]) -> int:
    """Run the cases and say how they went; 1 at the first difference."""
    count = int(arguments[0]) if arguments else 1000
    first = int(arguments[1]) if len(arguments) > 1 else 0
    gcc = shutil.which("gcc") or shutil.which("cc")
    refused = 0
    seeds = list(range(first, first + count))
    for start in range(0, count, CASES * CIRCUITS):
        some = seeds[start : start + CASES * CIRCUITS]
        circuits = {number: draw_circuit(number) for number in sorted({seed // CASES for seed in some})}
        exported = Exported(circuits, gcc) if gcc else None
        number, engines = -1, dict[str, Engine]()
        for seed in some:
            circuit = circuits[seed // CASES]
            if number != seed // CASES and available():
                engines = {"Engine": Engine(circuit), "Engine, interpreted": Engine(circuit, code=False)}
                engines["Engine, base"] = Engine(circuit, simd="base", threads=2)
            number = seed // CASES
            no, wrong = differs(seed, circuit, engines, exported)
            refused += no
            if wrong:
                sys.stdout.write(f"{wrong}\nrepeat with: python tests/fuzz/inputs.py 1 {seed}\n")
                return 1
    without = [name for name, there in (("engine", available()), ("C compiler", bool(gcc))) if not there]
    left_out = f" (without {' and '.join(without)})" if without else ""
    sys.stdout.write(f"{count} cases, {refused} refused, 0 differences{left_out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
