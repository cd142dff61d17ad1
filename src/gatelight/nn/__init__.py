"""Layers of logic gates as torch modules."""

from gatelight.nn.dense import LogicDense
from gatelight.nn.encode import Thermometer
from gatelight.nn.head import GroupSum
from gatelight.nn.network import LogicNetwork, rounded
from gatelight.nn.regularize import GateIntervention, PathDropout, residual_masks
from gatelight.nn.stack import LogicStack

__all__ = [
    "GateIntervention",
    "GroupSum",
    "LogicDense",
    "LogicNetwork",
    "LogicStack",
    "PathDropout",
    "Thermometer",
    "residual_masks",
    "rounded",
]
