"""Builds the networks of :mod:`gatelight.sizes`, by data set, model, size and depth scale.

>>> net = build("mnist", size="S", width=200, seed=0)      # a narrow version of MNIST S
>>> [layer.out_features for layer in net.layers], net.head.temperature
([200, 200, 200, 200, 200, 200], 10.0)
>>> build("cifar10", model="cdlgn", width=4, seed=0).gates      # k = 4 instead of 32
120064
"""

from gatelight.models.build import build
from gatelight.models.dense import dense_layers
from gatelight.models.parts import Parts
from gatelight.models.settle import Settled, settle
from gatelight.sizes import CDLGN, DLGN, MODELS, TASKS, Task, size_of

__all__ = [
    "CDLGN",
    "DLGN",
    "MODELS",
    "TASKS",
    "Parts",
    "Settled",
    "Task",
    "build",
    "dense_layers",
    "settle",
    "size_of",
]
