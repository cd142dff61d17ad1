import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gatelight.config import (
    Gates,
    ModelConfig,
    Optimization,
    RunConfig,
    from_flat,
    leaves,
    read_config,
    replace,
    to_json,
)

#: The keys of config.json, in their order, since the first version; files of old runs have them.
KEYS = (
    "dataset", "model", "size", "depth_scale", "layers", "width", "temperature", "thresholds", "encoding", "wide_head",
    "tree_depth", "channels_per_tree", "arity", "parametrization", "estimator", "init", "init_strength", "init_spread",
    "wiring", "residual_fraction", "intervention", "intervention_value", "dropout", "steps", "batch", "accumulate",
    "lr", "schedule", "weight_decay", "augment", "augment_scale", "validation", "eval_every", "seed",
)  # fmt: skip


def test_json_round_trip(tmp_path: Path) -> None:
    model = ModelConfig(width=30, gates=Gates(arity=3, init_std=0.5), dropout=0.1)
    config = RunConfig("mnist", model, Optimization(lr=0.5, augment="crop", steps=7), seed=2)
    path = tmp_path / "config.json"
    path.write_text(to_json(config))
    assert read_config(path) == config


def test_files_are_flat_and_have_the_keys_of_old() -> None:
    text = to_json(RunConfig(model=ModelConfig(gates=Gates(init_std=0.25))))
    assert text.startswith('{\n  "dataset": "digits",\n  "model": "dlgn",\n  "size": "S",\n')
    assert tuple(json.loads(text)) == KEYS
    assert json.loads(text)["init_spread"] == 0.25


def test_every_leaf_is_replaced_by_its_name_and_by_its_key() -> None:
    others: dict[type, Any] = {int: 4, float: 0.5, bool: True, str: "none"}
    for leaf in leaves(RunConfig):
        value = "cosine" if leaf.name == "schedule" else others[leaf.type]
        start = replace(RunConfig(), batch=8)
        changed = replace(start, **{leaf.name: value})
        assert leaf.of(changed) == value
        assert changed == replace(start, **{leaf.key: value})
        assert from_flat(changed.to_flat()) == changed
        rest = [other for other in leaves(RunConfig) if other is not leaf]
        assert all(other.of(changed) == other.of(start) for other in rest)
    with pytest.raises(ValueError, match="two names of one value"):
        replace(Gates(), init_std=1.0, init_spread=1.0)
    with pytest.raises(ValueError, match="unknown setting 'witdh'; did you mean 'width'"):
        replace(RunConfig(), witdh=3)


def test_parts_have_their_own_leaves() -> None:
    assert replace(Optimization(), steps=3) == Optimization(steps=3)
    assert tuple(Optimization().to_flat()) == KEYS[23:33]
    assert tuple(ModelConfig().to_flat()) == KEYS[1:23]
    with pytest.raises(ValueError, match="unknown setting 'seed'"):
        replace(Optimization(), seed=3)
    with pytest.raises(ValueError, match="model must be ModelConfig, got 'dlgn'"):
        RunConfig(model="dlgn")  # type: ignore[arg-type]


def test_a_configuration_needs_no_torch() -> None:
    program = "import sys, gatelight.config as c; c.from_flat({}); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_whole_numbers_stand_for_real_ones() -> None:
    assert from_flat({"lr": 1}).optimization.lr == 1


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
        ({"init_spread": -1.0}, "init_std must be finite and not negative"),
        ({"init_strength": float("inf")}, "init_strength must be finite"),
    ],
)
def test_bad_values(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_flat(values, "here")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"3", b"[" * 100_000, b'{"steps": NaN}'])
def test_hostile_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"config\.json"):
        read_config(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no configuration at"):
        read_config(tmp_path / "none.json")


def test_every_leaf_has_a_help_text() -> None:
    assert all(leaf.help for leaf in leaves(RunConfig))
    assert tuple(leaf.key for leaf in leaves(RunConfig)) == KEYS
