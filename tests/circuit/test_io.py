from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save as serialize

from gatelight.circuit import Circuit, io
from gatelight.circuit.features import KINDS
from gatelight.circuit.random import random_circuit

FILES = Path(__file__).parent / "files"
CIRCUIT = random_circuit(6, 40, arities=(0, 1, 2, 3, 4, 5, 6), outputs=9, classes=3)


def sealed(content: bytes) -> bytes:
    """A file with the checksum of what it now holds, so that an error in it is not found by that alone."""
    place = re.search(rb'sha256\\": \\"([0-9a-f]{64})', content)
    return io.seal(content[: place.start(1)] + b"0" * 64 + content[place.end(1) :]) if place else content


def parts(circuit: Circuit) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A file's arrays and scalars, to be spoiled."""
    data = io.to_bytes(circuit)
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    arrays = {name: getattr(circuit, name) for name in header if name != "__metadata__"}
    return arrays, json.loads(header["__metadata__"]["gatelight"])


@given(data=st.data())
def test_round_trip(data: st.DataObject, circuits: Any) -> None:
    circuit = data.draw(circuits())
    content = io.to_bytes(circuit)
    again = io.from_bytes(content)
    assert again.equal(circuit)
    assert io.to_bytes(again) == content


def test_names_shape_and_temperature_survive(tmp_path: Path) -> None:
    fields = {name: getattr(CIRCUIT, name) for name in Circuit.__dataclass_fields__}
    names = {"class_names": ("café", 'a"b', "0" * 64), "feature_shape": (1, 2, 3), "temperature": 1 / 0.03}
    for kind in KINDS:
        circuit = Circuit(**(fields | names | {"feature_kind": kind}))
        circuit.save(tmp_path / "net.gl")
        assert Circuit.load(tmp_path / "net.gl").equal(circuit)
    assert Circuit.load(str(tmp_path / "net.gl")).temperature == 1 / 0.03


def test_save_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "net.gl"
    path.write_bytes(b"old")
    CIRCUIT.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["net.gl"]
    assert Circuit.load(path).equal(CIRCUIT)


def test_a_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.gl"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        CIRCUIT.save(path)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.gl"
    path.write_bytes(b"not a circuit")
    with pytest.raises(ValueError, match=r"bad\.gl: not a safetensors file"):
        Circuit.load(path)
    with pytest.raises(ValueError, match=r"cannot read the circuit .*none\.gl: No such file"):
        Circuit.load(tmp_path / "none.gl")


Spoil = Callable[[dict[str, Any], dict[str, Any]], object]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda a, s: s.update(version=3), "written in version 3 of the format, this gatelight reads up to 2"),
        (lambda a, s: s.update(version="1"), "version must be"),
        (lambda a, s: s.update(version=True), "version must be"),
        (lambda a, s: s.update(version=0), "version must be"),
        (lambda a, s: s.pop("version"), "version must be"),
        (lambda a, s: s.update(format="other"), "not a circuit file"),
        (lambda a, s: s.pop("inputs"), "missing or unknown: .*inputs"),
        (lambda a, s: s.update(extra=1), "missing or unknown: .*extra"),
        (lambda a, s: s.update(inputs=6.0), "inputs must be of type int"),
        (lambda a, s: s.update(inputs=10**12), "inputs must be the encoder's 6"),
        (lambda a, s: s.update(features=10**12), "features must be a whole number"),
        (lambda a, s: s.update(temperature=1), "temperature must be of type float"),
        (lambda a, s: s.update(temperature=float("nan")), "temperature"),
        (lambda a, s: s.update(class_names="abc"), "class_names must be of type list"),
        (lambda a, s: s.update(class_names=[1, 2, 3]), "class_names"),
        (lambda a, s: s.update(class_names=["\ud800", "b", "c"]), "class_names"),
        (lambda a, s: s.update(feature_shape=[2.5]), "feature_shape"),
        (lambda a, s: s.pop("feature_kind"), "missing or unknown: .*feature_kind"),
        (lambda a, s: s.update(feature_kind=1), "feature_kind must be of type str"),
        (lambda a, s: s.update(feature_kind="Bits"), "feature_kind must be one of"),
        (lambda a, s: s.update(version=1), r"missing or unknown: \['feature_kind', 'sha256'\]"),
        (lambda a, s: s.pop("sha256"), "sha256 must be a checksum of 64 hexadecimal digits, got None"),
        (lambda a, s: s.update(sha256=7), "sha256 must be a checksum"),
        (lambda a, s: s.update(sha256="0" * 63 + "A"), "sha256 must be a checksum"),
        (lambda a, s: s.update(sha256="b" * 64, inputs=7), "inputs must be the encoder's 6"),
        (lambda a, s: a.pop("bias"), "missing or unknown: .*bias"),
        (lambda a, s: a.update(extra=np.zeros(1)), "missing or unknown: .*extra"),
        (lambda a, s: a.update(bias=a["bias"].astype(np.int64)), "bias must be I32 with 1 axes, got I64"),
        (lambda a, s: a.update(bias=a["bias"][None]), "bias must be I32 with 1 axes"),
        (lambda a, s: a.update(fanin=np.zeros((2**20, 0), np.int32)), "one row for each gate"),
        (lambda a, s: a.update(outputs=a["outputs"] + 1000), "outputs"),
    ],
)
def test_spoilt_parts_are_refused(spoil: Spoil, message: str) -> None:
    arrays, scalars = parts(CIRCUIT)
    spoil(arrays, scalars)
    content = sealed(bytes(serialize(arrays, {"gatelight": json.dumps(scalars)})))
    with pytest.raises(ValueError, match=message):
        io.from_bytes(content)


