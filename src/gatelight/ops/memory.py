"""What forward of a chain of dense layers leaves for backward."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from gatelight.ops.backends.cpu import MODES

#: The modes that a user may choose.
MEMORY = ("auto", *MODES)

#: Above this many bytes of activations, ``auto`` recomputes them in backward.
KEEP_LIMIT = 1 << 30


def resolve(memory: str, backend: str, x: Tensor, fanins: Sequence[Tensor]) -> str:
    """The mode that ``auto`` means on x [features, batch]: ``keep``, or ``recompute`` for large ones on the CPU.

    >>> import torch
    >>> x, fanin = torch.empty(1, 1 << 20, device="meta"), torch.empty(257, 2, device="meta")
    >>> resolve("auto", "cpu", x, [fanin]), resolve("auto", "triton", x, [fanin])
    ('recompute', 'keep')
    """
    if memory != "auto":
        return memory
    if backend != "cpu":
        return "keep"
    activations = x.shape[1] * sum(fanin.shape[0] for fanin in fanins)
    return "recompute" if 4 * activations > KEEP_LIMIT else "keep"
