"""Whether two circuits are equal: by simulation or by formal proof on and-inverter graphs."""

from gatelight.circuit.proof.equivalence import Match, Verdict, exhaustive, prove, random
from gatelight.circuit.proof.prover import provers

__all__ = ["Match", "Verdict", "exhaustive", "prove", "provers", "random"]
