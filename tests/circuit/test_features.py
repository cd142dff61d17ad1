"""The rule for what a circuit takes: dtypes, ranges, shapes and layouts, for each kind of feature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gatelight.circuit import Encoder
from gatelight.circuit.features import KINDS
from gatelight.circuit.random import layered_circuit

INTEGERS = ("int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", ">i2", ">u4", ">i8")
FLOATS = ("float16", "float32", "float64", "longdouble", ">f2", ">f4", ">f8")


def encoder(kind: str, features: int = 3, shape: tuple[int, ...] = ()) -> Encoder:
    return Encoder(features, np.arange(features, dtype=np.int32), np.full(features, 0.5, np.float32), shape, kind)


def values(kind: str, x: Any) -> Any:
    return encoder(kind).values(x).tolist()


@pytest.mark.parametrize("dtype", ["bool", "uint8", *INTEGERS, *FLOATS])
def test_bits_of_every_dtype(dtype: str) -> None:
    assert values("bits", np.array([[0, 1, 0], [1, 1, 0]]).astype(dtype)) == [[0, 1, 0], [1, 1, 0]]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.array([[0, 1, 1], [0, 255, 3]], np.uint8), "got 255 in sample 1, feature 1"),
        (np.array([[0, 1, 2]], np.int64), "got 2 in sample 0, feature 2"),
        (np.array([[-1, 1, 2]], np.int8), "got -1 in sample 0, feature 0"),
        (np.array([[0.0, 0.3, 1.0]], np.float32), "got 0.3 in sample 0, feature 1"),
        (np.array([[0.0, 1.0, 1.0 + 1e-12]]), "got 1.000000000001 in sample 0, feature 2"),
        (np.array([[0.0, 1.0, 5e-324]]), "got 5e-324 in sample 0, feature 2"),
        (np.array([[0.0, np.nan, 1.0]], np.float16), "got nan in sample 0, feature 1"),
        (np.array([[0.0, 1.0, -np.inf]]), "got -inf in sample 0, feature 2"),
    ],
)
def test_what_is_not_a_bit_is_refused(x: NDArray[Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"features must be bits, 0 or 1, {message}"):
        values("bits", x)


def test_minus_zero_is_zero() -> None:
    for kind in KINDS:
        for dtype in (np.float16, np.float32, np.float64):
            assert values(kind, np.array([[-0.0, 1, 0]], dtype)) == [[0, 1, 0]]


def test_bytes_are_fractions_of_255() -> None:
    x = np.array([[0, 51, 255]])
    for dtype in ("uint8", *INTEGERS[1:]):
        assert values("bytes", x.astype(dtype)) == [[0, np.float32(51) / np.float32(255), 1]]
    assert values("bytes", np.array([[0, 51, 127]], np.int8))[0][2] == np.float32(127) / np.float32(255)
    assert values("bytes", np.array([[0, 1, 0]], np.uint8)) == [[0, np.float32(1) / np.float32(255), 0]]
    assert values("bytes", np.array([[False, True, True]])) == [[0, 1, 1]]
    assert values("bytes", np.zeros((1, 3), np.int64)) == [[0, 0, 0]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_not_rounded_to_255ths(dtype: str) -> None:
    x = np.array([[0.0, 0.501, 1.0]]).astype(dtype)
    assert values("bytes", x) == x.astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            np.array([[0.0, 17.0, 255.0]]),
            r"from 0\.0 to 255\.0, the first outside in sample 0, feature 1; .* are uint8",
        ),
        (np.array([[0.0, 0.5, -0.1]], np.float32), r"from -0\.1 to 0\.5"),
        (np.nextafter(np.ones((1, 3), np.float32), np.float32(2)), "from 1.0000001 to 1.0000001"),
        (np.array([[0.0, 0.5, np.inf]]), r"from 0\.0 to inf"),
        (np.array([[0.0, 0.5, 1e300]]), r"from 0\.0 to inf"),
        (np.array([[np.inf, 0.5, np.nan]]), "must not be NaN, got one in sample 0, feature 2"),
        (np.array([[0, 3, 256]]), "whole numbers from 0 to 255 or floats from 0 to 1, got int64 from 0 to 256"),
        (np.array([[0, -3, 5]], np.int8), "got int8 from -3 to 5"),
        (np.array([[0, -1, 1]], np.int8), "got int8 from -1 to 1"),
        (np.array([[0, 1, 1]]), "got int64 with 1 as the largest value: pass uint8 for bytes, bool or float for bits"),
        ([[0, 1, 1]], "with 1 as the largest value"),
        (np.ones((1, 3), ">u2"), "with 1 as the largest value"),
        (np.full((1, 3), 2**64 - 1, np.uint64), "from 18446744073709551615 to"),
    ],
)
def test_what_is_not_a_byte_is_refused(x: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        values("bytes", x)


@pytest.mark.parametrize("dtype", ["bool", "uint8", *INTEGERS, *FLOATS])
def test_reals_are_taken_as_they_are(dtype: str) -> None:
    x = np.array([[0, 1, 77]]).astype(dtype)
    assert values("reals", x) == x.astype(np.float32).tolist()
    if np.dtype(dtype).kind == "f":
        assert values("reals", np.array([[-7.5, 0, 300]]).astype(dtype)) == [[-7.5, 0, 300]]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.array([[0.0, np.nan, np.inf]]), "must not be NaN, got one in sample 0, feature 1"),
        (np.array([[0.0, 3.0, -np.inf]], np.float16), "finite as float32, got -inf in sample 0, feature 2"),
        (np.array([[0.0, 3.0, 1e300]]), "finite as float32, got inf in sample 0, feature 2"),
    ],
)
def test_what_is_not_a_real_is_refused(x: NDArray[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        values("reals", x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "x",
    [
        np.zeros((1, 3), object),
        np.array([["a", "b", "c"]]),
        np.zeros((1, 3), complex),
        np.zeros((1, 3), "M8[s]"),
        np.zeros((1, 3), "m8[s]"),
        np.zeros((1, 3), "V4"),
        np.zeros((1, 3), [("a", "f4")]),
        np.zeros((0, 3), object),
        [[None, 1, 2]],
        [[0, 1, 10**30]],
        [[0, 1], [0, 1, 1]],
        "012",
        None,
        {1: 2},
        np.ma.MaskedArray(np.zeros((1, 3)), [[False, True, False]]),
    ],
    ids=repr,
)
def test_what_is_not_numbers_is_refused(kind: str, x: Any) -> None:
    with pytest.raises(ValueError, match="features must"):
        values(kind, x)


@pytest.mark.parametrize("kind", KINDS)
def test_layouts_and_subclasses(kind: str) -> None:
    x = np.random.default_rng(0).integers(0, 2, (8, 3)).astype(np.float64)
    wanted = x.tolist()
    raw = np.zeros(x.nbytes + 1, np.uint8)
    unaligned = raw[1:].view(x.dtype).reshape(x.shape)
    unaligned[:] = x
    still = x.copy()
    still.setflags(write=False)
    subclasses = (np.ma.MaskedArray(x), x.view(np.memmap))
    for given in (np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2], unaligned, still, *subclasses, x.tolist()):
        assert values(kind, given) == wanted
    assert values(kind, x[::-1, ::-1]) == x[::-1, ::-1].tolist()
    assert values(kind, np.broadcast_to(x[0], (5, 3))) == [wanted[0]] * 5
    assert np.array_equal(still, x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float64"])
def test_shapes(kind: str, dtype: str) -> None:
    image = encoder(kind, 6, (1, 2, 3))
    right: list[tuple[int, ...]] = [(4, 6), (4, 1, 2, 3), (4, 2, 3), (1, 2, 3), (0, 6), (0, 1, 2, 3), (0, 2, 3)]
    wrong: list[tuple[int, ...]] = [
        (4, 3, 2),
        (4, 1, 3, 2),
        (4, 2, 3, 1),
        (4, 5),
        (4,),
        (),
        (6, 0),
        (0,),
        (1, 4, 1, 2, 3),
    ]
    single: list[tuple[int, ...]] = [(6,), (2, 3)]
    for shape in right:
        assert image.values(np.zeros(shape, dtype)).shape == (shape[0], 6)
    for shape in wrong:
        with pytest.raises(ValueError, match=r"shape \[batch, 6\], \[batch, 1, 2, 3\] or \[batch, 2, 3\], got .*\)$"):
            image.values(np.zeros(shape, dtype))
    for shape in single:
        with pytest.raises(ValueError, match=r"; one sample needs the batch axis too, as in x\[None\]$"):
            image.values(np.zeros(shape, dtype))
    with pytest.raises(ValueError, match=r"shape \[batch, 6\] or \[batch, 2, 3\], got \(4, 3\)$"):
        encoder(kind, 6, (2, 3)).values(np.zeros((4, 3), dtype))
    with pytest.raises(ValueError, match=r"shape \[batch, 6\], got \(6,\); one sample"):
        encoder(kind, 6, (6,)).values(np.zeros(6, dtype))
    assert encoder(kind, 0).values(np.zeros((3, 0), dtype)).shape == (3, 0)


def test_every_call_of_a_circuit_has_the_rule() -> None:
    circuit = layered_circuit(3, (6, 4), classes=2, feature_kind="bits")
    x = np.array([[0, 1, 1], [1, 0, 1]])
    runs: list[Callable[[Any], NDArray[Any]]] = [circuit.bits, circuit.scores, circuit.predict, circuit.logits]
    for dtype in ("bool", "uint8", "int64", "float16", "float64"):
        assert circuit.bits(x.astype(dtype)).tolist() == x.tolist()
        for run in runs:
            np.testing.assert_array_equal(run(x.astype(dtype)), run(x.astype(np.float32)))
    for run in runs:
        with pytest.raises(ValueError, match="got 2 in sample 0, feature 1"):
            run(x * 2)


def test_tensors_on_the_cpu_are_taken() -> None:
    torch = pytest.importorskip("torch")
    circuit = layered_circuit(3, (6, 4), classes=2)
    x = torch.rand(5, 3)
    np.testing.assert_array_equal(circuit.scores(x), circuit.scores(x.numpy()))
    with pytest.raises(ValueError, match=r"features must be an array of numbers: .*requires grad"):
        circuit.scores(x.requires_grad_())
    with pytest.raises(ValueError, match=r"features must be an array of numbers: .*BFloat16"):
        circuit.scores(torch.rand(5, 3).bfloat16())
