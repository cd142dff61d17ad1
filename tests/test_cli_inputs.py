"""Whatever dtype, layout and range an array has, ``gatelight run`` reads it as the circuit does or refuses it."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gatelight import models
from gatelight.cli import main
from gatelight.discretization import discretize

DTYPES = ("bool", "uint8", "int8", "<u2", ">i4", "int64", "float16", ">f4", "float32", "float64")
LAYOUTS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "flat": lambda x: x,
    "plane": lambda x: x.reshape(-1, 5, 6),
    "first": lambda x: x.reshape(-1, 1, 5, 6),
    "last": lambda x: x.reshape(-1, 5, 6, 1),
    "fortran": lambda x: np.asfortranarray(x.reshape(-1, 1, 5, 6)),
}
RNG = np.random.default_rng(0)
RANGES = {
    "bits": RNG.integers(0, 2, (40, 30)).astype(float),
    "shares": RNG.random((40, 30)),
    "bytes": RNG.integers(0, 128, (40, 30)).astype(float),
    "negative": RNG.integers(-1, 2, (40, 30)).astype(float),
    "large": RNG.integers(0, 1000, (40, 30)).astype(float),
    "nan": np.where(RNG.random((40, 30)) < 0.1, np.nan, 0.5),
}


def meaning(x: NDArray[Any], kind: str) -> NDArray[np.float32] | None:
    """The features that an array stands for, or None where it stands for none."""
    values = x.astype(np.float64)
    if kind == "bits":
        fits = bool(np.isin(values, (0, 1)).all())
    elif x.dtype.kind in "iu":
        # Other whole numbers that are only 0 and 1 could be either.
        fits = bool(values.min() >= 0 and values.max() <= 255 and (x.dtype == np.uint8 or values.max() != 1))
        values = values / 255
    else:
        fits = bool(values.min() >= 0 and values.max() <= 1)
    return values.astype(np.float32) if fits else None


@pytest.mark.parametrize("kind", ["bits", "bytes"])
def test_every_array_is_read_as_the_circuit_reads_it(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = models.Task((1, 5, 6), 3, binary=kind == "bits")
    circuit = discretize(models.build("mine", task=task, width=60, layers=2, init="gaussian", seed=0))
    circuit.save(tmp_path / "net.gl")
    taken = 0
    command = ["run", str(tmp_path / "net.gl"), str(tmp_path / "x.npy"), "-o", str(tmp_path / "out.npz"), "--overwrite"]
    for dtype, layout, name in itertools.product(DTYPES, LAYOUTS, RANGES):
        if np.dtype(dtype).kind != "f" and name in ("shares", "nan"):
            continue
        with np.errstate(over="ignore"):
            flat = RANGES[name].astype(dtype)
        np.save(tmp_path / "x.npy", LAYOUTS[layout](flat))
        code = main(command)
        printed = capsys.readouterr()
        expected = meaning(flat, kind)
        case = f"{dtype} {layout} {name} for {kind}: {printed.err}"
        assert code == (0 if expected is not None else 2), case
        assert printed.err.count("\n") == (0 if expected is not None else 1), case
        if expected is not None:
            taken += 1
            with np.load(tmp_path / "out.npz") as written:
                assert np.array_equal(written["scores"], circuit.scores(expected)), case
    assert taken > 40
