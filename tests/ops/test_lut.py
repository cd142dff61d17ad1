import itertools
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gatelight.ops import check_fanin, lut

ARITIES = range(1, 7)


def by_definition(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    """Sum over all entries of the probability that the inputs spell the entry."""
    batch, gates, arity = x.shape[0], *fanin.shape
    out = x.new_zeros(batch, gates)
    for gate in range(gates):
        for entry, bits in enumerate(itertools.product((0, 1), repeat=arity)):
            probability = torch.ones(batch, dtype=x.dtype)
            for slot, bit in enumerate(bits):
                value = x[:, fanin[gate, slot]]
                probability = probability * (value if bit else 1 - value)
            out[:, gate] += probability * table[gate, entry]
    return out


def operands(
    arity: int, batch: int = 3, features: int = 5, gates: int = 4, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(100 * arity + batch)
    x = torch.rand(batch, features, generator=generator, dtype=torch.float64).to(dtype)
    fanin = torch.randint(0, features, (gates, arity), generator=generator, dtype=torch.int32)
    table = torch.rand(gates, 1 << arity, generator=generator, dtype=torch.float64).to(dtype)
    return x, fanin, table


@given(st.integers(1, 6), st.integers(1, 9), st.integers(1, 6), st.integers(1, 5))
@settings(deadline=None, max_examples=40)
def test_equals_the_definition(arity: int, batch: int, features: int, gates: int) -> None:
    x, fanin, table = operands(arity, batch, features, gates)
    assert torch.allclose(lut(x, fanin, table), by_definition(x, fanin, table), atol=1e-12)


@pytest.mark.parametrize("arity", ARITIES)
def test_gradcheck(arity: int) -> None:
    x, fanin, table = operands(arity)
    x.requires_grad_()
    table.requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: lut(a, fanin, b), (x, table))


@pytest.mark.parametrize("arity", ARITIES)
def test_opcheck(arity: int) -> None:
    x, fanin, table = operands(arity)
    rows = x.t().contiguous()
    torch.library.opcheck(torch.ops.gatelight.lut_fwd, (rows.requires_grad_(), fanin, table.requires_grad_()))
    grad = torch.rand(len(fanin), len(x), dtype=torch.float64)
    torch.library.opcheck(torch.ops.gatelight.lut_bwd, (grad, rows.detach(), fanin, table.detach()))


def test_compiles_as_one_graph() -> None:
    x, fanin, table = operands(3, dtype=torch.float32)
    compiled = torch.compile(lut, fullgraph=True, backend="aot_eager")
    results = []
    for function in (lut, compiled):
        inputs = x.clone().requires_grad_(), table.clone().requires_grad_()
        out = function(inputs[0], fanin, inputs[1])
        out.square().sum().backward()
        results.append((out, inputs[0].grad, inputs[1].grad))
    for eager, other in zip(*results, strict=True):
        assert eager is not None
        assert other is not None
        assert torch.equal(eager, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("arity", ARITIES)
def test_dtypes(arity: int, dtype: torch.dtype) -> None:
    x, fanin, table = operands(arity, dtype=dtype)
    x.requires_grad_()
    table.requires_grad_()
    out = lut(x, fanin, table)
    out.sum().backward()
    assert out.dtype == dtype
    assert x.grad is not None
    assert x.grad.dtype == dtype
    exact = by_definition(x.detach().double(), fanin, table.detach().double())
    tolerance = {torch.float32: 1e-6, torch.float64: 1e-12, torch.bfloat16: 4e-3, torch.float16: 5e-4}[dtype]
    assert torch.allclose(out.detach().double(), exact, atol=tolerance)


def test_memory_is_feature_major() -> None:
    x, fanin, table = operands(2)
    out = lut(x, fanin, table)
    assert out.t().is_contiguous()
    strided = torch.rand(6, 10, dtype=torch.float64)[::2, ::2]
    assert torch.equal(lut(strided, fanin, table), lut(strided.contiguous(), fanin, table))


@pytest.mark.parametrize("batch", [0, 1])
def test_tiny_batches(batch: int) -> None:
    x, fanin, table = operands(2, batch=batch)
    x.requires_grad_()
    table.requires_grad_()
    out = lut(x, fanin, table)
    out.sum().backward()
    assert out.shape == (batch, 4)
    assert table.grad is not None
    assert table.grad.shape == table.shape


def test_nan_is_not_hidden() -> None:
    x, fanin, table = operands(2)
    x[1] = torch.nan
    out = lut(x, fanin, table)
    assert out[1].isnan().all()
    assert not out[[0, 2]].isnan().any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, f, t: (x[0], f, t), r"x must be \[batch, features\]"),
        (lambda x, f, t: (x, f[0], t), "fanin must be"),
        (lambda x, f, t: (x, f, t[:, :3]), r"table must be \[4, 4\]"),
        (lambda x, f, t: (x.int(), f, t), "float32, float64, bfloat16 or float16"),
        (lambda x, f, t: (x, f.long(), t), "int32"),
        (lambda x, f, t: (x, f.repeat(1, 4), t.repeat(1, 64)), "from 1 to 6"),
    ],
)
def test_bad_input(change: Callable[..., tuple[Tensor, Tensor, Tensor]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lut(*change(*operands(2)))


def test_check_fanin() -> None:
    check_fanin(torch.tensor([[0, 4]]), 5)
    for bad in ([[0, 5]], [[-1, 0]]):
        with pytest.raises(ValueError, match=r"fanin\[0, .\] must be from 0 to 4"):
            check_fanin(torch.tensor(bad), 5)


def test_a_gradient_of_another_shape_is_refused() -> None:
    fanin, table = torch.zeros(3, 2, dtype=torch.int32), torch.rand(3, 4)
    with pytest.raises(ValueError, match=r"grad_out must be \(3, 5\), got \(3,\)"):
        torch.ops.gatelight.lut_bwd(torch.rand(3), torch.rand(4, 5), fanin, table)
    with pytest.raises(ValueError, match="grad_out must be a tensor, got NoneType"):
        torch.ops.gatelight.lut_bwd(None, torch.rand(4, 5), fanin, table)
