"""Checkpoints: one safetensors file with weights, connections, optimiser state and a JSON header.

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
    """Tensors by name and the header that goes with them."""

    tensors: dict[str, Tensor]
    header: dict[str, Any]


def save(path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write a checkpoint atomically; ``header`` must be JSON."""
    flat = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(header)
    metadata = {"format": FORMAT, "version": str(VERSION), "sha256": _digest(flat, text), "header": text}
    with replacing(path) as temporary:
        try:
            save_file(flat, temporary, metadata=metadata)
        except SafetensorError as error:
            raise OSError(f"cannot write {path}: {error}") from None


def load(path: Path) -> Checkpoint:
    """Read a checkpoint, refusing anything that is not one, newer, truncated or altered."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"no checkpoint at {path}") from None
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    try:
        tensors = load_tensors(raw)
        size = int.from_bytes(raw[:8], "little")
        metadata = json.loads(raw[8 : 8 + size]).get("__metadata__", {})
    except (SafetensorError, ValueError, KeyError, RecursionError) as error:
        raise ValueError(f"{path} is not a checkpoint or is truncated: {error}") from None
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{path} is a safetensors file but not a gatelight checkpoint")
    if metadata.get("version") != str(VERSION):
        raise ValueError(f"{path} has checkpoint version {metadata.get('version')}, this gatelight reads {VERSION}")
    text = metadata.get("header", "")
    if metadata.get("sha256") != _digest(tensors, text):
        raise ValueError(f"{path} was altered: its checksum does not match")
    try:
        return Checkpoint(tensors, json.loads(text))
    except (ValueError, RecursionError):
        raise ValueError(f"{path}: its header is not JSON") from None


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
        if given[name].is_floating_point() and not bool(torch.isfinite(given[name]).all()):
            raise ValueError(f"{path}: {name} holds values that are not finite")
    model.load_state_dict(given)


def _digest(tensors: dict[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
