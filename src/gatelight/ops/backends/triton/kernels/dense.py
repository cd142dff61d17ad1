"""Kernels of a dense layer of gates on feature-major arrays: x [features, batch], out [gates, batch].

A program computes a tile [BLOCK_G gates, BLOCK_B samples], so loads of a row are coalesced over the batch. Arithmetic
is float32 whatever the arrays hold. Nothing is added atomically: sums over the batch stay in one program, and a row of
the input gathers from the gates that read it in the order of the inverse index, so results repeat bit for bit.
"""

from __future__ import annotations

import triton
import triton.language as tl

from gatelight.ops.backends.triton.kernels.gate import added, differentiate, evaluate, load_tile, zeros
from gatelight.ops.backends.triton.kernels.maps import entries, store_gradient


@triton.jit
def widened(table, ARITY: tl.constexpr):
    """Entries [BLOCK_G] as [BLOCK_G, 1]."""
    wide = ()
    for entry in tl.static_range(1 << ARITY):
        wide = wide + (table[entry][:, None],)
    return wide


@triton.jit
def lut_fwd_kernel(
    x,
    x_stride,
    fanin,
    theta,
    out,
    gates,
    batch,
    MAP: tl.constexpr,
    ARITY: tl.constexpr,
    BLOCK_G: tl.constexpr,
    BLOCK_B: tl.constexpr,
):
    """Outputs of a layer. Grid: blocks of gates, blocks of samples."""
    gate = tl.program_id(0).to(tl.int64) * BLOCK_G + tl.arange(0, BLOCK_G)
    sample = tl.program_id(1) * BLOCK_B + tl.arange(0, BLOCK_B)
    inside_gate = gate < gates
    inside = inside_gate[:, None] & (sample < batch)[None, :]
    table = widened(entries(theta, gate, inside_gate, MAP, ARITY), ARITY)
    inputs = ()
    for slot in tl.static_range(ARITY):
        row = tl.load(fanin + ARITY * gate + slot, mask=inside_gate, other=0)
        inputs = inputs + (load_tile(x, row, x_stride, sample, inside),)
    value = evaluate(table, inputs, ARITY)
    tl.store(out + gate[:, None] * batch + sample[None, :], value, mask=inside)


@triton.jit
def table_gradient2(grad_out, grad_stride, x, x_stride, fanin, gate, inside_gate, batch, BLOCK: tl.constexpr):
    """Gradients for the tables of gates of two inputs, summed over the batch in blocks of ``BLOCK`` samples."""
    p_row = tl.load(fanin + 2 * gate, mask=inside_gate, other=0)
    q_row = tl.load(fanin + 2 * gate + 1, mask=inside_gate, other=0)
    # Sums over the batch of g, g q, g p, g p q; the gradient of the table is their transposed Moebius transform.
    s0, s1, s2, s3 = zeros(4, gate.shape[0], BLOCK)
    for first in range(0, batch, BLOCK):
        sample = first + tl.arange(0, BLOCK)
        inside = inside_gate[:, None] & (sample < batch)[None, :]
        g = load_tile(grad_out, gate, grad_stride, sample, inside)
        p = load_tile(x, p_row, x_stride, sample, inside)
        q = load_tile(x, q_row, x_stride, sample, inside)
        gp = g * p
        s0 += g
        s1 += g * q
        s2 += gp
        s3 += gp * q
    t0 = tl.sum(s0, axis=1)
    t1 = tl.sum(s1, axis=1)
    t2 = tl.sum(s2, axis=1)
    t3 = tl.sum(s3, axis=1)
    return t0 - t1 - t2 + t3, t1 - t3, t2 - t3, t3


