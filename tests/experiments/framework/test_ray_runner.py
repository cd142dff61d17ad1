import importlib
import importlib.util
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatelight.experiments.framework import ray_runner, runner
from gatelight.experiments.framework.cell import Cell
from gatelight.experiments.framework.gradients import GradientNorms, network
from gatelight.experiments.framework.networks import convolutional, recipe
from gatelight.experiments.framework.runner import Machine
from gatelight.experiments.framework.store import Store
from gatelight.experiments.framework.training import Training

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
    serial, remote = Store(tmp_path / "serial"), Store(tmp_path / "remote")
    assert runner.run(CELLS, serial, Machine(), recorder, lambda: False) == []
    failed = ray_runner.run([*CELLS, WRONG], remote, Machine(), recorder, lambda: False, address=cluster)
    assert failed == [WRONG]
    assert "unknown model 'none'" in recorder.failures[WRONG.label]
    for cell in CELLS:
        assert remote.load(cell) == serial.load(cell) is not None
    names = sorted(p.name for p in (tmp_path / "remote/cells").iterdir())
    assert names == sorted(p.name for p in (tmp_path / "serial/cells").iterdir())
    assert json.loads((tmp_path / "remote/cells" / names[0]).read_text())["seconds"] >= 0


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recorder: Any) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"gatelight\[ray\]"):
        ray_runner.run(CELLS, Store(tmp_path), Machine(), recorder, lambda: False, address="local")
