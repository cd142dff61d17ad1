"""Whether torch transforms a computation, so that native kernels would not see real values.

``torch.compile``, ``torch.export``, ``jit.trace`` and fake tensors get registered ops, one for a layer or a chain of
them; ``torch.func``, forward-mode derivatives and derivatives of derivatives get the reference, in plain torch.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad

_PLAIN = (Tensor, torch.nn.Parameter, torch.nn.Buffer)


def is_symbolic(*tensors: Tensor) -> bool:
    """Whether a graph is being captured, or tensors have no memory of their own."""
    return torch.compiler.is_compiling() or torch._C._is_tracing() or any(type(t) not in _PLAIN for t in tensors)


def is_traced() -> bool:
    """Whether ``jit.trace`` records: a trace serves with and without gradients, and its sizes are tensors."""
    return not torch.compiler.is_compiling() and torch._C._is_tracing()


def is_transformed(*tensors: Tensor) -> bool:
    """Whether ``torch.func`` is active, or a tensor has a forward-mode derivative.

    >>> import torch.func
    >>> torch.func.vmap(lambda x: x * is_transformed(x))(torch.ones(2)), is_transformed(torch.ones(2))
    (tensor([1., 1.]), False)
    """
    if torch.compiler.is_compiling():
        return False
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return True
    return forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(t).tangent is not None for t in tensors)


def is_differentiated_again(grad: Tensor) -> bool:
    """In a backward pass: whether its result must be differentiable itself, or is transformed."""
    return torch.is_grad_enabled() or is_transformed(grad) or torch._C._functorch.is_legacy_batchedtensor(grad)
