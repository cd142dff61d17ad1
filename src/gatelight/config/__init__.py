"""Everything that decides a training run, as nested frozen values: gates, model, optimization, run.

Files and command-line options know the same values by flat names; :mod:`gatelight.config.flat` converts. No torch.
"""

from gatelight.config.files import from_flat, read_config, to_json
from gatelight.config.flat import Leaf, leaves, replace
from gatelight.config.values import AUGMENTATIONS, SCHEDULES, Gates, ModelConfig, Optimization, RunConfig

__all__ = [
    "AUGMENTATIONS",
    "SCHEDULES",
    "Gates",
    "Leaf",
    "ModelConfig",
    "Optimization",
    "RunConfig",
    "from_flat",
    "leaves",
    "read_config",
    "replace",
    "to_json",
]
