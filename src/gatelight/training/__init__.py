"""Training: one loop for a laptop, a GPU and ``torchrun``, with or without a run folder.

:func:`gatelight.fit` trains any model on arrays; :class:`~gatelight.training.run.TrainingRun` trains a configuration on
a data set, as ``gatelight train`` does. Both run :class:`~gatelight.training.trainer.Trainer`.
"""
