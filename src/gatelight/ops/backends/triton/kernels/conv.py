"""Kernels of a convolutional layer: trees of gates over the windows of images, then max-pooling.

Arrays are feature-major: x [channels * HEIGHT * WIDTH, batch], out [trees * out_height * OUT_WIDTH, batch]. A program
computes a tile [BLOCK_P pixels of the pooled image, BLOCK_B samples] of one tree. A tree is stored from its root,
level by level, and its values here are tuples: the leaves, the outputs of the level above, ..., the root.
"""

from __future__ import annotations

import triton
import triton.language as tl

from gatelight.ops.backends.triton.kernels.gate import added, differentiate, evaluate, load_tile, zeros
from gatelight.ops.backends.triton.kernels.maps import store_gradient


@triton.jit
def load_leaves(
    x,
    x_stride,
    fanin,
    tree,
    oy,
    ox,
    place,
    sample,
    inside,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    KERNEL: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    POOL: tl.constexpr,
    LEAVES: tl.constexpr,
):
    """What a tree's leaves read for pooled pixels (oy, ox) at a place of their pooling windows; padding is 0."""
    leaves = ()
    for number in tl.static_range(LEAVES):
        leaf = tl.load(fanin + tree * LEAVES + number)
        sy = place // POOL
        sx = place % POOL
        column = sample[None, :]
        y = (oy * POOL + sy) * STRIDE - PADDING + leaf // KERNEL % KERNEL
        across = (ox * POOL + sx) * STRIDE - PADDING + leaf % KERNEL
        row = (leaf // (KERNEL * KERNEL) * HEIGHT + y) * WIDTH + across
        seen = (y >= 0) & (y < HEIGHT) & (across >= 0) & (across < WIDTH)
        value = tl.load(x + row.to(tl.int64) * x_stride + column, mask=inside & seen, other=0.0)
        leaves = leaves + (value.to(tl.float32),)
    return leaves


@triton.jit
def store_leaves(grad_leaf, grads, tree, pixel, pixels, sample, batch, inside, LEAVES: tl.constexpr):
    """Write the gradients of a tree's leaves, [trees * leaves, pixels, batch]."""
    for number in tl.static_range(LEAVES):
        at = ((tree * LEAVES + number) * pixels + pixel)[:, None] * batch + sample[None, :]
        tl.store(grad_leaf + at, grads[number], mask=inside)


@triton.jit
def load_table(table, tree, node, TREE_GATES: tl.constexpr, ARITY: tl.constexpr):
    """The entries of one gate, scalars."""
    entries = ()
    for entry in tl.static_range(1 << ARITY):
        at = (tree * TREE_GATES + node) * (1 << ARITY) + entry
        entries = entries + (tl.load(table + at).to(tl.float32),)
    return entries


@triton.jit
def inputs_of(values, gate: tl.constexpr, ARITY: tl.constexpr):
    """The inputs of a level's gate among the values below."""
    inputs = ()
    for slot in tl.static_range(ARITY):
        inputs = inputs + (values[gate * ARITY + slot],)
    return inputs


@triton.jit
def level_fwd(values, table, tree, TREE_GATES: tl.constexpr, ARITY: tl.constexpr, LEVEL: tl.constexpr):
    """The outputs of the gates of a level; level 0 is the root."""
    FIRST: tl.constexpr = LEVEL if ARITY == 1 else (ARITY**LEVEL - 1) // (ARITY - 1)
    outputs = ()
    for gate in tl.static_range(ARITY**LEVEL):
        entries = load_table(table, tree, FIRST + gate, TREE_GATES, ARITY)
        outputs = outputs + (evaluate(entries, inputs_of(values, gate, ARITY), ARITY),)
    return outputs


@triton.jit
def level_bwd(grads, values, table, tree, TREE_GATES: tl.constexpr, ARITY: tl.constexpr, LEVEL: tl.constexpr):
    """Gradients for the values below a level and for the tables of its gates."""
    FIRST: tl.constexpr = LEVEL if ARITY == 1 else (ARITY**LEVEL - 1) // (ARITY - 1)
    below = ()
    terms = ()
    for gate in tl.static_range(ARITY**LEVEL):
        entries = load_table(table, tree, FIRST + gate, TREE_GATES, ARITY)
        handed, parts = differentiate(grads[gate], entries, inputs_of(values, gate, ARITY), ARITY)
        below = below + handed
        terms = terms + parts
    return below, terms


@triton.jit
def tree_fwd(leaves, table, tree, TREE_GATES: tl.constexpr, ARITY: tl.constexpr, DEPTH: tl.constexpr):
    """What each level of a tree reads: the leaves, the outputs of the level above, ...; the root's output is left."""
    levels = (leaves,)
    for up in tl.static_range(DEPTH - 1):
        levels = levels + (level_fwd(levels[up], table, tree, TREE_GATES, ARITY, DEPTH - 1 - up),)
    return levels


@triton.jit
def tree_bwd(grad, levels, table, tree, TREE_GATES: tl.constexpr, ARITY: tl.constexpr, DEPTH: tl.constexpr):
    """Given the gradient for the root, those for the leaves and for the tables of all gates, from the root on."""
    grads = (grad,)
    terms = ()
    for level in tl.static_range(DEPTH):
        grads, parts = level_bwd(grads, levels[DEPTH - 1 - level], table, tree, TREE_GATES, ARITY, level)
        terms = terms + parts
    return grads, terms


@triton.jit
def conv_fwd_kernel(
    x,
    x_stride,
    fanin,
    table,
    out,
    winner,
    pixels,
    batch,
    OUT_WIDTH: tl.constexpr,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    KERNEL: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    POOL: tl.constexpr,
    KEEP: tl.constexpr,
    ARITY: tl.constexpr,
    DEPTH: tl.constexpr,
    TREE_GATES: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_B: tl.constexpr,
):
    """Pooled outputs and, if KEEP, which position of the window each came from. Grid: trees, pixels, samples."""
    tree = tl.program_id(0).to(tl.int64)
    pixel = tl.program_id(1) * BLOCK_P + tl.arange(0, BLOCK_P)
    sample = tl.program_id(2) * BLOCK_B + tl.arange(0, BLOCK_B)
    inside = (pixel < pixels)[:, None] & (sample < batch)[None, :]
    oy, ox = (pixel // OUT_WIDTH)[:, None], (pixel % OUT_WIDTH)[:, None]
    LEAVES: tl.constexpr = ARITY**DEPTH
    best = tl.full((BLOCK_P, BLOCK_B), float("-inf"), tl.float32)
    place = tl.zeros((BLOCK_P, BLOCK_B), tl.int32)
    for window in tl.static_range(POOL * POOL):
        read = x, x_stride, fanin, tree, oy, ox, window, sample, inside
        values = load_leaves(*read, HEIGHT, WIDTH, KERNEL, STRIDE, PADDING, POOL, LEAVES)
        for up in tl.static_range(DEPTH):
            values = level_fwd(values, table, tree, TREE_GATES, ARITY, DEPTH - 1 - up)
        # The first of equal values wins, and NaN wins over all.
        better = (values[0] > best) | (values[0] != values[0])
        best = tl.where(better, values[0], best)
        place = tl.where(better, window, place)
    at = (tree * pixels + pixel)[:, None] * batch + sample[None, :]
    tl.store(out + at, best, mask=inside)
    if KEEP:
        tl.store(winner + at, place.to(tl.uint8), mask=inside)


@triton.jit
def conv_bwd_kernel(
    grad_out,
    grad_stride,
    x,
    x_stride,
    fanin,
    table,
    winner,
    grad_table,
    grad_leaf,
    trees,
    pixels,
    batch,
    part,
    OUT_WIDTH: tl.constexpr,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    KERNEL: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    POOL: tl.constexpr,
    NEED_X: tl.constexpr,
    ARITY: tl.constexpr,
    DEPTH: tl.constexpr,
    TREE_GATES: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_B: tl.constexpr,
):
    """Sums for the tables, [parts, trees * TREE_GATES, 2**ARITY], and the gradients of leaves.

    Those are [trees * leaves, pixels, batch], float32; of a pooling window only the winner has one. Grid: trees, parts
    of ``part`` pooled pixels each.
    """
    tree = tl.program_id(0).to(tl.int64)
    begin = tl.program_id(1) * part
    end = tl.minimum(begin + part, pixels)
    LEAVES: tl.constexpr = ARITY**DEPTH
    ENTRIES: tl.constexpr = TREE_GATES * (1 << ARITY)
    sums = zeros(ENTRIES, BLOCK_P, BLOCK_B)
    tiles_across = tl.cdiv(batch, BLOCK_B)
    for tile in range(tl.cdiv(end - begin, BLOCK_P) * tiles_across):
        pixel = begin + tile // tiles_across * BLOCK_P + tl.arange(0, BLOCK_P)
        sample = tile % tiles_across * BLOCK_B + tl.arange(0, BLOCK_B)
        inside = (pixel < end)[:, None] & (sample < batch)[None, :]
        row = tree * pixels + pixel
        oy, ox = (pixel // OUT_WIDTH)[:, None], (pixel % OUT_WIDTH)[:, None]
        place = tl.zeros((BLOCK_P, BLOCK_B), tl.int32)
        if POOL > 1:
            place = tl.load(winner + row[:, None] * batch + sample[None, :], mask=inside, other=0).to(tl.int32)
        read = x, x_stride, fanin, tree, oy, ox, place, sample, inside
        leaves = load_leaves(*read, HEIGHT, WIDTH, KERNEL, STRIDE, PADDING, POOL, LEAVES)
        levels = tree_fwd(leaves, table, tree, TREE_GATES, ARITY, DEPTH)
        grad = load_tile(grad_out, row, grad_stride, sample, inside)
        grads, terms = tree_bwd(grad, levels, table, tree, TREE_GATES, ARITY, DEPTH)
        sums = added(sums, terms, ENTRIES)
        if NEED_X:
            store_leaves(grad_leaf, grads, tree, pixel, pixels, sample, batch, inside, LEAVES)
    for entry in tl.static_range(ENTRIES):
        at = (tl.program_id(1) * trees + tree) * ENTRIES + entry
        tl.store(grad_table + at, tl.sum(tl.sum(sums[entry], axis=1), axis=0))


@triton.jit
def conv_gather_kernel(
    grad_leaf,
    fanin,
    winner,
    starts,
    readers,
    grad_x,
    pixels,
    batch,
    OUT_WIDTH: tl.constexpr,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    KERNEL: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    POOL: tl.constexpr,
    LEAVES: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BLOCK_B: tl.constexpr,
):
    """The gradient for the images: every pixel gathers from the leaves that read its channel.

    Grid: channels, pixels, samples.
    """
    channel = tl.program_id(0).to(tl.int64)
    here = tl.program_id(1) * BLOCK_P + tl.arange(0, BLOCK_P)
    sample = tl.program_id(2) * BLOCK_B + tl.arange(0, BLOCK_B)
    inside = (here < HEIGHT * WIDTH)[:, None] & (sample < batch)[None, :]
    y = here // WIDTH + PADDING
    across = here % WIDTH + PADDING
    total = tl.zeros((BLOCK_P, BLOCK_B), tl.float32)
    for at in range(tl.load(starts + channel), tl.load(starts + channel + 1)):
        reader = tl.load(readers + at).to(tl.int64)
        leaf = tl.load(fanin + reader)
        # The window in which this leaf meets this pixel, if there is one that pooling keeps.
        down = y - leaf // KERNEL % KERNEL
        right = across - leaf % KERNEL
        wy = down // STRIDE
        wx = right // STRIDE
        pixel = wy // POOL * OUT_WIDTH + wx // POOL
        meets = (down >= 0) & (right >= 0) & (down % STRIDE == 0) & (right % STRIDE == 0)
        meets = meets & (wx < OUT_WIDTH * POOL) & (pixel < pixels)
        found = inside & meets[:, None]
        if POOL > 1:
            rows = (reader // LEAVES * pixels + pixel)[:, None] * batch + sample[None, :]
            place = tl.load(winner + rows, mask=found, other=0).to(tl.int32)
            found = found & (place == (wy % POOL * POOL + wx % POOL)[:, None])
        total += load_tile(grad_leaf, reader * pixels + pixel, batch, sample, found)
    out = (channel * (HEIGHT * WIDTH) + here)[:, None] * batch + sample[None, :]
    tl.store(grad_x + out, total, mask=inside)


@triton.jit
def table_bwd_kernel(
    partial,
    theta,
    grad_theta,
    gates,
    parts,
    MAP: tl.constexpr,
    ARITY: tl.constexpr,
    BLOCK_G: tl.constexpr,
):
    """Gradients for theta from sums for the tables in parts, [parts, gates, 2**ARITY]."""
    gate = tl.program_id(0).to(tl.int64) * BLOCK_G + tl.arange(0, BLOCK_G)
    inside = gate < gates
    grad_table = ()
    for entry in tl.static_range(1 << ARITY):
        total = tl.zeros((BLOCK_G,), tl.float32)
        for part in range(parts):
            at = (part * gates + gate) * (1 << ARITY) + entry
            total += tl.load(partial + at, mask=inside, other=0.0)
        grad_table = grad_table + (total,)
    store_gradient(grad_table, theta, grad_theta, gate, inside, MAP, ARITY)