@pytest.mark.parametrize("text", ["", "[]", "3", "[" * 100_000, '{"format":' * 5000])
def test_odd_metadata_is_refused(text: str) -> None:
    arrays, _ = parts(CIRCUIT)
    with pytest.raises(ValueError, match=r"circuit file|Expecting|nested too deeply"):
        io.from_bytes(bytes(serialize(arrays, {"gatelight": text})))
    with pytest.raises(ValueError, match="not a circuit file"):
        io.from_bytes(bytes(serialize(arrays)))


def test_a_header_cannot_ask_for_more_than_the_file_holds() -> None:
    header = {"table": {"dtype": "U64", "shape": [1 << 40], "data_offsets": [0, 8 << 40]}}
    text = json.dumps(header).encode()
    with pytest.raises(ValueError, match="not a safetensors file"):
        io.from_bytes(len(text).to_bytes(8, "little") + text)
    with pytest.raises(ValueError, match="not a safetensors file"):
        io.from_bytes((1 << 62).to_bytes(8, "little") + text)


def mutate(content: bytes, rng: random.Random) -> bytes:
    """A few random edits, as many in the header as in the much longer rest."""
    data = bytearray(content)
    header = int.from_bytes(content[:8], "little") + 8
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        at = rng.randrange(min(len(data), rng.choice([header, len(content)]))) if data else 0
        kind = rng.random()
        if kind < 0.75 and data:
            data[at] = rng.choice([rng.randrange(256), data[at] ^ (1 << rng.randrange(8)), *b'0129-."[]{}'])
        elif kind < 0.85:
            del data[at:]
        elif kind < 0.95:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        else:
            del data[at : at + rng.randrange(1, 9)]
    return bytes(data)


def test_mutated_files_give_a_valid_circuit_or_a_value_error() -> None:
    content = io.to_bytes(CIRCUIT)
    rng = random.Random(0)
    loaded = refused = 0
    for _ in range(4000):
        try:
            circuit = io.from_bytes(sealed(mutate(content, rng)))
        except ValueError:
            refused += 1
            continue
        loaded += 1
        if circuit.features < 1 << 12:
            assert circuit.scores(np.zeros((3, circuit.features))).shape == (3, circuit.classes)
    assert loaded > 50
    assert refused > 1000


def test_no_file_with_one_byte_altered_loads() -> None:
    content = io.to_bytes(random_circuit(2, 3, outputs=2, classes=2, feature_kind="bits"))
    assert io.from_bytes(content).feature_kind == "bits"
    for at in range(len(content)):
        # Among these are the masks that turn blanks into other blanks and letters into capitals.
        for mask in (0x01, 0x03, 0x04, 0x09, 0x20, 0x29, 0x2A, 0x2D, 0x80, 0xFF):
            altered = bytearray(content)
            altered[at] ^= mask
            with pytest.raises(ValueError, match=r"."):
                io.from_bytes(bytes(altered))


@pytest.mark.parametrize("at", [-1, -9])
def test_an_altered_array_is_told_by_the_checksum(at: int, tmp_path: Path) -> None:
    content = bytearray(io.to_bytes(CIRCUIT))
    content[at] ^= 1
    (tmp_path / "net.gl").write_bytes(content)
    with pytest.raises(ValueError, match=r"net\.gl: was altered or damaged: its checksum does not match"):
        Circuit.load(tmp_path / "net.gl")


def test_flat_bits_of_version_1_load() -> None:
    circuit = Circuit.load(FILES / "version1_bits.gl")
    assert circuit.feature_kind == "bits"
    assert circuit.class_names == ("a", "b", "café")
    x = (np.arange(4)[:, None] * 37 + np.arange(9) * 11) % 5 % 2
    wanted = [[4, 0, 4], [2, 0, 4], [2, -1, 4], [1, 1, 4]]
    for dtype in (bool, np.uint8, np.int64, np.float32):
        assert circuit.scores(x.astype(dtype)).tolist() == wanted


def test_images_of_version_1_load() -> None:
    circuit = Circuit.load(FILES / "version1_image.gl")
    assert circuit.feature_kind == "bytes"
    assert circuit.feature_shape == (1, 4, 4)
    x = ((np.arange(4)[:, None] * 97 + np.arange(16) * 41) % 256).astype(np.uint8)
    wanted = [[2, 3, 2, 3], [2, 2, 4, 0], [3, 3, 3, 2], [2, 4, 1, 1]]
    assert circuit.scores(x).tolist() == wanted
    assert circuit.scores(x.reshape(4, 1, 4, 4) / np.float32(255)).tolist() == wanted


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "bits"),
        ({"feature_shape": (6,)}, "bits"),
        ({"feature_shape": (1, 2, 3)}, "bytes"),
        ({"encoder_threshold": np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0.25], np.float32)}, "bytes"),
        ({"encoder_feature": np.array([0, 1, 2, 3, 5, 4], np.int32)}, "bytes"),
        ({"features": 7}, "bytes"),
        ({"features": 2**31 - 1}, "bytes"),
    ],
)
def test_kind_of_version_1(changes: dict[str, Any], kind: str) -> None:
    arrays, scalars = parts(CIRCUIT)
    for name, value in changes.items():
        if name in arrays:
            arrays[name] = value
        else:
            scalars[name] = list(value) if isinstance(value, tuple) else value
    scalars["version"] = 1
    del scalars["sha256"], scalars["feature_kind"]
    content = bytes(serialize(arrays, {"gatelight": json.dumps(scalars)}))
    assert io.from_bytes(content).feature_kind == kind
