"""Builds a circuit's gates layer by layer, each from the nets it reads to the nets it makes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gatelight import truthtable

_OR = truthtable.from_name("or", 2)


class CircuitBuilder:
    """Collects the gates of a circuit: layers are added one after another.

    Args:
        inputs: Number of input bits.
    """

    def __init__(self, inputs: int) -> None:
        self.inputs, self.gates = inputs, 0
        self._parts: list[tuple[NDArray[np.int32], NDArray[np.uint64]]] = []

    def add(self, fanin: NDArray[np.int32], table: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Add gates and return their nets, int32 [gates].

        Args:
            fanin: Nets that each gate reads, int32 [gates, arity]; -1 is constant false and is folded into the table.
            table: Rounded tables, uint8 [gates, 2**arity].
        """
        gates, arity = fanin.shape
        nets = np.arange(gates, dtype=np.int32) + np.int32(self.inputs + self.gates)
        absent = fanin < 0
        pattern = absent @ (1 << np.arange(arity))
        packed = truthtable.pack(table)
        order = []
        for value in np.unique(pattern):
            rows = np.flatnonzero(pattern == value)
            keep, codes = ~absent[rows[0]], packed[rows]
            # From the last input to the first, so that earlier inputs keep their index.
            for left, index in enumerate(np.flatnonzero(~keep)[::-1].tolist()):
                codes, _ = truthtable.cofactors(codes, arity - left, index)
            self._parts.append((fanin[rows][:, keep], codes))
            order.append(rows)
        self.gates += gates
        renamed = np.empty_like(nets)
        if order:
            renamed[np.concatenate(order)] = nets
        return renamed

    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.uint64]]:
        """fanin, arity and table of all gates, as a circuit holds them."""
        width = max((part.shape[1] for part, _ in self._parts), default=0)
        fanin = np.full((self.gates, width), -1, np.int32)
        arity = np.empty(self.gates, np.uint8)
        table = np.empty(self.gates, np.uint64)
        first = 0
        for nets, tables in self._parts:
            rows = slice(first, first + len(nets))
            fanin[rows, : nets.shape[1]], arity[rows], table[rows] = nets, nets.shape[1], tables
            first += len(nets)
        return fanin, arity, table

    def add_pool(self, image: NDArray[np.int32], side: int) -> NDArray[np.int32]:
        """OR over windows that do not overlap: nets [channels, h, w] -> nets [channels, h // side, w // side]."""
        channels, height, width = image.shape[0], image.shape[1] // side, image.shape[2] // side
        if height < 1 or width < 1:
            raise ValueError(
                f"images of {image.shape[1]} x {image.shape[2]} are too small for windows of {side} x {side}"
            )
        windows = image[:, : height * side, : width * side].reshape(channels, height, side, width, side)
        ors = self.add_or(windows.transpose(0, 1, 3, 2, 4).reshape(-1, side * side))
        return ors.reshape(channels, height, width)

    def add_or(self, windows: NDArray[np.int32]) -> NDArray[np.int32]:
        """The OR of the nets of each row, by a tree of gates of two inputs, int32 [rows]."""
        while windows.shape[1] > 1:
            paired = windows.shape[1] // 2 * 2
            pairs = windows[:, :paired].reshape(-1, 2)
            ors = self.add(pairs, np.broadcast_to(_OR, (len(pairs), 4)))
            windows = np.concatenate([ors.reshape(len(windows), -1), windows[:, paired:]], axis=1)
        return windows[:, 0]
