"""From a trained model to a proved circuit in one call: ``gatelight.compile``.

>>> from torch import nn
>>> from gatelight.nn import GroupSum, LogicDense
>>> layers = [LogicDense(8, 12, init="uniform", seed=0), LogicDense(12, 8, init="uniform", seed=1)]
>>> circuit, report = compile(nn.Sequential(*layers, GroupSum(2)), prove=False)
>>> circuit
Circuit(inputs=8, gates=8, depth=2, outputs=6, classes=2)
>>> report.before, report.after
(Size(gates=20, depth=2), Size(gates=8, depth=2))
>>> print(report)
rounded      20 gates in 2 levels
checked      equal to the rounded model on 1,000 random inputs
simplified   8 gates in 2 levels, 6 bits summed
             constants 4, wires 6, dead 2
proof        left out
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import nn

    from gatelight.circuit import Circuit
    from gatelight.circuit.passes import Simplified

#: Levels of simplification; see :func:`gatelight.circuit.passes.simplify`. 0 means none.
LEVELS = (0, 1, 2, 3)
#: Numbers of inputs that tables can be mapped to.
LUTS = (3, 4, 5, 6)


class Size(NamedTuple):
    """Gates of a circuit, and gates on its longest path."""

    gates: int
    depth: int

    @classmethod
    def of(cls, circuit: Circuit) -> Size:
        """The size of a circuit."""
        return cls(circuit.gates, circuit.depth)

    def __str__(self) -> str:
        return f"{self.gates:,} gates in {self.depth} levels"


@dataclass(frozen=True)
class Proof:
    """What was proved about a compiled circuit.

    Attributes:
        proved: Whether every output is proved equal to that of the circuit before simplification, for all inputs.
        method: The prover: a path of ABC, or ``aigverse``; empty if there was none.
        reason: Why there is no proof; empty if there is one.
        seconds: How long the proof took.
    """

    proved: bool
    method: str = ""
    reason: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        if self.proved:
            return f"every output equal to the unsimplified circuit's, formally, in {self.seconds:.1f} s"
        return self.reason


@dataclass(frozen=True)
class Report:
    """What :func:`compile` did. ``print(report)`` shows it in a few lines.

    Attributes:
        before: Size of the rounded network.
        after: Size of the final circuit.
        outputs: Bits that the final circuit sums.
        samples: Random inputs on which the circuit was compared with the rounded model, and found equal.
        level: Level of simplification.
        simplified: Size after simplification; None at level 0.
        removed: Gates that each pass removed.
        lut: Most inputs of a table if the circuit was mapped to larger tables, else None.
        proof: What was proved; None until the work is done.
        seconds: How long everything took.
    """

    before: Size
    after: Size
    outputs: int
    samples: int
    level: int
    simplified: Size | None = None
    removed: Mapping[str, int] = field(default_factory=dict)
    lut: int | None = None
    proof: Proof | None = None
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = [f"rounded      {self.before}"]
        lines.append(f"checked      equal to the rounded model on {self.samples:,} random inputs")
        if self.simplified is not None:
            lines.append(f"simplified   {self.simplified}, {self.outputs:,} bits summed")
            removed = ", ".join(f"{name} {n:,}" for name, n in self.removed.items() if n)
            lines.append(f"             {removed or 'nothing removed'}")
        if self.lut is not None:
            gates = (self.simplified or self.before).gates
            lines.append(f"mapped       {gates:,} gates to {self.after.gates:,} tables of up to {self.lut} inputs")
        if self.proof is not None:
            lines.append(f"proof        {self.proof}")
        return "\n".join(lines)


class Compiled(NamedTuple):
    """What :func:`compile` returns."""

    circuit: Circuit
    report: Report


def compile(
    model: nn.Module,
    *,
    level: int = 1,
    lut: int | None = None,
    prove: bool = True,
    input_shape: Sequence[int] | None = None,
    class_names: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
) -> Compiled:
    """Round a trained model to a circuit, check it, simplify it and prove that nothing changed.

    1. :func:`gatelight.discretize` rounds every gate and compares the circuit with the rounded model.
    2. :func:`gatelight.circuit.passes.simplify` removes what does not change a score.
    3. With ``lut``, :func:`gatelight.circuit.passes.map_to_arity` makes fewer, larger tables.
    4. A prover, if one is installed, shows that every output equals that of the circuit of step 1 for all inputs.

    Args:
        model: A model that :func:`gatelight.discretize` takes.
        level: How much to simplify: 0 not at all, 1 by local rules, 2 and 3 also by merging equal nets.
        lut: Map to tables of up to this many inputs, 3 to 6, for an FPGA.
        prove: Look for a prover. Without one the report says so; a difference is always an error.
        input_shape: Shape of one sample, if the model does not know it.
        class_names: Names of the classes, stored in the circuit.
        progress: Called with each line of the report as soon as its step is done.

    Returns:
        The circuit and a :class:`Report`.

    Raises:
        ValueError: If an argument is wrong or the model cannot be made into a circuit.
        RuntimeError: If the prover finds a difference, which would be a bug.
    """
    from gatelight.circuit.passes import map_to_arity, simplify
    from gatelight.discretization import SAMPLES, discretize

    _check(level, lut)
    begun = time.perf_counter()
    tell = _Teller(progress)
    original = circuit = discretize(model, input_shape=input_shape, class_names=class_names)
    report = Report(Size.of(circuit), Size.of(circuit), len(circuit.outputs), SAMPLES, level)
    tell(report)
    done: Simplified | None = None
    if level:
        done = simplify(circuit, level)
        circuit = done.circuit
        size, removed = Size.of(circuit), dict(done.report.removed)
        report = replace(report, after=size, outputs=len(circuit.outputs), simplified=size, removed=removed)
        tell(report)
    if lut is not None:
        circuit = map_to_arity(circuit, lut)
        report = replace(report, after=Size.of(circuit), lut=lut)
        tell(report)
    proof = _prove(original, circuit, done) if prove else Proof(False, reason="left out")
    report = replace(report, proof=proof, seconds=time.perf_counter() - begun)
    tell(report)
    return Compiled(circuit, report)


class _Teller:
    """Passes new lines of a report to a function."""

    def __init__(self, progress: Callable[[str], None] | None) -> None:
        self.progress = progress
        self.reported = 0

    def __call__(self, report: Report) -> None:
        lines = str(report).splitlines()
        if self.progress is not None:
            for line in lines[self.reported :]:
                self.progress(line)
        self.reported = len(lines)


def _check(level: int, lut: int | None) -> None:
    from gatelight.circuit.proof import prover

    if level not in LEVELS:
        raise ValueError(f"level must be 0, 1, 2 or 3, got {level!r}")
    if lut is not None and lut not in LUTS:
        raise ValueError(f"lut must be from 3 to 6, got {lut!r}")
    if level == 3 and not prover.provers():
        raise ValueError(f"level 3 needs a prover: {prover.HOW_TO_INSTALL}")


def _prove(original: Circuit, circuit: Circuit, done: Simplified | None) -> Proof:
    """Prove a circuit equal to the original one, or say why that was not possible."""
    from gatelight.circuit.proof import equivalence, prover

    found = prover.provers()
    if not found:
        return Proof(False, reason=f"not made: {prover.HOW_TO_INSTALL}")
    begun = time.perf_counter()
    try:
        verdict = equivalence.prove(original, circuit, None if done is None else done.match)
    except RuntimeError as error:
        return Proof(False, found[0], f"not made: {error}", time.perf_counter() - begun)
    seconds = time.perf_counter() - begun
    if verdict.equal is False:
        raise RuntimeError("the prover found that the simplified circuit differs; please report this as a bug")
    if verdict.equal is None:
        return Proof(False, found[0], "not made: the prover gave up", seconds)
    return Proof(True, found[0], seconds=seconds)
