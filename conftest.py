"""Doctests are collected from every module of the package; those of the GPU's need Triton."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("triton") else ["src/gatelight/ops/backends/triton/*"]
