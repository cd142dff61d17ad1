"""All experiments by name."""

from __future__ import annotations

from gatelight.experiments import (
    and_or,
    class_head,
    coefficients,
    convergence,
    depth,
    gap,
    gate_outputs,
    gradient_concentration,
    gradient_norm,
    init_variance,
    narrow,
    regularizers,
    resolution,
    rounding,
    training_cost,
)
from gatelight.experiments.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        training_cost.EXPERIMENT,
        gradient_concentration.EXPERIMENT,
        gradient_norm.EXPERIMENT,
        gate_outputs.EXPERIMENT,
        coefficients.EXPERIMENT,
        depth.EXPERIMENT,
        depth.CONVOLUTIONAL_EXPERIMENT,
        gap.EXPERIMENT,
        convergence.EXPERIMENT,
        narrow.EXPERIMENT,
        and_or.EXPERIMENT,
        init_variance.EXPERIMENT,
        init_variance.CONVOLUTIONAL_EXPERIMENT,
        class_head.EXPERIMENT,
        class_head.CONVOLUTIONAL_EXPERIMENT,
        resolution.EXPERIMENT,
        resolution.CONVOLUTIONAL_EXPERIMENT,
        regularizers.EXPERIMENT,
        rounding.EXPERIMENT,
    )
}
