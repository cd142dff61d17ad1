"""Triton's language: what looks like Python here is compiled for the GPU."""
