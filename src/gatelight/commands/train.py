"""``gatelight train``, ``eval`` and ``plot``."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gatelight.config import Leaf, RunConfig, leaves, read_config, replace
from gatelight.names import shorten
from gatelight.runtime import choose_device, set_threads, stop_on_signal

if TYPE_CHECKING:
    from gatelight.data import Dataset
    from gatelight.training.run import TrainingRun

_TRAIN_EXAMPLES = """\
examples:
  gatelight train                                         digits, a minute or less
  gatelight train mnist --size S --out runs/mnist
  gatelight train cifar10 --depth-scale 4 --augment crop-flip --seed 1
  gatelight train cifar10 --model cdlgn --size S          convolutional
  gatelight train mnist --parametrization op --init gaussian --steps 2000
  gatelight train --resume --out runs/mnist               continue after an interruption
  gatelight train --config runs/mnist/config.json --seed 1
  torchrun --nproc-per-node 2 -m gatelight train mnist    data-parallel
"""
_EVAL_EXAMPLES = """\
examples:
  gatelight eval runs/mnist
  gatelight eval runs/mnist --which last --split train
  gatelight eval runs/mnist --dataset mine.npz            other data of the same shape and classes
"""
_PLOT_EXAMPLES = """\
examples:
  gatelight plot runs/mnist
  gatelight plot runs/mnist runs/other -o compared.svg
"""


def add_parsers(commands: Any) -> None:
    """Add this family's parsers."""
    train = commands.add_parser("train", help="train a network", epilog=_TRAIN_EXAMPLES)
    train.set_defaults(run=run_train, parser=train)
    run = train.add_argument_group("the run")
    run.add_argument("--out", type=Path, metavar="RUN", help="folder of the run (default: a new one in runs/)")
    run.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="start from a run's config.json, which holds every value as used; command-line options override it",
    )
    run.add_argument("--resume", action="store_true", help="continue the run in --out from its last checkpoint")
    run.add_argument("--overwrite", action="store_true", help="replace the run in --out")
    run.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the data sets (default: $GATELIGHT_DATA)")
    run.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    run.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: all cores)")
    run.add_argument("--tensorboard", action="store_true", help="also write TensorBoard events to the run's folder")
    run.add_argument("--quiet", action="store_true", help="print only the result")
    options = train.add_argument_group("the configuration (where no default is shown, the data set and size decide)")
    for leaf in leaves(RunConfig):
        _add_option(options, leaf)

    evaluate = commands.add_parser("eval", help="soft and rounded accuracy of a run", epilog=_EVAL_EXAMPLES)
    evaluate.set_defaults(run=run_eval, parser=evaluate)
    evaluate.add_argument("model", type=Path, metavar="RUN", help="a run's folder or a checkpoint")
    evaluate.add_argument("--which", choices=("best", "last"), default="best", help="which weights (default: best)")
    evaluate.add_argument("--split", choices=("test", "train"), default="test", help="which split (default: test)")
    evaluate.add_argument("--dataset", help="other data of the same shape and classes, a name or a file")
    evaluate.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the data sets")

    plot = commands.add_parser("plot", help="draw the curves of one run, or compare several", epilog=_PLOT_EXAMPLES)
    plot.set_defaults(run=run_plot, parser=plot)
    plot.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of runs")
    plot.add_argument("-o", "--output", type=Path, help="PNG or SVG (default: curves.png in the first run)")


