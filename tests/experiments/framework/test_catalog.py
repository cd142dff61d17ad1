import subprocess
import sys
from pathlib import Path

from gatelight.experiments import paper
from gatelight.experiments.framework.catalog import EXPERIMENTS
from gatelight.experiments.framework.experiment import Experiment
from gatelight.listing import values_in

PROGRAM = """
import sys
from gatelight.cli import main
from gatelight.experiments import paper

paper.__path__.append(sys.argv[1])
sys.exit(main(["reproduce"]))
"""
NEW = """
from gatelight.experiments.framework.experiment import Experiment
from gatelight.experiments.framework.networks import dense

EXPERIMENT = Experiment(
    "something-new", "A new idea", "none", str, lambda scale: [dense(scale, 1, 0)], (), lambda results: None, place=15
)
"""


def test_an_experiment_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "something_new.py").write_text(NEW)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "A new idea" in listed
    places = [listed.index(name) for name in ("training-cost", "something-new", "gradient-concentration")]
    assert places == sorted(places)


def test_every_experiment_has_a_name_of_its_own() -> None:
    assert sorted(made.name for made in values_in(paper, Experiment)) == sorted(EXPERIMENTS)
