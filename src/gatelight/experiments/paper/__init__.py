"""The paper's figures and claims, one file for each figure or table.

A file declares values of :class:`gatelight.experiments.framework.experiment.Experiment`; the catalog finds them by
listing this folder. Files here do not import each other: what two of them need is part of the framework.
"""
