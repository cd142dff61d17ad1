import dataclasses
import json
from pathlib import Path

import pytest

from gatelight.config import TrainConfig, from_dict, read_config


def test_json_round_trip(tmp_path: Path) -> None:
    config = TrainConfig(dataset="mnist", lr=0.5, augment="crop", steps=7)
    path = tmp_path / "config.json"
    path.write_text(config.to_json())
    assert read_config(path) == config


def test_whole_numbers_stand_for_real_ones() -> None:
    assert from_dict({"lr": 1}).lr == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"stpes": 3}, "unknown key in here 'stpes'; did you mean 'steps'"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"steps": 1.5}, "steps must be int or null, got 1.5"),
        ({"steps": "3"}, "steps must be int or null"),
        ({"seed": True}, "seed must be int, got True"),
        ({"seed": -1}, "seed must be from 0"),
        ({"wide_head": 1}, "wide_head must be bool, got 1"),
        ({"augment": "corp"}, "did you mean 'crop'"),
        ({"augment_scale": 0.0}, r"augment_scale must be in \(0, 1\]"),
        ({"lr": 0.0}, "lr must be a positive number"),
        ({"lr": float("nan")}, "lr must be a positive number"),
        ({"weight_decay": -1.0}, "weight_decay must not be negative"),
        ({"validation": 1.0}, r"validation must be in \[0, 1\)"),
        ({"schedule": "cosin"}, "did you mean 'cosine'"),
        ({"batch": 10, "accumulate": 3}, "accumulate 3 does not divide the batch 10"),
        ({"dataset": None}, "dataset must be str"),
    ],
)
def test_bad_values(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_dict(values, "here")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"3", b"[" * 100_000, b'{"steps": NaN}'])
def test_hostile_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"config\.json"):
        read_config(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no configuration at"):
        read_config(tmp_path / "none.json")


def test_every_field_has_a_help_text() -> None:
    assert all(f.metadata["help"] for f in dataclasses.fields(TrainConfig))
    assert set(json.loads(TrainConfig().to_json())) == {f.name for f in dataclasses.fields(TrainConfig)}
