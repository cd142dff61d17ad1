import itertools
import math

import pytest
import torch
from torch import Tensor

from gatelight import parametrize, truthtable
from gatelight.nn import LogicDense
from gatelight.parametrize import ESTIMATORS, IWP, OP, Init, inits

KINDS: list[tuple[str, str | None]] = [*(("iwp", estimator) for estimator in ESTIMATORS), ("op", None)]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_formulas() -> None:
    theta = torch.tensor([[-2.0, -0.3, 0.4, 2.0]])
    values = theta[0].tolist()
    expected = {
        "sin": [0.5 + 0.5 * math.sin(t) for t in values],
        "sigmoid": [1 / (1 + math.exp(-t)) for t in values],
        "sigmoid-st": [1 / (1 + math.exp(-t)) for t in values],
        "sin-st": [0.0, 0.5 + 0.5 * math.sin(-0.3), 0.5 + 0.5 * math.sin(0.4), 1.0],
        "sin-sign": [0.5 + 0.5 * math.sin(t) for t in values],
        "linear-st": [0.0, 0.0, 0.4, 1.0],
    }
    for name, table in expected.items():
        assert torch.allclose(IWP(2, name).table(theta), torch.tensor([table]), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arity", [1, 2, 3])
def test_swapped_inputs(kind: tuple[str, str | None], arity: int) -> None:
    map_ = parametrize.make(kind[0], arity=arity, estimator=kind[1])
    theta = torch.randn(20, map_.parameters, generator=generator())
    swapped = map_.swap_inputs(theta)
    assert swapped is not None
    for table in (map_.table, map_.rounded):
        wanted = truthtable.swap_ends(table(theta).numpy())
        assert torch.allclose(table(swapped), torch.from_numpy(wanted), atol=1e-6)
    again = map_.swap_inputs(swapped)
    assert again is not None
    assert torch.equal(again, theta)


@pytest.mark.parametrize("name", ["sigmoid-st", "sin-st", "linear-st"])
def test_straight_through_gradient_is_one(name: str) -> None:
    theta = torch.linspace(-4, 4, 8).view(2, 4).requires_grad_()
    weights = torch.arange(8.0).view(2, 4)
    (IWP(2, name).table(theta) * weights).sum().backward()
    assert theta.grad is not None
    assert torch.equal(theta.grad, weights)


def test_the_authors_straight_through_sine_follows_the_sign_of_the_slope() -> None:
    theta = torch.tensor([[-4.0, -1.0, 1.0, 4.0]], requires_grad=True)
    (IWP(2, "sin-sign").table(theta) * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert theta.grad is not None
    assert theta.grad.tolist() == [[-1.0, 2.0, 3.0, -4.0]]


@pytest.mark.parametrize("name", ["sin", "sigmoid"])
def test_true_gradients(name: str) -> None:
    theta = torch.randn(2, 4, dtype=torch.float64, generator=generator()).requires_grad_()
    assert torch.autograd.gradcheck(IWP(2, name).table, (theta,))
    assert torch.autograd.gradcheck(OP(1).table, (theta,))


@pytest.mark.parametrize("arity", [1, 2, 3])
def test_op_is_a_mixture_of_all_functions(arity: int) -> None:
    op = OP(arity)
    theta = torch.randn(5, op.parameters, generator=generator())
    weights = theta.exp() / theta.exp().sum(1, keepdim=True)
    expected = torch.zeros(5, 1 << arity)
    for index in range(op.parameters):
        expected += weights[:, index, None] * torch.from_numpy(truthtable.from_id(index + 1, arity))
    assert torch.allclose(op.table(theta), expected, atol=1e-6)
    for gate in range(5):
        assert truthtable.to_id(op.rounded(theta)[gate].numpy()) == int(theta[gate].argmax()) + 1


def test_rounding_example_of_the_paper() -> None:
    weights = torch.zeros(1, 16)
    weights[0, [3, 5, 7]] = torch.tensor([0.4, 0.3, 0.3])
    op = OP(2)
    table = op.table(weights.log())
    assert torch.allclose(table, torch.tensor([[0.0, 0.6, 0.7, 1.0]]))
    assert truthtable.name(op.rounded(weights.log())[0].numpy()) == "a"
    assert truthtable.name(IWP(2, "linear-st").rounded(table)[0].numpy()) == "or"


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.5])
def test_iwp_rounding_is_optimal_in_every_norm(norm: float) -> None:
    iwp = IWP(2, "sin")
    theta = torch.randn(50, 4, generator=generator()) * 2
    table, rounded = iwp.table(theta), iwp.rounded(theta)
    every = torch.from_numpy(truthtable.all_tables(2)).float()
    distances = (table[:, None] - every).abs().pow(norm).sum(2)
    assert torch.allclose((table - rounded).abs().pow(norm).sum(1), distances.min(1).values)


