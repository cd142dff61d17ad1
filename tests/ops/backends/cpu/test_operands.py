"""Around the native kernels: checks, memory, threads, and odd values that come out where they belong."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from gatelight import native
from gatelight.ops import check_fanin
from gatelight.ops.backends import cpu
from gatelight.ops.backends.cpu import memory

if not cpu.is_available():
    if os.environ.get("CI") == "true":
        raise RuntimeError(str(native.why_not()))
    pytest.skip(str(native.why_not()), allow_module_level=True)

PATHS = cpu.available_simd()


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    best = cpu.simd()
    yield
    cpu.select_simd(best)
    cpu.set_threads(None)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("batch", [1, 3, 20])
def test_nan_stays_where_it_belongs(path: str, batch: int) -> None:
    cpu.select_simd(path)
    fanin = torch.tensor([[0, 1], [1, 2], [2, 2]], dtype=torch.int32)
    tables = torch.rand(3, 4)
    x = torch.rand(3, batch)
    x[0, batch - 1] = torch.nan
    out = cpu.lut_fwd(x, fanin, tables)
    want = torch.zeros(3, batch, dtype=torch.bool)
    want[0, batch - 1] = True
    assert torch.equal(out.isnan(), want)
    grad_x, grad_table = cpu.lut_bwd(torch.ones(3, batch), x, fanin, tables)
    assert grad_table.isnan().any(1).tolist() == [True, False, False]
    assert not grad_x[:, : batch - 1].isnan().any()
    assert not grad_x[2].isnan().any()


@pytest.mark.parametrize("batch", [3, 19])
@pytest.mark.parametrize("mode", cpu.MODES)
def test_padding_adds_nothing_where_values_overflow(mode: str, batch: int) -> None:
    # With x = 0 the first layer would give 1e38 and the second infinity; no sample has x = 0.
    fanins = [torch.zeros(1, arity, dtype=torch.int32) for arity in (1, 2, 1)]
    thetas = [torch.tensor([[1e38, 0.0]]), torch.tensor([[0.0, 0.0, 0.0, 1.0]]), torch.tensor([[0.0, 1.0]])]
    x, grad_out = torch.ones(1, batch), torch.ones(1, batch)
    out, saved = cpu.dense_chain_fwd(x, fanins, thetas, ["table"] * 3, mode)
    _, grads = cpu.dense_chain_bwd(grad_out, x, saved, fanins, thetas, ["table"] * 3, mode)
    assert torch.equal(out, torch.zeros(1, batch))
    assert grads[2].tolist() == [[batch, 0.0]]


def chain_of(
    batch: int, features: int, gates: int, layers: int
) -> tuple[Tensor, list[Tensor], list[Tensor], list[str]]:
    """x, fanins, thetas and maps of a chain of equal layers."""
    random = torch.Generator().manual_seed(0)
    fanins = [
        torch.randint(0, gates if layer else features, (gates, 2), dtype=torch.int32, generator=random)
        for layer in range(layers)
    ]
    thetas = [torch.randn(gates, 4, generator=random) for _ in range(layers)]
    return torch.rand(features, batch, generator=random), fanins, thetas, ["iwp-sin"] * layers


def test_memory_of_both_modes() -> None:
    gates, batch = 4000, 100

    def bytes_of(mode: str, layers: int) -> int:
        chain = chain_of(batch, 500, gates, layers)
        _, saved = cpu.dense_chain_fwd(*chain, mode)
        return saved[0].numel() + cpu.work_bytes(*chain, mode)

    cpu.set_threads(2)
    assert bytes_of("keep", 40) <= 1.3 * 4 * gates * 40 * batch
    # Coefficients and sums of two more groups for 8 layers, activations of 3 layers and one gradient for 112 samples,
    # and 10 layers of a tile for each of two threads; tiles have 5 rows more than a layer.
    assert bytes_of("recompute", 160) == bytes_of("recompute", 80) == bytes_of("recompute", 40)
    assert bytes_of("recompute", 40) <= 4 * (gates + 5) * (8 * 12 + 4 * 112 + 2 * 10 * 16)


def test_inference_leaves_nothing() -> None:
    chain = chain_of(40, 9, 30, layers=20)
    want, _ = cpu.dense_chain_fwd(*chain, "recompute")
    out, saved = cpu.dense_chain_fwd(*chain, "recompute", save=False)
    assert saved == []
    assert torch.equal(out.view(torch.int32), want.view(torch.int32))
    out, saved = cpu.dense_chain_fwd(*chain, "keep", save=False)
    assert saved == []
    assert torch.equal(out.view(torch.int32), want.view(torch.int32))


def test_a_forked_child_computes() -> None:
    chain = chain_of(64, 10, 200, layers=2)
    cpu.set_threads(3)
    want, _ = cpu.dense_chain_fwd(*chain)

    def child() -> None:
        # Nothing large enough for torch's own threads, which do not survive a fork.
        out, _ = cpu.dense_chain_fwd(*chain)
        os._exit(0 if out.numpy().tobytes() == want.numpy().tobytes() else 1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
    process.join(20)
    alive = process.is_alive()
    process.kill()
    assert not alive, "the child hangs"
    assert process.exitcode == 0


def test_saved_memory_comes_back() -> None:
    first = memory.acquire(5_000_000)
    address = first.data_ptr()
    view = first.view(torch.float32)
    del first
    other = memory.acquire(5_000_000)
    assert other.data_ptr() != address
    del view
    assert memory.acquire(5_000_000).data_ptr() == address


def test_bad_arguments_are_named() -> None:
    fanin, theta, x = torch.zeros(3, 2, dtype=torch.int32), torch.zeros(3, 4), torch.zeros(5, 7)
    with pytest.raises(ValueError, match="theta must have shape"):
        cpu.dense_chain_fwd(x, [fanin], [theta], ["op"])
    with pytest.raises(ValueError, match="theta must have 3 rows"):
        cpu.dense_chain_fwd(x, [fanin], [theta[:2]], ["table"])
    with pytest.raises(ValueError, match="unknown map 'sin'"):
        cpu.dense_chain_fwd(x, [fanin], [theta], ["sin"])
    with pytest.raises(ValueError, match="unknown memory mode"):
        cpu.dense_chain_fwd(x, [fanin], [theta], ["table"], "kep")
    with pytest.raises(ValueError, match="one entry for each layer"):
        cpu.dense_chain_fwd(x, [fanin], [theta], [])
    with pytest.raises(ValueError, match="x must be float32"):
        cpu.lut_fwd(x.double(), fanin, theta)
    with pytest.raises(ValueError, match="fanin must be a contiguous"):
        cpu.lut_fwd(x, fanin.long(), theta)
    with pytest.raises(ValueError, match="theta must be a contiguous"):
        cpu.lut_fwd(x, fanin, theta.t().contiguous().t())
    with pytest.raises(ValueError, match="grad_out must be"):
        cpu.lut_bwd(torch.zeros(3, 6), x, fanin, theta)
    with pytest.raises(ValueError, match="saved must hold"):
        cpu.dense_chain_bwd(torch.zeros(3, 7), x, [torch.empty(0)], [fanin] * 2, [theta] * 2, ["table"] * 2)
    with pytest.raises(ValueError, match="arity of map 'op' must be from 1 to 3"):
        cpu.table_fwd(torch.zeros(1, 4), "op", 4)
    with pytest.raises(ValueError, match="threads must be"):
        cpu.set_threads(0)
    with pytest.raises(ValueError, match="unknown SIMD path"):
        cpu.select_simd("mmx")


def test_an_index_out_of_range_is_found() -> None:
    fanin = torch.tensor([[0, 1], [4, 5]], dtype=torch.int32)
    check_fanin(fanin, 6)
    with pytest.raises(ValueError, match=r"fanin\[1, 1\] must be from 0 to 4, got 5"):
        check_fanin(fanin, 5)
    with pytest.raises(ValueError, match=r"fanin\[0, 1\].* got -1"):
        check_fanin(torch.tensor([[0, -1]], dtype=torch.int32), 5)


def test_threads_follow_torch_unless_set() -> None:
    assert cpu.get_threads() == torch.get_num_threads()
    cpu.set_threads(3)
    assert cpu.get_threads() == 3
