"""The exported C, compiled without warnings, gives the scores and labels of the circuit."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gatelight import export
from gatelight.circuit import Circuit, evaluate
from gatelight.circuit.random import layered_circuit

Samples = Callable[[Circuit, int], NDArray[np.uint8]]
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror", "-pedantic")
WORDS = {8: np.uint8, 32: np.uint32, 64: np.uint64}


class Library:
    """Exported circuits compiled into one shared library."""

    def __init__(self, gcc: str, folder: Path, circuits: dict[str, Circuit], bits: int, flags: Sequence[str]) -> None:
        self.bits = bits
        self.scratch: dict[str, int] = {}
        for name, circuit in circuits.items():
            files = export.c(circuit, name)
            for file, text in files.items():
                (folder / file).write_text(text)
            define = next(
                line for line in files[f"{name}.h"].splitlines() if f"#define {name.upper()}_SCRATCH " in line
            )
            self.scratch[name] = int(define.split()[-1])
        # One file that includes all others compiles faster, and shows that they can live together.
        (folder / "all.c").write_text("".join(f'#include "{name}.c"\n' for name in circuits))
        sizes = [f"-D{name.upper()}_WORD_BITS={bits}" for name in circuits]
        command = [gcc, *STRICT, *flags, *sizes, "-shared", "-fPIC", "-o", "all.so", "all.c"]
        subprocess.run(command, cwd=folder, check=True, timeout=300)
        self.library = ctypes.CDLL(str(folder / "all.so"))

    def _call(self, function: str, *values: Any) -> Any:
        return getattr(self.library, function)(
            *(ctypes.c_void_p(v.ctypes.data) if isinstance(v, np.ndarray) else v for v in values)
        )

    def batch(
        self, name: str, classes: int, x: NDArray[Any], with_labels: bool = True
    ) -> tuple[NDArray[np.int32], ...]:
        """Scores and labels; scratch memory starts as noise, and what lies behind it must stay."""
        x = np.ascontiguousarray(x)
        scratch, end = self._memory(name)
        scores, labels = np.full((len(x) + 1, classes), -77, np.int32), np.full(len(x) + 1, -77, np.int32)
        kind = "u8" if x.dtype == np.uint8 else "f32"
        arguments = (x, ctypes.c_size_t(len(x)), scores, labels if with_labels else None, scratch)
        self._call(f"{name}_batch_{kind}", *arguments)
        assert (scratch[end:] == 0x5A).all()
        assert (scores[-1] == -77).all()
        assert labels[-1] == -77
        return scores[:-1], labels[:-1]

    def one(self, name: str, classes: int, x: NDArray[Any]) -> tuple[NDArray[np.int32], int]:
        """Scores and label of one sample."""
        x = np.ascontiguousarray(x)
        scratch, end = self._memory(name)
        scores = np.full(classes, -77, np.int32)
        kind = "u8" if x.dtype == np.uint8 else "f32"
        label = self._call(f"{name}_one_{kind}", x, scores, scratch)
        assert (scratch[end:] == 0x5A).all()
        return scores, label

    def _memory(self, name: str) -> tuple[NDArray[Any], int]:
        size = self.scratch[name]
        scratch = np.random.default_rng(size).integers(0, 256, size + 8).astype(WORDS[self.bits])
        scratch[size:] = 0x5A
        return scratch, size


@pytest.fixture(scope="module", params=[64, 32, 8])
def library(
    request: pytest.FixtureRequest,
    tool: Callable[..., str],
    circuits: dict[str, Circuit],
    tmp_path_factory: pytest.TempPathFactory,
) -> Library:
    flag = {64: "-O1", 32: "-O0", 8: "-O0"}[request.param]
    return Library(tool("gcc"), tmp_path_factory.mktemp("c"), circuits, request.param, [flag])


def test_bytes(library: Library, circuits: dict[str, Circuit], samples: Samples) -> None:
    for name, circuit in circuits.items():
        for count in (1, 63, 64, 65, 200):
            x = samples(circuit, count)
            scores, labels = library.batch(name, circuit.classes, x)
            np.testing.assert_array_equal(scores, evaluate.scores(circuit, x), err_msg=name)
            np.testing.assert_array_equal(labels, evaluate.predict(circuit, x), err_msg=name)


def test_no_samples_and_no_labels(library: Library, circuits: dict[str, Circuit], samples: Samples) -> None:
    circuit = circuits["six_layers"]
    assert library.batch("six_layers", 10, samples(circuit, 0))[0].shape == (0, 10)
    x = samples(circuit, 70)
    scores, labels = library.batch("six_layers", 10, x, with_labels=False)
    np.testing.assert_array_equal(scores, evaluate.scores(circuit, x))
    assert (labels == -77).all()


def test_floats(library: Library, circuits: dict[str, Circuit]) -> None:
    rng = np.random.default_rng(0)
    for name, circuit in circuits.items():
        x = rng.normal(0.5, 0.5, (70, circuit.features)).astype(np.float32)
        # Values at a threshold are where an inexact constant would show.
        finite = circuit.encoder_threshold[np.isfinite(circuit.encoder_threshold)]
        x = np.where(rng.random(x.shape) < 0.3, rng.choice(np.append(finite, np.float32(0)), x.shape), x)
        unit = x.clip(0, 1)
        inside = {"bits": unit.round(), "bytes": unit, "reals": x}[circuit.feature_kind]
        # What the circuit would refuse is compared as it is, as the header says.
        as_it_is = replace(circuit, feature_kind="reals")
        for given, right in ((inside, circuit), (x, as_it_is)):
            scores, labels = library.batch(name, circuit.classes, given)
            np.testing.assert_array_equal(scores, evaluate.scores(right, given), err_msg=name)
            np.testing.assert_array_equal(labels, evaluate.predict(right, given), err_msg=name)


def test_a_byte_other_than_zero_is_the_bit_one(library: Library, circuits: dict[str, Circuit]) -> None:
    for name in ("bits", "half_bits"):
        circuit = circuits[name]
        x = np.random.default_rng(0).integers(0, 4, (70, circuit.features), dtype=np.uint8)
        x[x == 3] = 255
        scores, _ = library.batch(name, circuit.classes, x)
        np.testing.assert_array_equal(scores, evaluate.scores(circuit, x != 0))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("half_bits", "each 0 or 1. Nothing is checked: any byte other than 0 counts as 1"),
        ("one_layer", "A byte u stands for u / 255.0f"),
        ("reals", "A byte u stands for the number u"),
    ],
)
def test_the_header_says_what_a_feature_is(circuits: dict[str, Circuit], name: str, says: str) -> None:
    assert says in export.c(circuits[name])["net.h"]


def test_one_sample(library: Library, circuits: dict[str, Circuit], samples: Samples) -> None:
    for name, circuit in circuits.items():
        rows = samples(circuit, 4)
        for row, right in zip(rows, evaluate.scores(circuit, rows), strict=True):
            one = np.float32(255 if circuit.feature_kind == "bytes" else 1)
            for x in (row, row.astype(np.float32) / one):
                scores, label = library.one(name, circuit.classes, x)
                np.testing.assert_array_equal(scores, right, err_msg=name)
                assert label == right.argmax()


def test_a_flipped_table_bit_shows(
    tool: Callable[..., str],
    circuits: dict[str, Circuit],
    samples: Samples,
    spoil: Callable[..., Circuit],
    tmp_path: Path,
) -> None:
    circuit = circuits["six_layers"]
    x = samples(circuit, 64)
    wrong = Library(tool("gcc"), tmp_path, {"bad": spoil(circuit, x)}, 64, ["-O0"])
    scores, _ = wrong.batch("bad", 10, x)
    assert not np.array_equal(scores, evaluate.scores(circuit, x))


MAIN = """
#include "net.h"
#include <cstdio>
#include <vector>
int main()
{
    std::vector<net_word> scratch(NET_SCRATCH);
    std::vector<uint8_t> x(70 * NET_FEATURES);
    std::vector<int32_t> scores(70 * NET_CLASSES), labels(70);
    for (size_t i = 0; i < x.size(); i++)
        x[i] = (uint8_t)(i * i % 251);
    net_batch_u8(x.data(), 70, scores.data(), labels.data(), scratch.data());
    for (int32_t label : labels)
        std::printf("%d ", label);
    net_batch_f32(std::vector<float>(x.begin(), x.end()).data(), 70, scores.data(), nullptr, scratch.data());
    std::printf("%d %g\\n", net_one_u8(x.data(), scores.data(), scratch.data()), NET_TEMPERATURE);
}
"""


def test_from_c_plus_plus_within_bounds(tool: Callable[..., str], circuits: dict[str, Circuit], tmp_path: Path) -> None:
    circuit = replace(circuits["hostile"], temperature=2.5)
    for file, text in export.c(circuit, "net").items():
        (tmp_path / file).write_text(text)
    (tmp_path / "main.cpp").write_text(MAIN)
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    linked = ["-Wall", "-Wextra", "-Werror", "-pedantic", *checks, "main.cpp", "net.o", "-o", "main"]
    for command in ([tool("gcc"), *STRICT, *checks, "-c", "net.c"], [tool("g++"), *linked]):
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    # Leak detection does not work where tracing is forbidden, and there is nothing to leak.
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}
    said = subprocess.run(
        [tmp_path / "main"], env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    index = np.arange(70 * circuit.features)
    labels = evaluate.predict(circuit, (index * index % 251).astype(np.uint8).reshape(70, -1))
    assert said.split() == [*map(str, labels), str(labels[0]), "2.5"]


def test_functions_stay_small() -> None:
    source = export.c(layered_circuit(64, (3000, 3000), classes=10))["net.c"]
    assert max(len(body.splitlines()) for body in source.split("\n}\n")) < 1000


@pytest.mark.parametrize("name", ["", "1net", "a b", "while", "module", "logic", "x;", "é", "net\n"])
def test_bad_names_are_refused(circuits: dict[str, Circuit], name: str) -> None:
    with pytest.raises(ValueError, match="name must"):
        export.c(circuits["one_layer"], name)


@pytest.mark.parametrize("threshold", [-1.0, 1.0])
def test_levels_outside_a_byte_compile_without_warnings(
    tool: Callable[..., str], tmp_path: Path, threshold: float
) -> None:
    circuit = layered_circuit(4, (8, 6), classes=2)
    circuit = replace(circuit, encoder_threshold=np.full(4, threshold, np.float32))
    x = np.array([[0, 1, 254, 255]], np.uint8)
    library = Library(tool("gcc"), tmp_path, {"net": circuit}, 64, ())
    assert np.array_equal(library.batch("net", 2, x)[0], evaluate.scores(circuit, x))
