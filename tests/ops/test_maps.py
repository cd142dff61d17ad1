"""The table of native maps: what it says holds for the parametrizations and the kernels."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gatelight import parametrize
from gatelight.ops import NATIVE_MAPS
from gatelight.ops.maps import check_theta
from gatelight.parametrize import ESTIMATORS, IWP


def test_numbers_are_those_of_the_library() -> None:
    assert sorted(native_map.number for native_map in NATIVE_MAPS.values()) == list(range(len(NATIVE_MAPS)))


@pytest.mark.parametrize("name", [name for name in NATIVE_MAPS if name != "table"])
def test_parameters_are_those_of_the_parametrization(name: str) -> None:
    for arity in range(1, NATIVE_MAPS[name].max_arity + 1):
        made = parametrize.of_map(name, arity)
        assert made.native_map == name
        assert NATIVE_MAPS[name].parameters(arity) == made.parameters
        assert check_theta(torch.zeros(3, made.parameters), name, arity) == 3


def test_estimators_without_a_kernel_have_no_map() -> None:
    found = {name for name in ESTIMATORS if IWP(estimator=name).native_map not in NATIVE_MAPS}
    assert found == {"sin-sign"}


def test_a_subclass_does_not_inherit_the_map() -> None:
    class Other(IWP):
        def table(self, theta: Tensor) -> Tensor:
            return super().table(theta) ** 2

    assert Other().native_map is None


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match="unknown map 'iwp-sni'; did you mean 'iwp-sin'"):
        check_theta(torch.zeros(3, 4), "iwp-sni", 2)
    with pytest.raises(ValueError, match="arity of map 'op' must be from 1 to 3, got 4"):
        check_theta(torch.zeros(3, 4), "op", 4)
    with pytest.raises(ValueError, match=r"theta must have shape \[gates, 16\] for map 'op', got \(3, 4\)"):
        check_theta(torch.zeros(3, 4), "op", 2)
