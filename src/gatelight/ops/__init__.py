"""The ops that evaluate gates: one layer, a chain of dense layers, and trees of gates over images."""

from gatelight.ops import schemas  # noqa: F401  (defines the ops before the files below register their kernels)
from gatelight.ops.connections import check_fanin
from gatelight.ops.conv import conv, conv_chain
from gatelight.ops.convshape import ConvShape
from gatelight.ops.dense import dense_chain
from gatelight.ops.dispatch import get_backend, set_backend, supports
from gatelight.ops.lut import lut
from gatelight.ops.maps import NATIVE_MAPS

__all__ = [
    "NATIVE_MAPS",
    "ConvShape",
    "check_fanin",
    "conv",
    "conv_chain",
    "dense_chain",
    "get_backend",
    "lut",
    "set_backend",
    "supports",
]
