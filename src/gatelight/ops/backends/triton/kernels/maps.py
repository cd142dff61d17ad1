"""theta -> table and its derivative, for kernels to inline.

``MAP`` is a name in :data:`gatelight.ops.NATIVE_MAPS`. Values of a gate are tensors [BLOCK_G], float32.
"""

from __future__ import annotations

import triton
import triton.language as tl

HALF_PI = tl.constexpr(1.5707963267948966)


@triton.jit
def sin_by_halves(x, k):
    """``sin(x - k pi)`` where that is in [-pi/2, pi/2] and k is a multiple of 1/2.

    The error is below 2e-7 for |x| up to 8192. The library's sine keeps an array for larger arguments in memory, a cost
    for every thread.
    """
    # pi in parts of 12, 12, 12 and 24 bits, as in the CPU kernels.
    r = x - k * 3.140625
    r = r - k * 0.0009675025939941406
    r = r - k * 1.5099067240953445e-07
    r = r - k * 5.126688136514179e-12
    z = r * r
    p = 2.6087504920724314e-06 * z - 0.00019811037054751068
    p = p * z + 0.008333086967468262
    p = p * z - 0.16666659712791443
    return r * z * p + r


@triton.jit
def alternating(k):
    """``(-1)**k`` of a whole number."""
    return 1.0 - 2.0 * (k - 2.0 * tl.floor(0.5 * k))


@triton.jit
def sin(x):
    """The sine, by reduction to the nearest multiple of pi."""
    k = tl.floor(x * 0.3183098861837907 + 0.5)
    return alternating(k) * sin_by_halves(x, k)


@triton.jit
def cos(x):
    """The cosine: ``cos(r + (k + 1/2) pi) = -(-1)**k sin(r)``."""
    k = tl.floor(x * 0.3183098861837907)
    return -alternating(k) * sin_by_halves(x, k + 0.5)


@triton.jit
def estimate(theta, MAP: tl.constexpr):
    """The entry of a parameter."""
    if MAP == "iwp-sin":
        return 0.5 + 0.5 * sin(theta)
    elif MAP == "iwp-sin-st":
        # Comparisons instead of a clamp: they let NaN through.
        angle = tl.where(theta > HALF_PI, HALF_PI, tl.where(theta < -HALF_PI, -HALF_PI, theta))
        return 0.5 + 0.5 * sin(angle)
    elif MAP == "iwp-sigmoid" or MAP == "iwp-sigmoid-st":
        return 1.0 / (1.0 + tl.exp(-theta))
    elif MAP == "iwp-linear-st":
        return tl.where(theta > 1.0, 1.0, tl.where(theta < 0.0, 0.0, theta))
    else:
        tl.static_assert(MAP == "table", "unknown map")
        return theta


@triton.jit
def slope(theta, MAP: tl.constexpr):
    """The derivative of the entry; 1 for straight-through estimators and for tables."""
    if MAP == "iwp-sin":
        return 0.5 * cos(theta)
    elif MAP == "iwp-sigmoid":
        entry = estimate(theta, MAP)
        return entry * (1.0 - entry)
    else:
        return tl.full(theta.shape, 1.0, tl.float32)


@triton.jit
def softmax(theta, gate, inside, ARITY: tl.constexpr):
    """The weights [BLOCK_G, functions] of OP."""
    FUNCTIONS: tl.constexpr = 1 << (1 << ARITY)
    function = tl.arange(0, FUNCTIONS)
    at = gate[:, None] * FUNCTIONS + function[None, :]
    logits = tl.load(theta + at, mask=inside[:, None], other=0.0).to(tl.float32)
    weights = tl.exp(logits - tl.max(logits, axis=1)[:, None])
    return weights / tl.sum(weights, axis=1)[:, None]


@triton.jit
def ones_of(entry: tl.constexpr, ARITY: tl.constexpr):
    """Which functions are 1 at an entry, [1, functions]: function i has the binary digits of i as its table."""
    function = tl.arange(0, 1 << (1 << ARITY))
    return (function[None, :] >> ((1 << ARITY) - 1 - entry)) & 1


@triton.jit
def entries(theta, gate, inside, MAP: tl.constexpr, ARITY: tl.constexpr):
    """The table of each gate: 2**ARITY tensors [BLOCK_G]. ``gate`` is int64, entries outside are any finite values."""
    table = ()
    if MAP == "op":
        weights = softmax(theta, gate, inside, ARITY)
        for entry in tl.static_range(1 << ARITY):
            table = table + (tl.sum(weights * ones_of(entry, ARITY), axis=1),)
    else:
        for entry in tl.static_range(1 << ARITY):
            value = tl.load(theta + gate * (1 << ARITY) + entry, mask=inside, other=0.0).to(tl.float32)
            table = table + (estimate(value, MAP),)
    return table


@triton.jit
def store_gradient(grad_table, theta, grad_theta, gate, inside, MAP: tl.constexpr, ARITY: tl.constexpr):
    """Write the gradient for theta, given that for the table: 2**ARITY tensors [BLOCK_G]."""
    if MAP == "op":
        # d theta_i = w_i (G_i - sum_j w_j G_j) where G_i = sum over entries of T[i, entry] d table[entry]
        weights = softmax(theta, gate, inside, ARITY)
        gradient = tl.zeros_like(weights)
        for entry in tl.static_range(1 << ARITY):
            gradient += ones_of(entry, ARITY) * grad_table[entry][:, None]
        gradient = weights * (gradient - tl.sum(weights * gradient, axis=1)[:, None])
        FUNCTIONS: tl.constexpr = 1 << (1 << ARITY)
        at = gate[:, None] * FUNCTIONS + tl.arange(0, FUNCTIONS)[None, :]
        tl.store(grad_theta + at, gradient, mask=inside[:, None])
    else:
        for entry in tl.static_range(1 << ARITY):
            at = gate * (1 << ARITY) + entry
            if MAP == "iwp-sin" or MAP == "iwp-sigmoid":
                value = tl.load(theta + at, mask=inside, other=0.0).to(tl.float32)
                tl.store(grad_theta + at, grad_table[entry] * slope(value, MAP), mask=inside)
            else:
                tl.store(grad_theta + at, grad_table[entry], mask=inside)
