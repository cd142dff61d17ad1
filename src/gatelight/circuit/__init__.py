"""The circuit that training leads to: a netlist of lookup tables, its meaning, its file, its passes and its proofs.

Nothing here imports torch.
"""

from gatelight.circuit.encoder import Encoder
from gatelight.circuit.ir import Circuit

__all__ = ["Circuit", "Encoder"]
