"""theta -> table and its gradient in the native library."""

from __future__ import annotations

import torch
from torch import Tensor

from gatelight.ops.backends.cpu.library import call
from gatelight.ops.backends.cpu.operands import check_array, check_shape
from gatelight.ops.maps import NATIVE_MAPS, check_theta


def table_fwd(theta: Tensor, map: str, arity: int) -> Tensor:
    """Tables [gates, 2**arity] of parameters [gates, parameters]."""
    check_array("theta", theta, torch.float32, 2)
    gates = check_theta(theta, map, arity)
    table = theta.new_empty(gates, 1 << arity)
    if gates:
        call("gl_table_fwd", NATIVE_MAPS[map].number, arity, gates, theta.data_ptr(), table.data_ptr())
    return table


def table_bwd(theta: Tensor, grad_table: Tensor, map: str, arity: int) -> Tensor:
    """Gradients for theta, given those for the tables."""
    check_array("theta", theta, torch.float32, 2)
    gates = check_theta(theta, map, arity)
    check_shape("grad_table", grad_table, torch.float32, (gates, 1 << arity))
    grad = torch.empty_like(theta)
    if gates:
        pointers = theta.data_ptr(), grad_table.data_ptr(), grad.data_ptr()
        call("gl_table_bwd", NATIVE_MAPS[map].number, arity, gates, *pointers)
    return grad
