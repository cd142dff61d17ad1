from typing import Any

import torch
from torch import nn

from gatelight.nn import (
    GateIntervention,
    GroupSum,
    LogicConv2d,
    LogicConvStack,
    LogicDense,
    LogicStack,
    OrPool2d,
    Thermometer,
    fuse,
)


def shape(module: nn.Module) -> Any:
    return [shape(child) for child in module] if isinstance(module, nn.Sequential) else type(module).__name__


def test_runs_of_layers_become_stacks() -> None:
    net = nn.Sequential(
        Thermometer.even(1),
        OrPool2d(1),
        nn.Sequential(LogicConv2d(1, 4, 3, padding=1, seed=0), OrPool2d(2), LogicConv2d(4, 2, 1, seed=1)),
        nn.Flatten(),
        LogicDense(32, 20, seed=2),
        GateIntervention(0.1),
        LogicDense(20, 20, seed=3),
        LogicDense(20, 10, seed=4),
        GroupSum(2),
    )
    fused = fuse(net)
    assert isinstance(fused, nn.Sequential)
    assert [type(m) for m in fused][1:2] == [OrPool2d]
    assert isinstance(fused[2], nn.Sequential)
    assert [type(m) for m in fused[2]] == [LogicConvStack]
    assert [type(m) for m in fused][4:7] == [LogicStack, GateIntervention, LogicStack]
    x = torch.rand(5, 1, 8, 8)
    assert torch.allclose(fused.eval()(x), net.eval()(x), atol=1e-5)
    assert [p.data_ptr() for p in fused.parameters()] == [p.data_ptr() for p in net.parameters()]


def test_nothing_to_fuse_stays_itself() -> None:
    class Own(nn.Sequential):
        pass

    hooked = nn.Sequential(LogicDense(4, 4, seed=0))
    hooked.register_forward_hook(lambda *_: None)
    for module in (nn.Sequential(GroupSum(2)), LogicDense(4, 4), Own(LogicDense(4, 4)), hooked, nn.Sequential()):
        assert fuse(module) is module
    layer = LogicDense(4, 4, seed=0)
    layer.register_forward_pre_hook(lambda *_: None)
    net = nn.Sequential(layer, LogicDense(4, 4, seed=1))
    assert shape(fuse(net)) == ["LogicDense", ["LogicDense"]]


def test_modes_are_kept() -> None:
    net = nn.Sequential(nn.Sequential(LogicDense(4, 4, seed=0)).eval(), GroupSum(2))
    fused = fuse(net)
    assert [module.training for module in fused.modules()] == [True, False, False, False, True]
