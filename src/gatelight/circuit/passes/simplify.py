"""Runs the passes until nothing changes, and reports what each of them removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from gatelight.circuit.ir import Circuit
from gatelight.circuit.passes.constants import constants
from gatelight.circuit.passes.dead import dead
from gatelight.circuit.passes.hashing import hashing
from gatelight.circuit.passes.merging import by_cones, by_prover, merge
from gatelight.circuit.passes.netlist import Netlist, Rule
from gatelight.circuit.passes.outputs import fold_outputs, settle_outputs
from gatelight.circuit.passes.support import support
from gatelight.circuit.passes.wires import wires
from gatelight.circuit.proof.equivalence import Match

#: The rules that look at one gate at a time, in the order in which they are applied.
RULES: Mapping[str, Rule] = MappingProxyType(
    {"support": support, "constants": constants, "wires": wires, "hashing": hashing}
)
#: The passes that keep every output in its place.
LOCAL = (*RULES, "dead")
PASSES = (*LOCAL, "fold_outputs")


@dataclass(frozen=True)
class Report:
    """What simplification did.

    Attributes:
        before: Gates at the start.
        after: Gates at the end.
        removed: Gates that each pass removed; ``outputs`` holds, negative, those added for negated outputs.
        inputs_dropped: Inputs of gates that had no effect.
        outputs_folded: Constant outputs that were added to the bias.
        rounds: How often the passes ran.
    """

    before: int
    after: int
    removed: Mapping[str, int]
    inputs_dropped: int
    outputs_folded: int
    rounds: int

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {count}" for name, count in self.removed.items() if count)
        return (
            f"{self.before} -> {self.after} gates in {self.rounds} rounds ({parts or 'nothing removed'}); "
            f"{self.inputs_dropped} gate inputs dropped, {self.outputs_folded} outputs folded"
        )


@dataclass(frozen=True, eq=False)
class Simplified:
    """A simplified circuit, and how its outputs correspond to those of the original circuit.

    Attributes:
        circuit: The result.
        report: What was removed.
        origin: The original output that each output of ``circuit`` equals, int64 [outputs].
        folded: For each original output the constant that replaced it, or -1 if it was kept, int8.
    """

    circuit: Circuit
    report: Report
    origin: NDArray[np.int64]
    folded: NDArray[np.int8]

    @property
    def match(self) -> Match:
        """How the original outputs correspond to those of ``circuit``, for :mod:`gatelight.circuit.proof`."""
        partner = np.full(len(self.folded), -1, np.int64)
        partner[self.origin] = np.arange(len(self.origin))
        return Match(partner, self.folded)


def simplify(circuit: Circuit, level: int = 1) -> Simplified:
    """Remove what can be removed without changing a score.

    Args:
        circuit: The circuit.
        level: 1 for the local rules; 2 also merges nets that agree in random simulation and that an exhaustive check
            of a small cone proves equal; 3 also asks the prover about the others (see
            :mod:`gatelight.circuit.proof.equivalence`; a RuntimeError if there is none).

    >>> from gatelight.circuit.random import layered_circuit
    >>> done = simplify(layered_circuit(16, (32, 32, 20), seed=1))
    >>> done.report.before, done.report.after
    (84, 19)
    """
    if level not in (1, 2, 3):
        raise ValueError(f"level must be 1, 2 or 3, got {level!r}")
    net = Netlist(circuit)
    removed, rounds = run_rounds(net, PASSES)
    merged = 0
    while level > 1 and (count := merge(net, by_cones if level == 2 else by_prover)):
        merged += count
        again, more = run_rounds(net, PASSES)
        removed, rounds = {name: removed[name] + again[name] for name in removed}, rounds + more
    return _finish(net, removed | {"merging": merged}, rounds)


def run_passes(circuit: Circuit, passes: tuple[str, ...]) -> Simplified:
    """Run some of :data:`PASSES` until none of them changes anything."""
    unknown = set(passes) - set(PASSES)
    if unknown:
        raise ValueError(f"passes must be among {', '.join(PASSES)}, got {', '.join(sorted(unknown))}")
    net = Netlist(circuit)
    return _finish(net, *run_rounds(net, passes))


def run_rounds(net: Netlist, passes: tuple[str, ...]) -> tuple[dict[str, int], int]:
    """Run passes until none of them finds anything; return what each removed, and how often they ran."""
    removed = dict.fromkeys(PASSES, 0)
    rounds, changed = 0, True
    while changed:
        counts = _round(net, passes)
        for name, count in counts.items():
            removed[name] += count
        rounds, changed = rounds + 1, any(counts.values())
    return removed, rounds


def _round(net: Netlist, passes: tuple[str, ...]) -> dict[str, int]:
    """Run each of the passes once; return what they removed."""
    counts = {}
    if "dead" in passes:
        counts["dead"] = dead(net)
    counts |= net.sweep({name: rule for name, rule in RULES.items() if name in passes})
    if "fold_outputs" in passes:
        counts["fold_outputs"] = fold_outputs(net)
    return counts


def _finish(net: Netlist, removed: dict[str, int], rounds: int) -> Simplified:
    """Turn the netlist back into a circuit and write the report."""
    gates = {name: count for name, count in removed.items() if name not in ("support", "fold_outputs")}
    gates["outputs"] = -settle_outputs(net)
    report = Report(
        before=net.source.gates,
        after=net.gates,
        removed=MappingProxyType(gates),
        inputs_dropped=removed["support"],
        outputs_folded=removed["fold_outputs"],
        rounds=rounds,
    )
    return Simplified(net.to_circuit(), report, net.origin, net.folded)