def test_parameter_counts_and_limits() -> None:
    assert [IWP(n).parameters for n in range(1, 7)] == [2, 4, 8, 16, 32, 64]
    assert [OP(n).parameters for n in range(1, 4)] == [4, 16, 256]
    with pytest.raises(ValueError, match="arity must be at most 3, got 4; use parametrization 'iwp'"):
        OP(4)
    with pytest.raises(ValueError, match="did you mean 'iwp'"):
        parametrize.make("ipw")
    with pytest.raises(ValueError, match="did you mean 'sigmoid'"):
        IWP(2, "sigmoi")


def test_residual_init_is_the_papers() -> None:
    for name, (mean, spread) in {"sin": (1.2, 0.25), "sigmoid": (3.0, 0.5)}.items():
        theta = IWP(2, name).init(20_000, Init("residual"), generator())
        signs = torch.tensor([-1.0, -1.0, 1.0, 1.0])
        assert torch.allclose((theta * signs).mean(0), torch.full((4,), mean), atol=0.02)
        assert torch.allclose(theta.std(0), torch.full((4,), spread), atol=0.02)
    theta = OP(2).init(3, Init("residual"), generator())
    assert theta[:, 3].tolist() == [5.0] * 3
    assert theta.sum().item() == 15.0
    strong = IWP(2).init(1000, Init("residual", 1.5, 0.125), generator())
    assert strong[:, 3].mean().item() == pytest.approx(1.5, abs=0.02)
    assert strong[:, 3].std().item() == pytest.approx(0.125, abs=0.02)


def test_gaussian_init() -> None:
    for parametrization in (IWP(2, "sin"), OP(2)):
        theta = parametrization.init(20_000, Init("gaussian"), generator())
        assert abs(theta.mean().item()) < 0.02
        assert theta.std().item() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("arity", range(1, 7))
@pytest.mark.parametrize("kind", KINDS)
def test_inits_round_to_their_functions(kind: tuple[str, str | None], arity: int) -> None:
    if kind[0] == "op" and arity > 3:
        return
    made = parametrize.make(kind[0], arity=arity, estimator=kind[1])
    for init in inits.names(arity):
        if init == "gaussian":
            continue
        theta = made.init(400, Init(init, std=0.0), generator())
        counts: dict[str, int] = {}
        for table in made.rounded(theta):
            name = truthtable.name(table.numpy())
            counts[name] = counts.get(name, 0) + 1
        inputs = list("abcdef"[:arity])
        if init == "uniform":
            assert len(counts) >= min(100, 1 << (1 << arity))
        elif init == "residual" or (arity == 1 and init in ("and-or", "and-or-residual")):
            assert counts == {"a": 400}
        elif init == "and-or":
            assert set(counts) == {"and", "or"}
            assert 150 < counts["and"] < 250
        elif init == "and-or-residual":
            assert set(counts) == {"and", "or", *inputs}
            assert 140 < sum(counts[i] for i in inputs) < 260
        else:
            assert counts == {init: 400}


def targets(arity: int) -> Tensor:
    names = ["xor", "majority"] if arity > 2 else ["xor", "or"] if arity == 2 else ["not-a", "a"]
    return torch.stack([torch.from_numpy(truthtable.from_name(n, arity)).float() for n in names])


@pytest.mark.parametrize("arity", range(1, 7))
@pytest.mark.parametrize("kind", KINDS)
def test_every_estimator_and_init_learns_parity_and_majority(kind: tuple[str, str | None], arity: int) -> None:
    if kind[0] == "op" and arity > 3:
        return
    x = torch.tensor(list(itertools.product((0.0, 1.0), repeat=arity)))
    y = targets(arity).t()
    wiring = torch.arange(arity, dtype=torch.int32).expand(2, arity)
    for init in inits.names(arity):
        layer = LogicDense(
            arity, 2, arity=arity, parametrization=kind[0], estimator=kind[1], init=init, wiring=wiring, seed=1
        )
        optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
        for _ in range(400):
            loss = (layer(x) - y).square().mean()
            if torch.equal(layer.rounded_table(), y.t()) and loss < 0.05:
                break
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert torch.equal(layer.rounded_table(), y.t()), init
        assert loss < 0.05, init


def test_unknown_init_suggests_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'residual'"):
        IWP(2).init(3, Init("residul"), generator())
    with pytest.raises(ValueError, match="unknown init 'b'"):
        IWP(1).init(3, Init("b"), generator())
