"""Derivatives of derivatives, forward mode, torch.func and jit.trace give what the reference gives."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

from gatelight.nn import LogicConv2d, LogicConvStack, LogicDense, LogicStack, OrPool2d
from gatelight.ops import lut
from gatelight.ops.backends import reference

#: Torch's own, while it loads what forward mode needs.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
Make = Callable[[], tuple[nn.Module, Tensor]]


def one_layer() -> tuple[nn.Module, Tensor]:
    return LogicDense(6, 5, arity=3, init="uniform", seed=0), torch.rand(2, 6)


def stack() -> tuple[nn.Module, Tensor]:
    layers = [
        LogicDense(6, 8, init="uniform", seed=0),
        LogicDense(8, 7, estimator="sigmoid", init="uniform", seed=1),
        LogicDense(7, 5, parametrization="op", init="uniform", seed=2),
    ]
    return LogicStack(layers), torch.rand(2, 6)


def conv() -> tuple[nn.Module, Tensor]:
    layers = [LogicConv2d(1, 2, 2, tree_depth=2, init="uniform", seed=0), OrPool2d(2)]
    return LogicConvStack(layers), torch.rand(2, 1, 5, 5)


MODELS = pytest.mark.parametrize("make", [one_layer, stack, conv])


def exact(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """The model in plain torch and double precision."""
    tables = [layer.table().detach().double() for layer in model.modules() if isinstance(layer, LogicDense)]
    if isinstance(model, LogicConvStack):
        layer = model.layers[0]
        table = layer.table().detach().double()

        def images(x: Tensor) -> Tensor:
            shape = layer.shape_for(x.shape[2], x.shape[3], 2)
            return reference.conv(x, layer.fanin, table, shape)

        return images
    layers = [layer for layer in model.modules() if isinstance(layer, LogicDense)]

    def dense(x: Tensor) -> Tensor:
        for layer, table in zip(layers, tables, strict=True):
            x = reference.lut_fwd(x.t(), layer.fanin, table).t()
        return x

    return dense


def loss(model: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: (model(x) ** 2).sum()


@MODELS
def test_second_derivatives(make: Make) -> None:
    model, x = make()
    want = hessian(loss(exact(model)))(x.double()).float()
    assert want.abs().max() > 0.1
    torch.testing.assert_close(torch.autograd.functional.hessian(loss(model), x), want, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(hessian(loss(model))(x).detach(), want, rtol=1e-4, atol=1e-4)


@MODELS
def test_gradient_penalty_reaches_the_parameters(make: Make) -> None:
    model, x = make()
    exact_model = copy.deepcopy(model).double()
    penalties = []
    for net, at in ((model, x.requires_grad_()), (exact_model, x.detach().double().requires_grad_())):
        (gradient,) = torch.autograd.grad(net(at).square().sum(), at, create_graph=True)
        penalties.append(torch.autograd.grad(gradient.square().sum(), [at, *net.parameters()]))
    for found, want in zip(*penalties, strict=True):
        assert want.abs().max() > 0.001
        torch.testing.assert_close(found, want.float(), rtol=1e-4, atol=1e-4)


@MODELS
def test_forward_mode(make: Make) -> None:
    model, x = make()
    tangent = torch.randn(x.shape)
    want = jvp(exact(model), (x.double(),), (tangent.double(),))[1]
    found = jvp(model, (x,), (tangent,))[1]
    torch.testing.assert_close(found.detach(), want.float(), rtol=1e-4, atol=1e-5)
    with forward_ad.dual_level():
        dual = model(forward_ad.make_dual(x, tangent))
        found = forward_ad.unpack_dual(dual).tangent
    torch.testing.assert_close(found.detach(), want.float(), rtol=1e-4, atol=1e-5)


@MODELS
def test_functions_of_torch(make: Make) -> None:
    model, x = make()
    want = jacrev(exact(model))(x.double()).float()
    for jacobian in (jacrev(model)(x), jacfwd(model)(x), torch.autograd.functional.jacobian(model, x)):
        torch.testing.assert_close(jacobian.detach(), want, rtol=1e-4, atol=1e-5)
    vectorized = torch.autograd.functional.jacobian(model, x, vectorize=True)
    torch.testing.assert_close(vectorized, want, rtol=1e-4, atol=1e-5)
    alone = vmap(grad(lambda one: loss(model)(one[None])))(x)
    x.requires_grad_()
    (together,) = torch.autograd.grad(loss(model)(x), x)
    torch.testing.assert_close(alone.detach(), together, rtol=1e-4, atol=1e-5)
    parameters = dict(model.named_parameters())
    found: Any = grad(lambda p: torch.func.functional_call(model, p, (x,)).square().sum())(parameters)
    wanted = torch.autograd.grad(model(x).square().sum(), list(parameters.values()))
    for name, gradient in zip(parameters, wanted, strict=True):
        torch.testing.assert_close(found[name].detach(), gradient, rtol=1e-4, atol=1e-5)


@MODELS
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
def test_traced(make: Make) -> None:
    model, x = make()
    traced = torch.jit.trace(model, x)
    other = torch.rand(x.shape)
    torch.testing.assert_close(traced(other), model(other))


def test_fake_tensors() -> None:
    model = LogicStack(LogicDense(6, 8, seed=0), LogicDense(8, 4, seed=1))
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert model(mode.from_tensor(torch.rand(3, 6))).shape == (3, 4)


def test_straight_through_estimators_under_transforms() -> None:
    for estimator in ("sin-st", "sigmoid-st", "linear-st", "sin-sign"):
        layer = LogicDense(4, 3, estimator=estimator, init="gaussian", seed=0)
        x = torch.rand(5, 4)
        found: Any = grad(lambda p, layer=layer, x=x: torch.func.functional_call(layer, p, (x,)).sum())(
            dict(layer.named_parameters())
        )
        layer(x).sum().backward()
        torch.testing.assert_close(found["theta"].detach(), layer.theta.grad)


def test_lut_by_itself() -> None:
    x, table = torch.rand(4, 3, requires_grad=True), torch.rand(5, 4, requires_grad=True)
    fanin = torch.randint(0, 3, (5, 2), dtype=torch.int32)
    (gradient,) = torch.autograd.grad(lut(x, fanin, table).square().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), table)
    assert second.abs().max() > 0.1
