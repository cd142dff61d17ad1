"""A chain of dense layers takes anything valid: kernels where there are some, else the reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from gatelight import native, ops
from gatelight.ops import NATIVE_MAPS, dense_chain, lut
from gatelight.ops.backends import reference

MAPS = ["iwp-sin", "op", "table", "iwp-sigmoid-st"]
ARITIES = [2, 3, 4, 1]


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    yield
    ops.set_backend("auto")


def operands(dtype: torch.dtype = torch.float32) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    random = torch.Generator().manual_seed(0)
    fanins = [torch.randint(0, 9, (9, arity), dtype=torch.int32, generator=random) for arity in ARITIES]
    columns = [NATIVE_MAPS[map].parameters(arity) for map, arity in zip(MAPS, ARITIES, strict=True)]
    thetas = [torch.rand(9, n, generator=random).to(dtype).requires_grad_() for n in columns]
    return torch.rand(7, 9, generator=random).to(dtype).requires_grad_(), fanins, thetas


def by_layers(x: Tensor, fanins: list[Tensor], thetas: list[Tensor]) -> Tensor:
    for fanin, theta, map, arity in zip(fanins, thetas, MAPS, ARITIES, strict=True):
        x = lut(x, fanin, reference.table(theta, map, arity))
    return x


def results(run: Any, x: Tensor, fanins: list[Tensor], thetas: list[Tensor]) -> list[Tensor]:
    out = run(x, fanins, thetas)
    return [out.detach(), *torch.autograd.grad(out.square().sum(), [x, *thetas])]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_the_reference_gives_the_bits_of_its_layers(dtype: torch.dtype) -> None:
    ops.set_backend("reference")
    tensors = operands(dtype)
    chain = results(lambda x, fanins, thetas: dense_chain(x, fanins, thetas, MAPS), *tensors)
    assert [t.dtype for t in chain] == [dtype] * 6
    for a, b in zip(chain, results(by_layers, *tensors), strict=True):
        assert torch.equal(a, b)
    with torch.no_grad():
        assert torch.equal(dense_chain(*tensors, MAPS), chain[0])


@pytest.mark.skipif(native.load() is None, reason=f"no native kernels: {native.why_not()}")
@pytest.mark.parametrize("memory", ["auto", "keep", "recompute"])
def test_kernels_equal_the_reference(memory: str) -> None:
    def run(x: Tensor, fanins: list[Tensor], thetas: list[Tensor]) -> Tensor:
        return dense_chain(x, fanins, thetas, MAPS, memory)

    tensors = operands()
    assert ops.supports("cpu", tensors[0], *tensors[2])
    fast = results(run, *tensors)
    ops.set_backend("reference")
    for a, b in zip(fast, results(run, *tensors), strict=True):
        torch.testing.assert_close(a, b)


def test_frozen_layers_get_no_gradient() -> None:
    x, fanins, thetas = operands()
    for backend in ("auto", "reference"):
        ops.set_backend(backend)
        frozen = [thetas[0].detach(), thetas[1], thetas[2].detach(), thetas[3]]
        dense_chain(x.detach(), fanins, frozen, MAPS).sum().backward()
        assert [theta.grad is None for theta in frozen] == [True, False, True, False]
    assert x.grad is None


@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_bad_operands_are_named(backend: str) -> None:
    ops.set_backend(backend)
    x, fanins, thetas = operands()
    with pytest.raises(ValueError, match="fanins, thetas and maps must have one entry for each layer, got 4, 4 and 3"):
        dense_chain(x, fanins, thetas, MAPS[:3])
    with pytest.raises(ValueError, match="one entry for each layer, got 0, 0 and 0"):
        dense_chain(x, [], [], [])
    with pytest.raises(ValueError, match=r"x must be \[batch, features\]"):
        dense_chain(x[0], fanins, thetas, MAPS)
    with pytest.raises(ValueError, match="unknown memory mode 'kep'"):
        dense_chain(x, fanins, thetas, MAPS, "kep")
    with pytest.raises(ValueError, match="theta must have 9 rows like fanin"):
        dense_chain(x, fanins, [thetas[0][:8].detach(), *thetas[1:]], MAPS)
    with pytest.raises(ValueError, match="int32"):
        dense_chain(x, [fanins[0].long(), *fanins[1:]], thetas, MAPS)
    with pytest.raises(ValueError, match=r"fanin\[0, 0\] must be from 0 to 8"):
        dense_chain(x, [fanins[0] + 9, *fanins[1:]], thetas, MAPS)


def test_other_dtypes_have_no_kernel() -> None:
    x, _, thetas = operands()
    assert not ops.supports("cpu", x.double(), *thetas)
    assert not ops.supports("cpu", x, *thetas[:2], thetas[2].double())
    assert not ops.supports("triton", x, *thetas)
    assert ops.supports("reference", x.double(), *thetas)
    with pytest.raises(ValueError, match="did you mean 'cpu'"):
        ops.supports("cpuu", x)
