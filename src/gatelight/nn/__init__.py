"""Layers of logic gates as torch modules."""

from gatelight.nn.dense import LogicDense
from gatelight.nn.encode import Thermometer
from gatelight.nn.head import GroupSum
from gatelight.nn.network import LogicNetwork, rounded
from gatelight.nn.regularize import GateIntervention, PathDropout, residual_masks

__all__ = [
    "GateIntervention",
    "GroupSum",
    "LogicDense",
    "LogicNetwork",
    "PathDropout",
    "Thermometer",
    "residual_masks",
    "rounded",
]
