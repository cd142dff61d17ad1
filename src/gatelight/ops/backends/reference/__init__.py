"""The definition of the ops in plain torch: slow, obvious, and what every kernel must equal."""

from gatelight.ops.backends.reference.chains import (
    conv_chain,
    conv_chain_bwd,
    conv_chain_fwd,
    conv_saved,
    dense_chain,
    dense_chain_bwd,
    dense_chain_fwd,
    dense_saved,
    supports_shape,
)
from gatelight.ops.backends.reference.derivatives import gradients
from gatelight.ops.backends.reference.gates import conv, lut_bwd, lut_fwd, table

__all__ = [
    "conv",
    "conv_chain",
    "conv_chain_bwd",
    "conv_chain_fwd",
    "conv_saved",
    "dense_chain",
    "dense_chain_bwd",
    "dense_chain_fwd",
    "dense_saved",
    "gradients",
    "lut_bwd",
    "lut_fwd",
    "supports_shape",
    "table",
]
