from pathlib import Path

import pytest

from gatelight.experiments.framework.cell import Context, StoppedError
from gatelight.experiments.framework.neural_network import NeuralNetwork
from gatelight.training import checkpoint


def test_it_learns(tmp_path: Path) -> None:
    cell = NeuralNetwork("digits", 3, 16, 120, 50, 0.01, False, 60, 0)
    result = cell.run(Context(tmp_path))
    assert result["train"]["soft_accuracy"] > 0.4
    assert result["last"]["soft_accuracy"] > 0.4


def test_a_checkpoint_without_the_state_of_adam_is_refused(tmp_path: Path) -> None:
    cell = NeuralNetwork("digits", 3, 4, 12, 20, 0.01, False, 5, 0)
    with pytest.raises(StoppedError):
        cell.run(Context(tmp_path, stop=lambda: True))
    path = tmp_path / "cnn.safetensors"
    saved = checkpoint.load(path)
    moments = {name for name in saved.tensors if name.startswith("adam.")}
    assert len(moments) == 2 * len([name for name in saved.tensors if name.startswith("model.")])
    del saved.tensors["adam.exp_avg_sq.7.weight"]
    checkpoint.save(path, saved.tensors, saved.header)
    with pytest.raises(ValueError, match=r"lacks the optimizer state of 7\.weight"):
        cell.run(Context(tmp_path))
