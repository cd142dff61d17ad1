"""The gates on a CPU: native kernels called on torch tensors."""

from gatelight.ops.backends.cpu.conv import (
    conv_chain_bwd,
    conv_chain_fwd,
    conv_saved,
    conv_saved_bytes,
    supports_shape,
)
from gatelight.ops.backends.cpu.dense import (
    MODES,
    dense_chain_bwd,
    dense_chain_fwd,
    dense_saved,
    lut_bwd,
    lut_fwd,
    saved_bytes,
    work_bytes,
)
from gatelight.ops.backends.cpu.library import (
    available_simd,
    get_threads,
    is_available,
    select_simd,
    set_threads,
    simd,
)
from gatelight.ops.backends.cpu.tables import table_bwd, table_fwd

__all__ = [
    "MODES",
    "available_simd",
    "conv_chain_bwd",
    "conv_chain_fwd",
    "conv_saved",
    "conv_saved_bytes",
    "dense_chain_bwd",
    "dense_chain_fwd",
    "dense_saved",
    "get_threads",
    "is_available",
    "lut_bwd",
    "lut_fwd",
    "saved_bytes",
    "select_simd",
    "set_threads",
    "simd",
    "supports_shape",
    "table_bwd",
    "table_fwd",
    "work_bytes",
]
