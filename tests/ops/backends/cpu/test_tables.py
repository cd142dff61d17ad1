"""theta -> table and its gradient in the native library: error bounds of sin, cos, exp against double precision."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike, NDArray

from gatelight import native
from gatelight.ops import NATIVE_MAPS
from gatelight.ops.backends import cpu

if not cpu.is_available():
    if os.environ.get("CI") == "true":
        raise RuntimeError(str(native.why_not()))
    pytest.skip(str(native.why_not()), allow_module_level=True)

#: 1/2 + 1/2 sin has half of sin's bound of 1.2e-7, and the rounding of a number up to 1.
SIN_BOUND = 0.6e-7 + 0.6e-7


@pytest.fixture(autouse=True, params=cpu.available_simd())
def path(request: pytest.FixtureRequest) -> Iterator[None]:
    best = cpu.simd()
    cpu.select_simd(request.param)
    yield
    cpu.select_simd(best)


def angles() -> NDArray[np.float32]:
    random = np.random.default_rng(0)
    turns = np.arange(-3200, 3200)
    parts: list[ArrayLike] = [random.uniform(-span, span, 20_000) for span in (1e-3, 4, 100, 1e4)]
    parts += [turns * np.pi, (turns + 0.5) * np.pi, [0.0, 8192.0, -8192.0, 8192.5, 1e6, -3e7, 1e30]]
    return np.concatenate([np.asarray(part, np.float32) for part in parts])


def table(theta: NDArray[np.float32], map: str, arity: int = 2) -> NDArray[np.float32]:
    wide = theta.reshape(-1, NATIVE_MAPS[map].parameters(arity))
    return np.asarray(cpu.table_fwd(torch.from_numpy(wide), map, arity).numpy())


def slope(theta: NDArray[np.float32], map: str) -> NDArray[np.float32]:
    wide = torch.from_numpy(theta.reshape(-1, 2))
    return np.asarray(cpu.table_bwd(wide, torch.ones_like(wide), map, 1).numpy().reshape(-1))


def even(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return values[: len(values) // 2 * 2]


def test_sin_is_within_its_bound() -> None:
    theta = even(angles())
    exact = theta.astype(np.float64)
    assert np.abs(table(theta, "iwp-sin", 1).reshape(-1) - (0.5 + 0.5 * np.sin(exact))).max() < SIN_BOUND
    assert np.abs(slope(theta, "iwp-sin") - 0.5 * np.cos(exact)).max() < SIN_BOUND


def test_clamped_sin_and_linear_pass_gradients_straight_through() -> None:
    theta = even(angles())
    exact = theta.astype(np.float64)
    clamped = 0.5 + 0.5 * np.sin(np.clip(exact, -np.pi / 2, np.pi / 2))
    assert np.abs(table(theta, "iwp-sin-st", 1).reshape(-1) - clamped).max() < SIN_BOUND
    assert np.array_equal(table(theta, "iwp-linear-st", 1).reshape(-1), np.clip(theta, 0, 1))
    for map in ("iwp-sin-st", "iwp-linear-st", "iwp-sigmoid-st", "table"):
        assert np.array_equal(slope(theta, map), np.ones_like(theta))


def test_sigmoid_is_within_its_bound() -> None:
    theta = even(np.clip(angles(), -80, 80))
    exact = 1 / (1 + np.exp(-theta.astype(np.float64)))
    for map in ("iwp-sigmoid", "iwp-sigmoid-st"):
        assert np.abs(table(theta, map, 1).reshape(-1) / exact - 1).max() < 5e-7
    want = exact * (1 / (1 + np.exp(theta.astype(np.float64))))
    assert np.abs(slope(theta, "iwp-sigmoid") / want - 1).max() < 8e-7
    far = np.array([-1000, 1000, -np.inf, np.inf, -100, 100], np.float32)
    assert table(far, "iwp-sigmoid", 1).reshape(-1).tolist() == [0, 1, 0, 1, 0, 1]
    assert slope(far, "iwp-sigmoid").tolist() == [0] * 6


@pytest.mark.parametrize("map", [name for name, native_map in NATIVE_MAPS.items() if not native_map.per_function])
def test_nan_in_nan_out(map: str) -> None:
    theta = np.zeros(64, np.float32)
    theta[[5, 40]] = np.nan
    assert np.flatnonzero(np.isnan(table(theta, map).reshape(-1))).tolist() == [5, 40]
    if not map.endswith("-st") and map != "table":
        assert np.flatnonzero(np.isnan(slope(theta, map))).tolist() == [5, 40]


def test_sin_of_infinity_is_nan() -> None:
    assert np.isnan(table(np.array([np.inf, -np.inf], np.float32), "iwp-sin", 1)).all()


@pytest.mark.parametrize("arity", [1, 2, 3])
@pytest.mark.parametrize("gates", [1, 5, 16, 70])
def test_op_and_its_gradient(arity: int, gates: int) -> None:
    entries = 1 << arity
    random = torch.Generator().manual_seed(arity)
    theta = 3 * torch.randn(gates, 1 << entries, generator=random)
    theta[0, 0] = 200.0  # the others underflow
    grad = torch.randn(gates, entries, generator=random)
    exact = theta.double().requires_grad_()
    functions = torch.arange(1 << entries)[:, None] >> torch.arange(entries - 1, -1, -1) & 1
    want = torch.softmax(exact, -1) @ functions.double()
    (want_grad,) = torch.autograd.grad(want, exact, grad.double())
    torch.testing.assert_close(cpu.table_fwd(theta, "op", arity).double(), want.detach(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(cpu.table_bwd(theta, grad, "op", arity).double(), want_grad, rtol=1e-5, atol=1e-6)


def test_a_nan_logit_spoils_its_gate_alone() -> None:
    theta = torch.zeros(40, 16)
    theta[17, 3] = torch.nan
    spoiled = cpu.table_fwd(theta, "op", 2).isnan().any(1)
    assert spoiled.nonzero().flatten().tolist() == [17]
