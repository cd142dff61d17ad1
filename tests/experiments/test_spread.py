import importlib
import importlib.util
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatelight.experiments import runner, spread
from gatelight.experiments.cell import Cell
from gatelight.experiments.gradient_norm import GradientNorms, network
from gatelight.experiments.runner import Machine, Store
from gatelight.experiments.training import Training, convolutional, recipe

CELLS: list[Cell] = [
    Training(recipe("smoke", width=40, steps=10, eval_every=5, seed=0)),
    Training(recipe("smoke", width=40, steps=10, eval_every=5, seed=1, parametrization="op")),
    GradientNorms(network("smoke", layers=3, width=60), (0, 2)),
]
WRONG = Training(convolutional("smoke", model="none"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'gatelight[ray]'")
    # Not in pytest's folder: the names of Ray's sockets would be too long there.
    with (
        tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as m,
    ):
        m.setenv("RAY_TMPDIR", folder)
        m.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster_utils: Any = importlib.import_module("ray.cluster_utils")
        head = {"num_cpus": 1, "include_dashboard": False}
        made = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
        made.add_node(num_cpus=1)
        try:
            yield made.address
        finally:
            made.shutdown()


def test_two_workers_give_what_one_process_gives(cluster: str, tmp_path: Path, recorder: Any) -> None:
    serial, spread_out = Store(tmp_path / "serial"), Store(tmp_path / "spread")
    assert runner.run(CELLS, serial, Machine(), recorder, lambda: False) == []
    failed = spread.run([*CELLS, WRONG], spread_out, Machine(), recorder, lambda: False, address=cluster)
    assert failed == [WRONG]
    assert "no network 'none'" in recorder.failures[WRONG.label]
    for cell in CELLS:
        assert spread_out.load(cell) == serial.load(cell) is not None
    names = sorted(p.name for p in (tmp_path / "spread/cells").iterdir())
    assert names == sorted(p.name for p in (tmp_path / "serial/cells").iterdir())
    assert json.loads((tmp_path / "spread/cells" / names[0]).read_text())["seconds"] >= 0


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recorder: Any) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"gatelight\[ray\]"):
        spread.run(CELLS, Store(tmp_path), Machine(), recorder, lambda: False, address="local")
