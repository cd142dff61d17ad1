"""Layers of logic gates as torch modules."""

from gatelight.nn.conv import LogicConv2d
from gatelight.nn.conv_stack import LogicConvStack
from gatelight.nn.dense import LogicDense
from gatelight.nn.encode import Thermometer
from gatelight.nn.forward import Forward, rounded, using
from gatelight.nn.fuse import fuse
from gatelight.nn.head import GroupSum
from gatelight.nn.network import LogicNetwork
from gatelight.nn.pool import OrPool2d
from gatelight.nn.regularize import GateIntervention, PathDropout, residual_masks
from gatelight.nn.stack import LogicStack

__all__ = [
    "Forward",
    "GateIntervention",
    "GroupSum",
    "LogicConv2d",
    "LogicConvStack",
    "LogicDense",
    "LogicNetwork",
    "LogicStack",
    "OrPool2d",
    "PathDropout",
    "Thermometer",
    "fuse",
    "residual_masks",
    "rounded",
    "using",
]
