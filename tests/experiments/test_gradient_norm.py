import json
import os
from pathlib import Path

import pytest

from gatelight.experiments import gradient_norm


def test_smoke_shows_the_papers_order(tmp_path: Path) -> None:
    result = gradient_norm.run("smoke")
    first = {name: norms[0] for name, norms in result.norms.items()}
    assert (
        first["op gaussian"] < 1e-3 * first["iwp gaussian"] < 1e-3 * first["op residual"] < 1e-3 * first["iwp residual"]
    )
    paths = gradient_norm.write(result, tmp_path)
    assert {p.suffix for p in paths} == {".png", ".svg", ".json"}
    assert json.loads((tmp_path / "gradient-norm.json").read_text())["norms"] == result.norms


@pytest.mark.skipif("GATELIGHT_DATA" not in os.environ, reason="needs MNIST in the folder GATELIGHT_DATA")
def test_forty_layers_of_mnist_show_the_papers_picture() -> None:
    first = {name: norms[0] for name, norms in gradient_norm.run("cpu").norms.items()}
    assert first["op gaussian"] < 1e-25
    assert 1e-20 < first["iwp gaussian"] < 1e-12
    assert first["iwp residual"] > 1e-7
    assert first["iwp residual"] > 5 * first["op residual"]