def _add_option(group: Any, leaf: Leaf) -> None:
    text = leaf.help.replace("%", "%%")
    default = "" if leaf.default is None or leaf.type is bool else f" (default: {leaf.default})"
    if leaf.name == "dataset":
        group.add_argument("dataset", nargs="?", default=argparse.SUPPRESS, help=text + default)
        return
    if leaf.type is bool:
        flag = _flag(leaf.name)
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=text)
        return
    metavar = {int: "N", float: "X", str: "NAME"}[leaf.type]
    group.add_argument(
        _flag(leaf.name), type=leaf.type, default=argparse.SUPPRESS, metavar=metavar, help=text + default
    )
    if leaf.key != leaf.name:
        # The option used to have the name that files still use.
        group.add_argument(_flag(leaf.key), type=leaf.type, default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def run_train(args: argparse.Namespace) -> int:
    """Train, showing progress; exit code 130 if stopped by Ctrl-C."""
    config, dropped = _configuration(args)

    from gatelight.training import checkpoint, distributed
    from gatelight.training.progress import TrainingProgress, say
    from gatelight.training.run import TrainingRun
    from gatelight.training.run_folder import RunFolder, next_folder
    from gatelight.training.same_data import same_data

    device = choose_device(args.device)
    set_threads(args.threads, device)
    out = args.out or next_folder(Path("runs"), config)
    if not args.resume and not args.overwrite and RunFolder(out).exists:
        raise ValueError(f"{out} already holds a run; use --resume to continue or --overwrite to replace it")
    with distributed.process_group(device):
        dataset = _load_dataset(config.dataset, args.data)
        last = RunFolder(out).file("last.safetensors")
        if args.resume and last.exists():
            # Checked before anything is built, because it may be impossible to build a network for other data.
            same_data(checkpoint.read_header(last), dataset, last)
        progress = TrainingProgress(args.quiet)
        run = TrainingRun(config, dataset, out, device=device, observer=_observer(progress, out, args.tensorboard))
        if args.resume:
            run.resume()
        else:
            run.start(overwrite=args.overwrite)
        if not args.quiet and distributed.rank() == 0:
            for line in (*dropped, *run.notes, *_what_was_read(run)):
                say(line)
        try:
            with stop_on_signal() as stop:
                done = run.run(stop)
        finally:
            progress.close()
        _report(run, done)
    return 0 if done else 130


def _configuration(args: argparse.Namespace) -> tuple[RunConfig, list[str]]:
    """The configuration from file and options, and notes; with --resume that of the run, except for --steps."""
    known = {name: leaf for leaf in leaves(RunConfig) for name in (leaf.name, leaf.key)}
    given = {name: getattr(args, name) for name in known if hasattr(args, name)}
    notes = [
        f"{_flag(name)} is deprecated: it is {_flag(known[name].name)} now"
        for name in given
        if name != known[name].name
    ]
    if args.resume:
        if args.out is None:
            raise ValueError("--resume needs --out RUN, the folder of the run to continue")
        if args.overwrite or args.config:
            raise ValueError("--resume continues a run as it is and cannot be combined with --overwrite or --config")
        from gatelight.training.run_folder import RunFolder

        config = RunFolder(args.out).config()
        for name, value in given.items():
            its = known[name].of(config)
            if name != "steps" and value != its:
                raise ValueError(f"--resume: the run has {name} {its!r}, not {value!r}")
        return replace(config, **given), notes
    from gatelight.training.recipe import changed

    base = read_config(args.config) if args.config else RunConfig()
    try:
        config, dropped, because = changed(base, given)
    except ValueError as error:
        raise ValueError(f"the options: {error}") from None
    if args.config and dropped:
        other = "is another" if len(because) == 1 else "are others"
        notes.append(f"{', '.join(dropped)}: not those of {args.config}, as {' and '.join(because)} {other} here")
    return config, notes


def _what_was_read(run: TrainingRun) -> Iterator[str]:
    """Two lines about the data, so that a user notices if a table or an array was misread."""
    dataset, trainer = run.dataset, run.trainer
    shape = " x ".join(f"{n:,}" for n in dataset.input_shape)
    inputs = f"images of {shape}" if len(dataset.input_shape) == 3 else f"{shape} features"
    kind = "bits" if dataset.binary else "bytes" if dataset.train.x.dtype.kind == "u" else "numbers in [0, 1]"
    label = f", label column {dataset.encoding.label!r}" if dataset.encoding else ""
    held = f" ({len(trainer.held_out):,} of them for validation)" if trainer.held_out is not trainer.train else ""
    yield (
        f"{dataset.name}: {len(dataset.train):,} rows to train on{held}, {len(dataset.test):,} to test; "
        f"{inputs}, {kind}{label}"
    )
    bits = trainer.encode(trainer.inputs[:1]).shape[1]
    thresholds = run.config.model.thresholds
    how = f" ({thresholds} for each value)" if thresholds else ""
    yield f"{dataset.num_classes:,} classes: {shorten(dataset.classes)}; {bits:,} input bits{how}"


def _load_dataset(name: str, folder: Path | None) -> Dataset:
    from gatelight import data
    from gatelight.training.progress import DownloadProgress

    return data.load(name, folder, progress=DownloadProgress())


def _observer(progress: Any, out: Path, tensorboard: bool) -> Any:
    if not tensorboard:
        return progress
    from gatelight.training.tensorboard import TensorBoardObserver

    return TensorBoardObserver(progress, out)


def _report(run: TrainingRun, done: bool) -> None:
    from gatelight.training import distributed
    from gatelight.training.progress import console, percent, say, table

    folder = run.folder
    result = run.finish() if done else {}
    if distributed.rank() != 0:
        return
    if not folder.draw_curves():
        say("no curves.png: pip install 'gatelight[train]' for matplotlib")
    path = shlex.quote(str(folder.path))
    if not done:
        say(f"stopped at step {run.step:,} and saved; continue with: gatelight train --resume --out {path}")
        return
    lines = [
        [
            which,
            f"{result[which]['step']:,}",
            percent(result[which]["soft_accuracy"]),
            percent(result[which]["discrete_accuracy"]),
        ]
        for which in ("best", "last")
    ]
    console.print(table(f"test accuracy on {result['dataset']}", ["weights", "step", "soft", "rounded"], lines))
    written = [name for name in _TOLD_FILES if folder.file(name).exists()]
    say(f"run folder: {folder.path}  ({', '.join(written)})")
    say(f"next: gatelight inspect {path}    what the gates have become, as table and picture")


_TOLD_FILES = ("curves.png", "metrics.jsonl", "config.json", "best.safetensors")


def run_eval(args: argparse.Namespace) -> int:
    """Print soft and rounded accuracy."""
    from gatelight.training.metrics import accuracy
    from gatelight.training.progress import DownloadProgress, console, percent, say, table
    from gatelight.training.run_folder import load_data, load_model

    model, header = load_model(args.model, args.which)
    dataset = load_data(header, args.dataset, args.data, progress=DownloadProgress())
    for note in dataset.notes:
        say(note)
    if args.dataset is None and header.get("data", dataset.fingerprint) != dataset.fingerprint:
        say(f"{dataset.name} has changed since the training: its test rows may have been trained on")
    split = dataset.test if args.split == "test" else dataset.train
    measured = accuracy(model, split)
    row = [
        f"{len(split):,}",
        percent(measured.soft),
        percent(measured.rounded),
        f"{100 * measured.gap:.2f}",
        f"{measured.soft_loss:.4f}",
    ]
    which = f"{args.which}, " if args.model.is_dir() else ""
    title = f"{args.model} ({which}step {header['step']:,}) on the {args.split} split of {dataset.name}"
    console.print(table(title, ["samples", "soft", "rounded", "gap, points", "soft loss"], [row]))
    return 0


def run_plot(args: argparse.Namespace) -> int:
    """Draw curves."""
    from gatelight import plots
    from gatelight.training.progress import say
    from gatelight.training.run_folder import RunFolder

    output = args.output or args.runs[0] / ("curves.png" if len(args.runs) == 1 else "comparison.png")
    if output.suffix not in (".png", ".svg"):
        raise ValueError(f"the picture must end in .png or .svg, got {output}")
    for path in args.runs:
        RunFolder(path).config()
    runs = [(path.name, RunFolder(path).metrics()) for path in args.runs]
    figure = plots.curves(runs[0][1], runs[0][0]) if len(runs) == 1 else plots.comparison(runs)
    plots.save(figure, output)
    say(f"wrote {output}")
    return 0
