"""One file for one circuit: safetensors with the arrays, and the scalars as JSON in its metadata.

A file is not trusted. Its arrays are bounded by its own size, their dtypes are checked before their values are read,
and every size, index and order is checked by :class:`Circuit` before anything else sees them. The metadata holds a
SHA-256 of the whole file, computed with zeros in its own place, so that a file with one altered byte is refused.
Files of version 1, which have neither that nor the kind of the features, still load.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save as serialize

from gatelight.circuit.ir import Circuit
from gatelight.files import replacing

FORMAT = "gatelight-circuit"
VERSION = 2

#: A single metadata key, so that the same circuit always gives the same bytes.
_KEY = "gatelight"
_ARRAYS = {
    "fanin": ("I32", "<i4", 2),
    "arity": ("U8", "u1", 1),
    "table": ("U64", "<u8", 1),
    "outputs": ("I32", "<i4", 1),
    "group_start": ("I32", "<i4", 1),
    "bias": ("I32", "<i4", 1),
    "encoder_feature": ("I32", "<i4", 1),
    "encoder_threshold": ("F32", "<f4", 1),
}
_HEAD = 1 << 16
#: Placeholder for the checksum while the checksum is computed.
_UNSEALED = "0" * 64
#: safetensors does not type its parser.
_parse: Callable[[bytes], list[tuple[str, dict[str, Any]]]] = deserialize
_SCALARS: dict[str, type] = {
    "inputs": int,
    "temperature": float,
    "features": int,
    "class_names": list,
    "feature_shape": list,
    "feature_kind": str,
}
#: Scalars that files of version 1 do not have.
_SINCE_2 = {"feature_kind"}


def save(circuit: Circuit, path: str | PathLike[str]) -> None:
    """Write a circuit to a temporary file and rename it to ``path``, so that no half-written file is left."""
    with replacing(Path(path)) as temporary:
        temporary.write_bytes(to_bytes(circuit))


def load(path: str | PathLike[str]) -> Circuit:
    """Read and check a circuit; a file that does not hold one raises a ValueError with its name and the cause."""
    try:
        return from_bytes(Path(path).read_bytes())
    except OSError as error:
        raise ValueError(f"cannot read the circuit {os.fspath(path)}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from error


def is_circuit(path: Path) -> bool:
    """Whether a file's header says that it holds a circuit; its name does not matter."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return FORMAT.encode() in file.read(min(length, _HEAD))


def to_bytes(circuit: Circuit) -> bytes:
    """The content of a circuit's file; equal circuits give equal bytes."""
    scalars = {
        "format": FORMAT,
        "version": VERSION,
        "sha256": _UNSEALED,
        "inputs": circuit.inputs,
        "temperature": circuit.temperature,
        "features": circuit.features,
        "class_names": list(circuit.class_names),
        "feature_shape": list(circuit.feature_shape),
        "feature_kind": circuit.feature_kind,
    }
    arrays = {name: getattr(circuit, name) for name in _ARRAYS}
    return seal(bytes(serialize(arrays, {_KEY: json.dumps(scalars)})))


def seal(data: bytes) -> bytes:
    """The content of a file with its checksum instead of the 64 zeros that reserved its place."""
    at = data.index(_UNSEALED.encode())
    return data[:at] + _digest(data, at).encode() + data[at + 64 :]


def from_bytes(data: bytes) -> Circuit:
    """The circuit in the content of a file, or a ValueError that says what is wrong."""
    try:
        tensors = dict(_parse(data))
    except SafetensorError as error:
        raise ValueError(f"not a safetensors file ({error})") from error
    scalars = _read_scalars(data)
    if tensors.keys() != _ARRAYS.keys():
        odd = sorted(tensors.keys() ^ _ARRAYS.keys())
        raise ValueError(f"a circuit file must hold the arrays {', '.join(_ARRAYS)}; missing or unknown: {odd}")
    fields: dict[str, Any] = {name: _read_array(name, tensors[name]) for name in _ARRAYS}
    fields |= {name: tuple(value) if isinstance(value, list) else value for name, value in scalars.items()}
    circuit = Circuit(**fields)
    return circuit if "feature_kind" in scalars else replace(circuit, feature_kind=_kind_in_version_1(circuit))


def _kind_in_version_1(circuit: Circuit) -> str:
    """Networks without an encoder were written as one threshold of 1/2 for each feature."""
    # A file may claim more features than fit in an array.
    one_each = circuit.inputs == circuit.features
    identity = one_each and np.array_equal(circuit.encoder_feature, np.arange(circuit.features))
    bits = identity and len(circuit.feature_shape) <= 1 and bool((circuit.encoder_threshold == 0.5).all())
    return "bits" if bits else "bytes"


def _read_scalars(data: bytes) -> dict[str, Any]:
    # The header has been parsed once already, so its length and its JSON are sound.
    length = int.from_bytes(data[:8], "little")
    try:
        metadata = json.loads(data[8 : 8 + length]).get("__metadata__") or {}
        scalars = json.loads(metadata.get(_KEY, "{}"))
    except RecursionError as error:
        raise ValueError("the metadata is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"the metadata is not JSON ({error})") from error
    if not isinstance(scalars, dict) or scalars.pop("format", None) != FORMAT:
        raise ValueError(f"not a circuit file: its metadata does not say {FORMAT!r}")
    version = scalars.pop("version", None)
    if type(version) is not int or version < 1:
        raise ValueError(f"version must be a whole number from 1, got {version!r}")
    if version > VERSION:
        raise ValueError(f"written in version {version} of the format, this gatelight reads up to {VERSION}")
    if version > 1:
        _check_seal(data[: 8 + length], data, scalars.pop("sha256", None))
    wanted = {name: kind for name, kind in _SCALARS.items() if version > 1 or name not in _SINCE_2}
    if scalars.keys() != wanted.keys():
        odd = sorted(scalars.keys() ^ wanted.keys())
        raise ValueError(f"the metadata must hold {', '.join(wanted)}; missing or unknown: {odd}")
    for name, kind in wanted.items():
        if type(scalars[name]) is not kind:
            raise ValueError(f"{name} must be of type {kind.__name__}, got {scalars[name]!r}")
    return scalars


def _check_seal(header: bytes, data: bytes, sealed: object) -> None:
    """Raise a ValueError unless a file's checksum is that of its content."""
    if not isinstance(sealed, str) or not re.fullmatch("[0-9a-f]{64}", sealed):
        raise ValueError(f"sha256 must be a checksum of 64 hexadecimal digits, got {sealed!r}")
    at = header.find(sealed.encode())
    if at < 0 or _digest(data, at) != sealed:
        raise ValueError("was altered or damaged: its checksum does not match")


def _digest(data: bytes, at: int) -> str:
    """The checksum of a file's content, ignoring the bytes of the checksum itself."""
    view = memoryview(data)
    digest = hashlib.sha256(view[:at])
    digest.update(_UNSEALED.encode())
    digest.update(view[at + 64 :])
    return digest.hexdigest()


def _read_array(name: str, tensor: dict[str, Any]) -> NDArray[Any]:
    code, dtype, dims = _ARRAYS[name]
    shape = tensor["shape"]
    if tensor["dtype"] != code or len(shape) != dims:
        raise ValueError(f"{name} must be {code} with {dims} axes, got {tensor['dtype']} {shape}")
    return np.frombuffer(tensor["data"], dtype).reshape(shape)
