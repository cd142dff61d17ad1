"""All experiments by name: those that the files of ``experiments/paper/`` declare."""

from __future__ import annotations

from gatelight.experiments import paper
from gatelight.experiments.framework.experiment import Experiment
from gatelight.listing import values_in

#: In the order of lists and of the page.
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for experiment in sorted(values_in(paper, Experiment), key=lambda made: made.place)
}
