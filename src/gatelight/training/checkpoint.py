"""Checkpoints: one safetensors file with weights, connections, optimizer state and a JSON header.

The header carries a SHA-256 over all tensors, so that an altered file is refused. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save_file
from torch import Tensor, nn

from gatelight.files import replacing

FORMAT = "gatelight-checkpoint"
VERSION = 1


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and their header."""

    tensors: dict[str, Tensor]
    header: dict[str, Any]


def save(path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write a checkpoint atomically; ``header`` must be JSON."""
    flat: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        # Two names of one tensor are saved as two tensors: a file holds no references.
        where = plain.untyped_storage().data_ptr()
        flat[name] = plain.clone() if where in seen else plain
        seen.add(where)
    text = json.dumps(header)
    metadata = {"format": FORMAT, "version": str(VERSION), "sha256": _digest(flat, text), "header": text}
    with replacing(path) as temporary:
        try:
            save_file(flat, temporary, metadata=metadata)
        except SafetensorError as error:
            raise OSError(f"cannot write {path}: {error}") from None


def load(path: Path) -> Checkpoint:
    """Read a checkpoint; refuse other files, newer versions, and truncated or altered files."""
    raw = _read(path)
    try:
        tensors = load_tensors(raw)
    except (SafetensorError, KeyError) as error:
        raise ValueError(f"{path} is not a checkpoint or is truncated: {error}") from None
    metadata = _metadata(raw, path)
    text = metadata.get("header", "")
    if metadata.get("sha256") != _digest(tensors, text):
        raise ValueError(f"{path} was altered: its checksum does not match")
    return Checkpoint(tensors, _header(text, path))


def read_header(path: Path) -> dict[str, Any]:
    """Only the header of a checkpoint; the rest of the file is not read."""
    size = int.from_bytes(_read(path, 8), "little")
    metadata = _metadata(_read(path, 8 + min(size, _MOST_HEADER)), path)
    return _header(metadata.get("header", ""), path)


#: What safetensors allows.
_MOST_HEADER = 100_000_000


def _read(path: Path, size: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except FileNotFoundError:
        raise ValueError(f"no checkpoint at {path}") from None
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None


def _metadata(raw: bytes, path: Path) -> dict[str, str]:
    """The metadata of a checkpoint, checked for format and version."""
    try:
        size = int.from_bytes(raw[:8], "little")
        if len(raw) < 8 + size:
            raise ValueError(f"{len(raw)} bytes, but its header takes {size}")
        metadata = json.loads(raw[8 : 8 + size]).get("__metadata__", {})
    except (ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is not a checkpoint or is truncated: {error}") from None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ValueError(f"{path} is a safetensors file but not a gatelight checkpoint")
    if metadata.get("version") != str(VERSION):
        raise ValueError(f"{path} has checkpoint version {metadata.get('version')}, this gatelight reads {VERSION}")
    return metadata


def _header(text: str, path: Path) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{path}: its header is not JSON") from None
    if not isinstance(header, dict):
        raise ValueError(f"{path}: its header is not a JSON object")
    return header


def restore(model: nn.Module, checkpoint: Checkpoint, path: Path) -> None:
    """Load the tensors under ``model.`` into a model; names, shapes and dtypes must match."""
    wanted = model.state_dict()
    given = {n.removeprefix("model."): t for n, t in checkpoint.tensors.items() if n.startswith("model.")}
    for name in wanted.keys() | given.keys():
        if name not in given or name not in wanted:
            raise ValueError(f"{path} {'lacks' if name in wanted else 'has an unexpected'} tensor {name}")
        if given[name].shape != wanted[name].shape or given[name].dtype != wanted[name].dtype:
            raise ValueError(
                f"{path}: {name} is {given[name].dtype} {tuple(given[name].shape)}, "
                f"expected {wanted[name].dtype} {tuple(wanted[name].shape)}"
            )
        if _is_finite(wanted[name]) and not _is_finite(given[name]):
            raise ValueError(f"{path}: {name} holds values that are not finite")
    model.load_state_dict(given)


def _is_finite(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() or bool(torch.isfinite(tensor).all())


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
