import contextlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from gatelight import files, models
from gatelight.training import checkpoint


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "a.safetensors"
    net = models.build("digits", width=20, layers=2, seed=0)
    checkpoint.save(path, {f"model.{n}": t for n, t in net.state_dict().items()}, {"step": 3})
    return path


def test_round_trip(saved: Path) -> None:
    loaded = checkpoint.load(saved)
    assert loaded.header == {"step": 3}
    net = models.build("digits", width=20, layers=2, seed=1)
    checkpoint.restore(net, loaded, saved)
    same = models.build("digits", width=20, layers=2, seed=0)
    for name, tensor in same.state_dict().items():
        assert torch.equal(net.state_dict()[name], tensor)


def test_every_single_changed_byte_is_noticed(saved: Path) -> None:
    raw = bytearray(saved.read_bytes())
    rng = np.random.default_rng(0)
    for position in [*range(8), *rng.choice(len(raw), 400, replace=False).tolist()]:
        altered = bytearray(raw)
        altered[position] ^= 1 << int(rng.integers(8))
        saved.write_bytes(altered)
        with pytest.raises(ValueError, match=r"a\.safetensors"):
            checkpoint.load(saved)


def test_every_truncation_is_noticed(saved: Path) -> None:
    raw = saved.read_bytes()
    for length in [0, 1, 7, 8, 9, 100, len(raw) // 2, len(raw) - 1]:
        saved.write_bytes(raw[:length])
        with pytest.raises(ValueError, match="not a checkpoint or is truncated"):
            checkpoint.load(saved)
    saved.write_bytes(raw + b"x")
    with pytest.raises(ValueError, match="not a checkpoint or is truncated"):
        checkpoint.load(saved)


def test_absurd_sizes_do_not_allocate(tmp_path: Path) -> None:
    path = tmp_path / "huge.safetensors"
    path.write_bytes(struct.pack("<Q", 1 << 62) + b"{}")
    with pytest.raises(ValueError, match="truncated"):
        checkpoint.load(path)
    header = json.dumps({"x": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(ValueError, match="truncated"):
        checkpoint.load(path)


def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    save_file({"x": torch.zeros(3)}, path)
    with pytest.raises(ValueError, match="not a gatelight checkpoint"):
        checkpoint.load(path)
    save_file({"x": torch.zeros(3)}, path, metadata={"format": checkpoint.FORMAT, "version": "99"})
    with pytest.raises(ValueError, match="version 99"):
        checkpoint.load(path)
    with pytest.raises(ValueError, match="no checkpoint at"):
        checkpoint.load(tmp_path / "none")
    with pytest.raises(ValueError, match="cannot read"):
        checkpoint.load(tmp_path)


def test_restore_refuses_what_does_not_fit(saved: Path) -> None:
    loaded = checkpoint.load(saved)
    with pytest.raises(ValueError, match=r"expected torch\.\w+ \(30, "):
        checkpoint.restore(models.build("digits", width=30, layers=2, seed=0), loaded, saved)
    with pytest.raises(ValueError, match=r"lacks tensor layers\.2"):
        checkpoint.restore(models.build("digits", width=20, layers=3, seed=0), loaded, saved)
    with pytest.raises(ValueError, match=r"unexpected tensor layers\.1"):
        checkpoint.restore(models.build("digits", width=20, layers=1, seed=0), loaded, saved)
    theta = loaded.tensors["model.layers.0.theta"]
    loaded.tensors["model.layers.0.theta"] = theta.double()
    with pytest.raises(ValueError, match=r"is torch\.float64 .* expected torch\.float32"):
        checkpoint.restore(models.build("digits", width=20, layers=2, seed=0), loaded, saved)
    loaded.tensors["model.layers.0.theta"] = theta
    theta[0, 0] = torch.nan
    with pytest.raises(ValueError, match="not finite"):
        checkpoint.restore(models.build("digits", width=20, layers=2, seed=0), loaded, saved)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with contextlib.suppress(ZeroDivisionError), files.replacing(path) as temporary:
        temporary.write_text("half of the n")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    files.write_text(path, "new")
    assert path.read_text() == "new"
