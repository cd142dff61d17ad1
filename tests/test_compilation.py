"""``gatelight.compile``: a model becomes a proved circuit, and a report says what was done."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from torch import nn

import gatelight as gl
from gatelight.circuit import evaluate
from gatelight.circuit.proof import equivalence, prover
from gatelight.compilation import Proof, Report, Size
from gatelight.nn import GroupSum, LogicDense


@pytest.fixture(scope="module")
def model() -> nn.Module:
    layers = [LogicDense(16, 60, init="uniform", seed=0), LogicDense(60, 40, init="uniform", seed=1)]
    return nn.Sequential(*layers, GroupSum(4))


def inputs(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, (count, 16), np.uint8)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("lut", [None, 4])
def test_compiled_circuits_equal_the_rounded_model(model: nn.Module, level: int, lut: int | None) -> None:
    rounded = gl.discretize(model)
    circuit, report = gl.compile(model, level=level, lut=lut, class_names="abcd")
    x = inputs(300)
    np.testing.assert_array_equal(evaluate.scores(circuit, x), evaluate.scores(rounded, x))
    assert circuit.class_names == ("a", "b", "c", "d")
    assert (report.before, report.after) == (Size.of(rounded), Size.of(circuit))
    assert (report.level, report.lut, report.outputs) == (level, lut, len(circuit.outputs))
    assert (report.simplified is None) == (level == 0)
    assert report.before.gates - sum(report.removed.values()) == (report.simplified or report.before).gates
    assert report.seconds > 0


def test_progress_hands_out_the_lines_of_the_report(model: nn.Module) -> None:
    lines: list[str] = []
    _, report = gl.compile(model, lut=5, progress=lines.append)
    assert "\n".join(lines) == str(report)
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [
        "rounded",
        "checked",
        "simplified",
        "mapped",
        "proof",
    ]
    assert lines[0] == "rounded      100 gates in 2 levels"
    assert lines[1] == "checked      equal to the rounded model on 1,000 random inputs"


def test_a_proof_says_by_what_it_was_made(model: nn.Module) -> None:
    proof = gl.compile(model).report.proof
    assert proof is not None
    assert proof.proved
    assert proof.method == prover.provers()[0]
    assert proof.seconds > 0
    assert str(proof).startswith("every output equal to the unsimplified circuit's, formally, in ")


def test_without_a_prover_the_report_says_so(model: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover, "provers", lambda: ())
    circuit, report = gl.compile(model)
    assert circuit.gates > 0
    assert report.proof == Proof(False, reason="not made: install abc, or pip install 'gatelight[verify]'")
    with pytest.raises(ValueError, match="level 3 needs a prover: install abc"):
        gl.compile(model, level=3)


def test_a_proof_can_be_left_out(model: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalence, "prove", None)
    report = gl.compile(model, prove=False).report
    assert str(report).endswith("proof        left out")


@pytest.mark.parametrize("equal", [False, None])
def test_what_the_prover_says_counts(model: nn.Module, monkeypatch: pytest.MonkeyPatch, equal: bool | None) -> None:
    monkeypatch.setattr(prover, "provers", lambda: ("some prover",))
    monkeypatch.setattr(equivalence, "prove", lambda *_: equivalence.Verdict(equal, "formal"))
    if equal is None:
        proof = gl.compile(model).report.proof
        assert proof is not None
        assert not proof.proved
        assert str(proof) == "not made: the prover gave up"
    else:
        with pytest.raises(RuntimeError, match="the prover found that the simplified circuit differs"):
            gl.compile(model)


def test_a_difference_in_simplification_would_be_found(model: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from gatelight.circuit import passes

    def spoiled(circuit: gl.Circuit, level: int) -> passes.Simplified:
        done = simplify(circuit, level)
        table = done.circuit.table.copy()
        table[-1] ^= np.uint64(1)
        return replace(done, circuit=replace(done.circuit, table=table))

    simplify = passes.simplify
    monkeypatch.setattr(passes, "simplify", spoiled)
    with pytest.raises(RuntimeError, match="differs"):
        gl.compile(model)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"level": 4}, "level must be 0, 1, 2 or 3, got 4"), ({"lut": 2}, "lut must be from 3 to 6, got 2")],
)
def test_wrong_arguments_are_refused(model: nn.Module, wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gl.compile(model, **wrong)  # type: ignore[arg-type]


def test_reports_are_frozen_and_can_be_pickled(model: nn.Module) -> None:
    report = gl.compile(model, prove=False).report
    assert pickle.loads(pickle.dumps(report)) == report
    with pytest.raises(FrozenInstanceError):
        report.level = 2  # type: ignore[misc]
    assert isinstance(report, Report)


def test_compile_is_a_function_whatever_is_imported_first() -> None:
    import gatelight.compilation

    assert callable(gl.compile)
    assert gl.compile is gatelight.compilation.compile
