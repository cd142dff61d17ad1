"""Trains light differentiable logic gate networks and turns them into circuits."""

__version__ = "0.1.0"
