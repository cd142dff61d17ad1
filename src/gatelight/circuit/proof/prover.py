"""Formal comparison of two and-inverter graphs by a tool that is not part of this package.

Either ABC, found on the machine as ``abc``, ``berkeley-abc`` or ``yosys-abc``, or the Python package ``aigverse``.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gatelight.circuit.proof.aig import Aig, cone, to_aiger

ABC_NAMES = ("abc", "berkeley-abc", "yosys-abc")
#: What to do if there is no prover.
HOW_TO_INSTALL = "install abc, or pip install 'gatelight[verify]'"


@dataclass(frozen=True, eq=False)
class Answer:
    """What a prover said.

    Attributes:
        equal: True if proved, False if refuted, None if it gave up within its limit.
        counterexample: Inputs on which the graphs differ, uint8 [inputs], if the prover reports them.
    """

    equal: bool | None
    counterexample: NDArray[np.uint8] | None = None


def provers() -> tuple[str, ...]:
    """The provers on this machine, the preferred one first: paths of ABC, then ``aigverse``."""
    found = [path for path in map(shutil.which, ABC_NAMES) if path]
    if importlib.util.find_spec("aigverse") is not None:
        found.append("aigverse")
    return tuple(found)


def compare(left: Aig, right: Aig, *, prover: str | None = None, seconds: int = 600) -> Answer:
    """Prove or refute that two graphs with the same inputs have the same outputs.

    Args:
        left: One graph.
        right: The other.
        prover: One of :func:`provers`; None takes the first.
        seconds: After how long ABC gives up.
    """
    if left.inputs != right.inputs or len(left.outputs) != len(right.outputs):
        raise ValueError(
            f"graphs must have the same inputs and outputs, got {left.inputs} and {right.inputs} inputs, "
            f"{len(left.outputs)} and {len(right.outputs)} outputs"
        )
    if len(left.outputs) == 0:
        return Answer(True)
    if left.inputs == 0:
        # Without inputs a graph folds to constants while it is built, and provers reject it.
        return Answer(bool(np.array_equal(left.outputs, right.outputs)), np.zeros(0, np.uint8))
    available = provers()
    if prover is None and not available:
        raise RuntimeError(
            f"a formal proof needs ABC ({', '.join(ABC_NAMES)}) on the PATH or 'pip install gatelight[verify]'"
        )
    chosen = prover or available[0]
    if chosen not in available:
        raise ValueError(f"prover must be one of {', '.join(available) or 'none found'}, got {chosen!r}")
    with tempfile.TemporaryDirectory(prefix="gatelight-") as name:
        folder = Path(name)
        _write(folder, left, right)
        if chosen == "aigverse":
            return _compare_aigverse(folder)
        return _compare_abc(chosen, folder, left, right, seconds)


def _write(folder: Path, left: Aig, right: Aig) -> None:
    (folder / "left.aig").write_bytes(to_aiger(left))
    (folder / "right.aig").write_bytes(to_aiger(right))


def _compare_abc(abc: str, folder: Path, left: Aig, right: Aig, seconds: int) -> Answer:
    said = _run_abc(abc, folder, f"&r left.aig; &cec -T {seconds} right.aig", seconds)
    verdict = re.search(r"Networks are (equivalent|NOT EQUIVALENT|UNDECIDED)", said)
    if verdict is None:
        raise RuntimeError(f"{abc} gave no verdict but printed {said.strip()[-200:]!r}")
    if verdict[1] == "equivalent":
        return Answer(True)
    if verdict[1] == "UNDECIDED":
        return Answer(None)
    failed = re.search(r"zero-based number (\d+)", said)
    return Answer(False, _abc_pattern(abc, folder, left, right, int(failed[1]), seconds) if failed else None)


def _abc_pattern(abc: str, folder: Path, left: Aig, right: Aig, output: int, seconds: int) -> NDArray[np.uint8] | None:
    """Inputs on which one output differs; the equivalence checker finds them but does not report them."""
    one = slice(output, output + 1)
    _write(folder, *(cone(Aig(graph.inputs, graph.ands, graph.outputs[one])) for graph in (left, right)))
    _run_abc(abc, folder, "miter -n left.aig right.aig; sat; write_cex pattern.txt", seconds)
    pattern = folder / "pattern.txt"
    bits = re.sub(r"[^01]", "", pattern.read_text()) if pattern.exists() else ""
    return np.array([int(bit) for bit in bits], np.uint8) if len(bits) == left.inputs else None


def _run_abc(abc: str, folder: Path, script: str, seconds: int) -> str:
    command = [abc, "-q", script]
    try:
        # ABC checks its own limit only now and then, so it gets some extra time.
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=2 * seconds + 10, check=False
        )
    except subprocess.TimeoutExpired:
        return "Networks are UNDECIDED"
    return done.stdout + done.stderr


def _compare_aigverse(folder: Path) -> Answer:
    from aigverse.algorithms import equivalence_checking
    from aigverse.io import read_aiger_into_aig

    left, right = (read_aiger_into_aig(folder / name) for name in ("left.aig", "right.aig"))
    return Answer(equivalence_checking(left, right))
