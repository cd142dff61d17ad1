"""The digits of scikit-learn: 1,797 handwritten digits of 8 x 8 values, no download needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gatelight.data.dataset import Dataset, Split
from gatelight.data.source import Source
from gatelight.data.task import Task

_LEVELS = 16
_EVERY = 5


def load_digits(_folder: Path | None = None) -> Dataset:
    """Handwritten digits, uint8 [n, 1, 8, 8], 1,437 to train and 360 to test.

    The values 0..16 are spread over 0..255. The test split is every fifth image of the list that has all zeros
    first, then all ones and so on, each in the order of the file: a fifth of every class, and no random numbers.

    Raises:
        ImportError: If scikit-learn, which contains the images, is not installed.
    """
    try:
        from sklearn.datasets import load_digits as sklearn_digits
    except ImportError as error:
        raise ImportError(
            "the data set digits comes with scikit-learn, which is not installed: pip install gatelight[train]"
        ) from error
    images, labels = sklearn_digits(return_X_y=True)
    x = np.round(np.asarray(images) * (255 / _LEVELS)).astype(np.uint8).reshape(-1, 1, 8, 8)
    y = np.asarray(labels, np.int64)
    order = np.argsort(y, kind="stable")
    test = np.sort(order[::_EVERY])
    train = np.setdiff1d(order, test)
    classes = tuple("0123456789")
    return Dataset("digits", Split(x[train], y[train]), Split(x[test], y[test]), classes, (), binary=False)


DIGITS = Source(
    name="digits",
    task=Task((1, 8, 8), 10),
    description="handwritten digits, 8x8 (scikit-learn)",
    load=load_digits,
    package=("sklearn", "scikit-learn"),
    place=10,
)
