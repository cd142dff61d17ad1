"""The exported AIGER and BLIF, read by ABC and written back by it, have the outputs of the circuit."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gatelight import export
from gatelight.circuit import Circuit
from gatelight.circuit.proof.aig import Aig, from_aiger, to_aig

Samples = Callable[[Circuit, int], NDArray[np.uint8]]
Tool = Callable[..., str]
FORMATS: dict[str, Callable[[Circuit], bytes]] = {
    "aig": export.aiger,
    "aag": lambda circuit: export.aiger(circuit, ascii=True),
    "blif": lambda circuit: export.blif(circuit).encode(),
}
# ABC does not read the ascii format; it is read here.
READ_BY_ABC = {"aig": "read_aiger", "blif": "read_blif"}


def _simulate(aig: Aig, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The outputs of a graph, one gate after the other."""
    values = np.zeros((1 + aig.inputs + len(aig.ands), len(bits)), np.uint8)
    values[1 : 1 + aig.inputs] = bits.T
    for index, (a, b) in enumerate(aig.ands.tolist()):
        values[1 + aig.inputs + index] = (values[a >> 1] ^ (a & 1)) & (values[b >> 1] ^ (b & 1))
    return np.asarray((values[aig.outputs >> 1] ^ (aig.outputs & 1)[:, None]).T, np.uint8)


def _through_abc(tool: Tool, folder: Path, circuits: dict[str, Circuit], extension: str) -> dict[str, Aig]:
    """Circuits that ABC has read and written, all in one process."""
    script = []
    for name, circuit in circuits.items():
        (folder / f"{name}.{extension}").write_bytes(FORMATS[extension](circuit))
        script.append(f"{READ_BY_ABC[extension]} {name}.{extension}; strash; write_aiger {name}.back; empty")
    abc = tool("abc", "berkeley-abc", "yosys-abc")
    done = subprocess.run(
        [abc, "-q", "; ".join(script)], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: from_aiger((folder / f"{name}.back").read_bytes()) for name in circuits}


def _readable(circuits: dict[str, Circuit]) -> dict[str, Circuit]:
    """ABC reads no network without inputs or outputs."""
    return {name: circuit for name, circuit in circuits.items() if circuit.inputs and len(circuit.outputs)}


@pytest.mark.parametrize("extension", READ_BY_ABC)
def test_abc_reads_the_same_circuit(
    tool: Tool, circuits: dict[str, Circuit], samples: Samples, tmp_path: Path, extension: str
) -> None:
    readable = _readable(circuits)
    assert len(readable) > 20
    for name, aig in _through_abc(tool, tmp_path, readable, extension).items():
        bits = circuits[name].bits(samples(circuits[name], 100))
        np.testing.assert_array_equal(_simulate(aig, bits), circuits[name].outputs_of(bits), err_msg=name)


@pytest.mark.parametrize("extension", READ_BY_ABC)
def test_a_flipped_table_bit_shows(
    tool: Tool,
    circuits: dict[str, Circuit],
    samples: Samples,
    spoil: Callable[..., Circuit],
    tmp_path: Path,
    extension: str,
) -> None:
    circuit = circuits["six_layers"]
    features = samples(circuit, 64)
    back = _through_abc(tool, tmp_path, {"bad": spoil(circuit, features)}, extension)["bad"]
    bits = circuit.bits(features)
    assert not np.array_equal(_simulate(back, bits), circuit.outputs_of(bits))


def _read_ascii(data: bytes) -> Aig:
    lines = data.decode().split("\n")
    _, inputs, _, outputs, ands = map(int, lines[0].split()[1:])
    assert lines[1 : 1 + inputs] == [str(2 * k) for k in range(1, 1 + inputs)]
    literals = np.array(lines[1 + inputs : 1 + inputs + outputs], np.int64)
    rows = [list(map(int, line.split())) for line in lines[1 + inputs + outputs : 1 + inputs + outputs + ands]]
    assert [row[0] for row in rows] == [2 * (1 + inputs + k) for k in range(ands)]
    return Aig(inputs, np.array(rows, np.int64).reshape(ands, 3)[:, 1:], literals)


def test_ascii_and_binary_aiger_are_the_same(circuits: dict[str, Circuit]) -> None:
    for name, circuit in circuits.items():
        read, right = _read_ascii(export.aiger(circuit, ascii=True)), to_aig(circuit)
        np.testing.assert_array_equal(read.ands, right.ands, err_msg=name)
        np.testing.assert_array_equal(read.outputs, right.outputs, err_msg=name)


def test_aiger_names_inputs_outputs_and_classes(circuits: dict[str, Circuit]) -> None:
    circuit = circuits["hostile"]
    for ascii in (False, True):
        data = export.aiger(circuit, ascii=ascii)
        symbols, _, comment = data[data.rindex(b"i0 x0\n") :].partition(b"\nc\n")
        expected = [f"i{k} x{k}" for k in range(circuit.inputs)]
        expected += [f"o{k} y{k}" for k in range(len(circuit.outputs))]
        assert symbols.decode("ascii").split("\n") == expected
        assert len(comment.decode("ascii").strip().split("\n")) == 1 + circuit.classes


def test_blif_of_hostile_class_names_has_no_extra_lines(circuits: dict[str, Circuit]) -> None:
    text = export.blif(circuits["hostile"])
    assert text.isascii()
    comments = [line for line in text.split("\n") if line.startswith("#")]
    assert len(comments) == 1 + circuits["hostile"].classes
    assert not any(line.endswith("\\") for line in comments)


def test_blif_without_inputs_or_outputs(circuits: dict[str, Circuit]) -> None:
    lines = export.blif(circuits["no_outputs"], "empty").split("\n")
    assert lines[-5:] == [".model empty", ".inputs", ".outputs", ".end", ""]


def test_bad_names_are_refused(circuits: dict[str, Circuit]) -> None:
    with pytest.raises(ValueError, match="name must"):
        export.blif(circuits["one_layer"], "a\n.end")
