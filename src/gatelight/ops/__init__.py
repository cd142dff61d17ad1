"""The op that evaluates gates, behind one function, and the same for a chain of layers."""

from gatelight.ops.backend import get_backend, set_backend
from gatelight.ops.connections import check_fanin
from gatelight.ops.conv import can_chain, conv, conv_chain
from gatelight.ops.convshape import ConvShape
from gatelight.ops.lut import lut
from gatelight.ops.operands import kind_of
from gatelight.ops.stack import can_stack, stack

__all__ = [
    "ConvShape",
    "can_chain",
    "can_stack",
    "check_fanin",
    "conv",
    "conv_chain",
    "get_backend",
    "kind_of",
    "lut",
    "set_backend",
    "stack",
]