@triton.jit
def handed_by2(
    grad_out, grad_stride, x, x_stride, fanin, source, reader, there, sample, inside_batch, SOURCE: tl.constexpr
):
    """What gates of two inputs hand to the slots ``reader``: the gradient times the slope in that input."""
    gate = (reader // 2).to(tl.int64)
    other_row = tl.load(fanin + (reader ^ 1), mask=there, other=0)
    table = entries(source, gate, there, SOURCE, 2)
    inside = there[:, None] & inside_batch[None, :]
    g = load_tile(grad_out, gate, grad_stride, sample, inside)
    other = load_tile(x, other_row, x_stride, sample, inside)
    is_p = reader % 2 == 0
    at_0 = tl.where(is_p, table[2], table[1]) - table[0]
    at_1 = table[3] - tl.where(is_p, table[1], table[2])
    return g * (at_0[:, None] + other * (at_1 - at_0)[:, None])


@triton.jit
def lut2_bwd_kernel(
    grad_out,
    grad_stride,
    x,
    x_stride,
    fanin,
    source,
    theta,
    starts,
    readers,
    grad_theta,
    grad_x,
    gates,
    features,
    batch,
    gate_blocks,
    SOURCE: tl.constexpr,
    MAP: tl.constexpr,
    BLOCK_G: tl.constexpr,
    BLOCK_B: tl.constexpr,
):
    """Both gradients of a layer of two-input gates in one launch.

    The first ``gate_blocks`` programs sum over the batch for the parameters, the others gather for the inputs; neither
    waits for the other. ``source`` is what :func:`entries` reads with map ``SOURCE``: theta itself or tables made
    from it.
    """
    block = tl.program_id(0)
    layer = grad_out, grad_stride, x, x_stride, fanin
    if block < gate_blocks:
        gate = block.to(tl.int64) * BLOCK_G + tl.arange(0, BLOCK_G)
        inside_gate = gate < gates
        grad_table = table_gradient2(*layer, gate, inside_gate, batch, BLOCK_B)
        store_gradient(grad_table, theta, grad_theta, gate, inside_gate, MAP, 2)
    else:
        row = (block - gate_blocks).to(tl.int64) * BLOCK_G + tl.arange(0, BLOCK_G)
        inside_row = row < features
        begin = tl.load(starts + row, mask=inside_row, other=0)
        end = tl.load(starts + row + 1, mask=inside_row, other=0)
        longest = tl.max(end - begin, axis=0)
        for first in range(0, batch, BLOCK_B):
            sample = first + tl.arange(0, BLOCK_B)
            inside_batch = sample < batch
            total = tl.zeros((BLOCK_G, BLOCK_B), tl.float32)
            for step in range(longest):
                there = begin + step < end
                reader = tl.load(readers + begin + step, mask=there, other=0)
                total += handed_by2(*layer, source, reader, there, sample, inside_batch, SOURCE)
            at = row[:, None] * batch + sample[None, :]
            tl.store(grad_x + at, total, mask=inside_row[:, None] & inside_batch[None, :])


@triton.jit
def lut_bwd_kernel(
    grad_out,
    grad_stride,
    x,
    x_stride,
    fanin,
    source,
    theta,
    grad_theta,
    grad_slot,
    gates,
    batch,
    SOURCE: tl.constexpr,
    MAP: tl.constexpr,
    ARITY: tl.constexpr,
    NEED_THETA: tl.constexpr,
    NEED_SLOT: tl.constexpr,
    BLOCK_G: tl.constexpr,
    BLOCK_B: tl.constexpr,
):
    """The gradient for theta, and what each gate passes to each of its slots, float32 [gates * ARITY, batch]."""
    gate = tl.program_id(0).to(tl.int64) * BLOCK_G + tl.arange(0, BLOCK_G)
    inside_gate = gate < gates
    table = widened(entries(source, gate, inside_gate, SOURCE, ARITY), ARITY)
    sums = zeros(1 << ARITY, BLOCK_G, BLOCK_B)
    for first in range(0, batch, BLOCK_B):
        sample = first + tl.arange(0, BLOCK_B)
        inside = inside_gate[:, None] & (sample < batch)[None, :]
        inputs = ()
        for slot in tl.static_range(ARITY):
            row = tl.load(fanin + ARITY * gate + slot, mask=inside_gate, other=0)
            inputs = inputs + (load_tile(x, row, x_stride, sample, inside),)
        grad = load_tile(grad_out, gate, grad_stride, sample, inside)
        handed, grads = differentiate(grad, table, inputs, ARITY)
        if NEED_SLOT:
            for slot in tl.static_range(ARITY):
                at = (gate * ARITY + slot)[:, None] * batch + sample[None, :]
                tl.store(grad_slot + at, handed[slot], mask=inside)
        if NEED_THETA:
            sums = added(sums, grads, 1 << ARITY)
    if NEED_THETA:
        grad_table = ()
        for entry in tl.static_range(1 << ARITY):
            grad_table = grad_table + (tl.sum(sums[entry], axis=1),)
        store_gradient(grad_table, theta, grad_theta, gate, inside_gate, MAP, ARITY)


@triton.jit
def gather_kernel(
    grad_slot,
    starts,
    readers,
    grad_x,
    features,
    batch,
    BLOCK_R: tl.constexpr,
    BLOCK_B: tl.constexpr,
):
    """Each row's gradient: the sum of what its readers pass to it. Grid: blocks of rows, blocks of samples."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    sample = tl.program_id(1) * BLOCK_B + tl.arange(0, BLOCK_B)
    inside_row = row < features
    inside_batch = sample < batch
    begin = tl.load(starts + row, mask=inside_row, other=0)
    end = tl.load(starts + row + 1, mask=inside_row, other=0)
    total = tl.zeros((BLOCK_R, BLOCK_B), tl.float32)
    for step in range(tl.max(end - begin, axis=0)):
        there = begin + step < end
        reader = tl.load(readers + begin + step, mask=there, other=0)
        total += load_tile(grad_slot, reader, batch, sample, there[:, None] & inside_batch[None, :])
    at = row[:, None] * batch + sample[None, :]
    tl.store(grad_x + at, total, mask=inside_row[:, None] & inside_batch[None, :])


@triton.jit
def table_kernel(theta, table, gates, MAP: tl.constexpr, ARITY: tl.constexpr, BLOCK_G: tl.constexpr):
    """Tables [gates, 2**ARITY] of parameters."""
    gate = tl.program_id(0).to(tl.int64) * BLOCK_G + tl.arange(0, BLOCK_G)
    inside = gate < gates
    values = entries(theta, gate, inside, MAP, ARITY)
    for entry in tl.static_range(1 << ARITY):
        tl.store(table + gate * (1 << ARITY) + entry, values[entry], mask=inside)
