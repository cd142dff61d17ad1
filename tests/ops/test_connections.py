"""Connections out of range never reach a kernel."""

from __future__ import annotations

import gc

import pytest
import torch

from gatelight import ops
from gatelight.ops import ConvShape, check_fanin, connections
from gatelight.ops.backends import cpu


def bad(value: int = 2) -> torch.Tensor:
    return torch.tensor([[0, value]], dtype=torch.int32)


@pytest.mark.parametrize("value", [2, -1, 1 << 30, -(1 << 31)])
def test_every_op_refuses(value: int) -> None:
    x, table = torch.rand(4, 2), torch.rand(1, 4)
    for run in (
        lambda: ops.lut(x, bad(value), table),
        lambda: ops.lut(x.double(), bad(value), table.double()),
        lambda: ops.dense_chain(x, [bad(value)], [table], ["table"]),
        lambda: torch.ops.gatelight.lut_fwd(x.t().contiguous(), bad(value), table),
        lambda: torch.ops.gatelight.lut_bwd(torch.rand(1, 4), x.t().contiguous(), bad(value), table),
        lambda: cpu.dense_chain_fwd(x.t(), [bad(value)], [table], ["table"]),
    ):
        with pytest.raises(ValueError, match=r"fanin\[0, 1\] must be from 0 to 1"):
            run()
    shape = ConvShape(channels=1, height=3, width=3, kernel=2, depth=1)
    leaf = value if value != 2 else 4
    for run in (
        lambda: ops.conv(torch.rand(2, 1, 3, 3), bad(leaf), table, shape),
        lambda: ops.conv_chain(torch.rand(2, 1, 3, 3), [shape], [bad(leaf)], [table], ["table"]),
    ):
        with pytest.raises(ValueError, match=r"fanin\[0, 1\] must be from 0 to 3"):
            run()


def test_what_was_checked_is_remembered_until_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    check = connections._check_values

    def counting(fanin: torch.Tensor, features: int) -> None:
        looked.append(features)
        check(fanin, features)

    monkeypatch.setattr(connections, "_check_values", counting)
    fanin = torch.tensor([[0, 1]], dtype=torch.int32)
    for _ in range(3):
        check_fanin(fanin, 2)
    assert looked == [2]
    check_fanin(fanin, 3)
    check_fanin(fanin, 2)
    assert looked == [2, 3, 2]
    fanin[0, 0] = 1
    check_fanin(fanin, 2)
    assert len(looked) == 4
    fanin.data = torch.tensor([[0, 5]], dtype=torch.int32)
    with pytest.raises(ValueError, match="got 5"):
        check_fanin(fanin, 2)
    with torch.inference_mode():
        inference = torch.tensor([[0, 1]], dtype=torch.int32)
        check_fanin(inference, 2)
        inference[0, 0] = 7
        with pytest.raises(ValueError, match="got 7"):
            check_fanin(inference, 2)


def test_nothing_is_remembered_of_tensors_that_are_gone() -> None:
    gc.collect()
    before = len(connections._in_range)
    for i in range(100):
        check_fanin(torch.tensor([[0, i]], dtype=torch.int32), 100)
    gc.collect()
    assert len(connections._in_range) == before


def test_saved_bytes_are_checked() -> None:
    x, fanin, theta = torch.rand(8, 40), torch.randint(0, 8, (6, 2), dtype=torch.int32), torch.rand(6, 4)
    layers = [fanin, torch.randint(0, 6, (5, 2), dtype=torch.int32)], [theta, torch.rand(5, 4)], ["table", "table"]
    out, [saved] = cpu.dense_chain_fwd(x, *layers, "keep")
    grad = torch.rand(out.shape)
    cpu.dense_chain_bwd(grad, x, [saved], *layers, "keep")
    for wrong in (saved[:-1], torch.cat([saved, saved])[1:][: saved.numel()], saved.view(torch.int8), saved[None]):
        with pytest.raises(ValueError, match="saved must"):
            cpu.dense_chain_bwd(grad, x, [wrong], *layers, "keep")
