"""One gate on a tile of values [rows, samples], forward and backward, for kernels to inline."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load_tile(rows, row, stride, sample, inside):
    """Values [rows, samples] of an array [.., batch] whose rows begin ``stride`` apart, as float32."""
    at = row.to(tl.int64)[:, None] * stride + sample[None, :]
    return tl.load(rows + at, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def zeros(COUNT: tl.constexpr, ROWS: tl.constexpr, SAMPLES: tl.constexpr):
    """As many tiles of zeros: sums to begin with."""
    tiles = ()
    for _ in tl.static_range(COUNT):
        tiles = tiles + (tl.zeros((ROWS, SAMPLES), tl.float32),)
    return tiles


@triton.jit
def added(sums, terms, COUNT: tl.constexpr):
    """Sums with one more term each."""
    more = ()
    for number in tl.static_range(COUNT):
        more = more + (sums[number] + terms[number],)
    return more


@triton.jit
def fold(table, value, HALF: tl.constexpr):
    """One input applied to a table of 2 HALF entries: ``low + value (high - low)``."""
    folded = ()
    for entry in tl.static_range(HALF):
        folded = folded + (table[entry] + value * (table[entry + HALF] - table[entry]),)
    return folded


@triton.jit
def unfold(grads, table, value, HALF: tl.constexpr):
    """The backward of :func:`fold`: the gradient for the input, and those for the 2 HALF entries."""
    handed = grads[0] * (table[HALF] - table[0])
    low = ()
    high = ()
    for entry in tl.static_range(HALF):
        if entry > 0:
            handed += grads[entry] * (table[entry + HALF] - table[entry])
        part = grads[entry] * value
        low = low + (grads[entry] - part,)
        high = high + (part,)
    return handed, low + high


@triton.jit
def evaluate(table, inputs, ARITY: tl.constexpr):
    """The multilinear extension of a table of 2**ARITY entries; for two inputs ``c0 + c1 q + c2 p + c3 p q``."""
    if ARITY == 2:
        c1 = table[1] - table[0]
        c2 = table[2] - table[0]
        c3 = table[3] - table[2] - c1
        return table[0] + c1 * inputs[1] + inputs[0] * (c2 + c3 * inputs[1])
    else:
        for slot in tl.static_range(ARITY):
            table = fold(table, inputs[slot], 1 << (ARITY - 1 - slot))
        return table[0]


@triton.jit
def differentiate(grad, table, inputs, ARITY: tl.constexpr):
    """Given the gradient for the output, those for the inputs and for the entries of the table."""
    folds = (table,)
    for slot in tl.static_range(ARITY - 1):
        folds = folds + (fold(folds[slot], inputs[slot], 1 << (ARITY - 1 - slot)),)
    grads = (grad,)
    handed = ()
    for back in tl.static_range(ARITY):
        one, grads = unfold(grads, folds[ARITY - 1 - back], inputs[ARITY - 1 - back], 1 << back)
        handed = (one,) + handed
    return handed, grads
