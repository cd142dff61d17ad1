"""All experiments by name: those that the files of ``experiments/paper/`` declare."""

from __future__ import annotations

from gatelight.experiments import paper
from gatelight.experiments.framework.experiment import Experiment
from gatelight.listing import declared_in

#: In the order of lists and of the page.
EXPERIMENTS: dict[str, Experiment] = declared_in(paper, Experiment)
