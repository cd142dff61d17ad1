from pathlib import Path

from gatelight.experiments.framework.cell import Context
from gatelight.experiments.framework.neural_network import NeuralNetwork


def test_it_learns(tmp_path: Path) -> None:
    cell = NeuralNetwork("digits", 3, 16, 120, 50, 0.01, False, 60, 0)
    result = cell.run(Context(tmp_path))
    assert result["train"]["soft_accuracy"] > 0.4
    assert result["last"]["soft_accuracy"] > 0.4
