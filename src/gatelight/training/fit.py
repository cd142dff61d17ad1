"""``gatelight.fit``: train a model on arrays, without a configuration, a data set or a folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from gatelight.config import Optimization, leaves, replace
from gatelight.data import Split, validation_split
from gatelight.files import write_text
from gatelight.names import check_name
from gatelight.sizes import size_of
from gatelight.training import checkpoint, distributed
from gatelight.training.halves import halves
from gatelight.training.inputs import (
    as_split,
    check_bits,
    check_labels,
    check_values,
    count_classes,
    has_encoder,
    takes_bits,
)
from gatelight.training.metrics import Accuracy, accuracy
from gatelight.training.recipe import settled
from gatelight.training.run_folder import RunFolder
from gatelight.training.store import FolderStore, MemoryStore
from gatelight.training.trainer import Observer, Trainer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Share of the samples that is held out by default.
_VALIDATION = 0.1


@dataclass(frozen=True)
class Fit:
    """A fitted model, and how the fit went.

    Attributes:
        model: The model that was passed, with the best weights, in evaluation mode.
        history: One row for each evaluation: ``step``, ``loss``, ``lr``, ``on``, ``soft_accuracy``, ``soft_loss``,
            ``discrete_accuracy`` (of the rounded gates) and ``seconds``.
        accuracy: Of the best weights with rounded gates, on the samples that were held out.
        steps: Steps that were done.
        seconds: How long they took, including earlier interrupted fits.
        test: Accuracies of the best weights on the test samples, if there were any.
    """

    model: nn.Module
    history: tuple[dict[str, Any], ...]
    accuracy: float
    steps: int
    seconds: float
    test: Accuracy | None = None

    def plot(self, title: str = "") -> Figure:
        """Loss and accuracies over steps, as a matplotlib figure."""
        from gatelight import plots

        return plots.curves(list(self.history), title)


def fit(
    model: nn.Module,
    x: Any,
    y: Any,
    *,
    validation: float | tuple[Any, Any] = _VALIDATION,
    test: tuple[Any, Any] | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    observer: Observer | None = None,
    device: torch.device | str = "cpu",
    optimization: Optimization | None = None,
    **settings: Any,
) -> Fit:
    """Train a model on samples and their labels.

    The loss is the cross entropy of the scores; the weights that are best with rounded gates are kept.

    >>> from gatelight.nn import GroupSum, LogicDense, Thermometer
    >>> x = torch.rand(200, 4, generator=torch.Generator().manual_seed(0))
    >>> layers = LogicDense(12, 40, seed=0), LogicDense(40, 20, seed=1)
    >>> net = nn.Sequential(Thermometer.even(3), *layers, GroupSum(2, 3.0))
    >>> done = fit(net, x, (x[:, 0] > 0.5).long(), steps=60, lr=0.05)
    >>> done.steps, done.accuracy > 0.8
    (60, True)

    Args:
        model: Any module that maps a batch to class scores, [batch, classes]. It is trained in place.
        x: Samples, [samples, ...], as a tensor or an array. Floating point stays as it is, bools are 0 and 1, and
            uint8 u means u / 255, as in data sets.
        y: The class of each sample, whole numbers from 0.
        validation: The share of the samples to hold out, or others to evaluate on: (x, y). 0 evaluates on ``x``.
        test: Samples (x, y) on which the best weights are measured at the end.
        folder: Where checkpoints are written, so that training can continue after a crash; None writes nothing.
        resume: Continue the fit in ``folder``, or start it if the folder is empty. Only ``steps`` may differ.
        observer: Gets progress reports, see :class:`~gatelight.training.trainer.Observer`.
        device: Where it is computed; the model moves there.
        optimization: How to train; its own ``validation`` is used if no other is given.
        settings: Any of its values by name, such as ``steps``, ``batch`` or ``lr``, and ``seed``.

    Raises:
        ValueError: If the samples, labels or settings are not what the model or this function can take.
    """
    if resume and folder is None:
        raise ValueError("resume needs a folder, the one of the fit to continue")
    asked, seed = _settings(optimization, settings)
    train, held_out, asked = _divided(as_split(x, y, "training"), validation, asked, seed)
    tested = None if test is None else as_split(*_pair(test, "test"), "test")
    _check(model.to(device), {"training": train, "validation": held_out, "test": tested}, asked, torch.device(device))
    about = {"optimization": asked.to_flat(), "seed": seed, "data": _fingerprint(train, held_out)}
    store = MemoryStore() if folder is None else FolderStore(Path(folder))
    trainer = _trainer(model, train, held_out, asked, store, about, device, observer)
    if isinstance(store, FolderStore):
        _open(store.folder, about, trainer, resume=resume)
    return _run(trainer, tested)


def _trainer(
    model: nn.Module,
    train: Split,
    held_out: Split | None,
    asked: Optimization,
    store: MemoryStore | FolderStore,
    about: dict[str, Any],
    device: torch.device | str,
    observer: Observer | None,
) -> Trainer:
    """What trains the model, with all that was not asked for as it is for a network of no data set in particular."""
    return Trainer(
        model,
        train,
        held_out,
        settled(asked, size_of("", "S")),
        store,
        seed=about["seed"],
        device=device,
        observer=observer,
        about=lambda: {"fit": about},
        binary=takes_bits(model),
    )


def _run(trainer: Trainer, tested: Split | None) -> Fit:
    """Train to the end, and take the best weights."""
    # Random numbers of the model come from (seed, step); the caller's random state is not touched.
    with torch.random.fork_rng(devices=[trainer.device] if trainer.device.type == "cuda" else []):
        trainer.run()
    distributed.barrier()
    model, store = trainer.model, trainer.store
    checkpoint.restore(model, store.best(), Path("best.safetensors"))
    model.eval()
    measured = None if tested is None else accuracy(model, tested)
    return Fit(model, tuple(store.rows()), trainer.best, trainer.step, trainer.seconds, measured)


def _settings(optimization: Optimization | None, settings: dict[str, Any]) -> tuple[Optimization, int]:
    """The optimization with the settings in it, and the seed."""
    given = dict(settings)
    known = [leaf.name for leaf in leaves(Optimization) if leaf.name != "validation"]
    for name in given:
        check_name("setting of fit", name, [*known, "seed"])
    seed = given.pop("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 1 << 62:
        raise ValueError(f"seed must be a whole number from 0 to 2**62 - 1, got {seed!r}")
    return replace(Optimization() if optimization is None else optimization, **given), int(seed)


def _divided(given: Split, validation: Any, asked: Optimization, seed: int) -> tuple[Split, Split | None, Optimization]:
    """The training samples, those for evaluation, and the optimization with the share that was held out."""
    if isinstance(validation, tuple | list):
        held_out = as_split(*_pair(validation, "validation"), "validation")
        return given, held_out, replace(asked, validation=0.0)
    if validation == _VALIDATION and asked.validation is not None:
        validation = asked.validation
    if isinstance(validation, bool) or not isinstance(validation, int | float):
        raise ValueError(f"validation must be a share of the samples or a pair (x, y), got {validation!r}")
    asked = replace(asked, validation=float(validation))
    if not validation:
        return given, None, asked
    if len(given) < 2:
        raise ValueError("one sample cannot be divided into training and validation: pass validation=0")
    return *validation_split(given, validation, seed), asked


def _pair(given: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError(f"{what} must be a pair (x, y), got {type(given).__name__}")
    return given[0], given[1]


def _check(model: nn.Module, given: dict[str, Split | None], asked: Optimization, device: torch.device) -> None:
    """Refuse what cannot be trained before the first step."""
    if not any(p.requires_grad for p in model.parameters()):
        raise ValueError("the model has no parameters that can be trained")
    splits = {name: split for name, split in given.items() if split is not None}
    train = splits["training"]
    for name, split in splits.items():
        if split.x.shape[1:] != train.x.shape[1:] or split.x.dtype != train.x.dtype:
            shapes = [f"{s.x.dtype} {list(s.x.shape[1:])}" for s in (train, split)]
            raise ValueError(f"training and {name} inputs must agree in shape and dtype, got {' and '.join(shapes)}")
        check_values(model, split, name)
    classes = count_classes(model, train, device)
    for name, split in splits.items():
        check_labels(split, classes, name)
    if asked.augment not in (None, "none") and train.x.ndim != 4:
        raise ValueError(f"augment is for images [samples, channels, height, width], got {list(train.x.shape)}")
    if has_encoder(model):
        check_bits(lambda x: halves(model).encode(x.to(device)), torch.from_numpy(train.x), "x")


def _fingerprint(train: Split, held_out: Split | None) -> str:
    """A hash of the data that a model is fitted to."""
    digest = hashlib.blake2b(digest_size=16)
    for split in (train, held_out):
        for values in () if split is None else (split.x, split.y):
            digest.update(f"{values.dtype} {values.shape} ".encode())
            digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _open(folder: RunFolder, about: dict[str, Any], trainer: Trainer, *, resume: bool) -> None:
    """Start a fit in its folder, or continue the one that is in it."""
    if folder.path.exists() and not folder.path.is_dir():
        raise ValueError(f"{folder.path} is a file, expected a folder for the fit")
    if folder.exists and not resume:
        raise ValueError(f"{folder.path} already holds a run; pass resume=True to continue, or another folder")
    if folder.file("config.json").exists():
        raise ValueError(f"{folder.path} holds a run of the command: continue it with gatelight train --resume")
    path = folder.file("last.safetensors")
    if folder.file("fit.json").exists() and path.exists():
        saved = checkpoint.load(path)
        _compare(saved.header.get("fit"), about, path)
        checkpoint.restore(trainer.model, saved, path)
        trainer.restore(saved, path)
        if distributed.rank() == 0:
            folder.trim_metrics(trainer.step)
    elif distributed.rank() == 0:
        folder.clear()
    if distributed.rank() == 0:
        write_text(folder.file("fit.json"), json.dumps(about, indent=2) + "\n")


def _compare(before: Any, now: dict[str, Any], path: Path) -> None:
    """Refuse to continue with settings other than those of the checkpoint, except for the number of steps."""
    if not isinstance(before, dict) or not isinstance(before.get("optimization"), dict):
        raise ValueError(f"{path} is not the checkpoint of a fit")
    old, new = ({**values["optimization"], "seed": values.get("seed")} for values in (before, now))
    for name in new:
        if name not in ("steps", "eval_every") and old.get(name) != new[name]:
            raise ValueError(f"{path}: the fit began with {name} {old.get(name)!r}, not {new[name]!r}")
    if before.get("data") != now["data"]:
        raise ValueError(f"{path}: the samples are not those that the fit began with")
