"""``gatelight reproduce``: figures and claims of the paper."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gatelight.runtime import choose_device, set_threads, stop_on_signal

if TYPE_CHECKING:
    from gatelight.experiments.framework.cell import Cell
    from gatelight.experiments.framework.experiment import Experiment
    from gatelight.experiments.framework.reproduction import Part
    from gatelight.experiments.framework.runner import Machine
    from gatelight.experiments.framework.store import Store

_EXAMPLES = """\
examples:
  gatelight reproduce                                  list the experiments, with about how long they take
  gatelight reproduce gradient-norm --scale smoke      seconds, on digits
  gatelight reproduce depth convergence --data ~/data  minutes to an hour each; Ctrl-C stops, run again to continue
  gatelight reproduce all --ray local                  several at a time, with Ray (pip install 'gatelight[ray]')
  gatelight reproduce --page reproduction.md           claim by claim: the paper, here, and a verdict
"""


def add_parsers(commands: Any) -> None:
    """Add this family's parsers."""
    reproduce = commands.add_parser("reproduce", help="rerun figures and claims of the paper", epilog=_EXAMPLES)
    reproduce.set_defaults(run=run_reproduce, parser=reproduce)
    reproduce.add_argument("names", nargs="*", metavar="NAME", help="experiments, or 'all' (default: list them)")
    reproduce.add_argument("--scale", choices=("smoke", "cpu", "paper"), default="cpu", help="size (default: cpu)")
    reproduce.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the data sets")
    reproduce.add_argument(
        "--out", type=Path, default=Path("reproduction"), help="folder for results and figures (default: reproduction)"
    )
    reproduce.add_argument("--ray", metavar="ADDRESS", help="run the cells on a Ray cluster; 'local' starts one here")
    reproduce.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: all cores; with --ray 1)")
    reproduce.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    reproduce.add_argument("--page", type=Path, metavar="FILE", help="write the page of claims and verdicts")


def run_reproduce(args: argparse.Namespace) -> int:
    """Run experiments, judge and draw them; exit code 1 if a cell failed, 130 if stopped."""
    from gatelight.experiments.framework.catalog import EXPERIMENTS
    from gatelight.experiments.framework.runner import Machine
    from gatelight.experiments.framework.store import Store
    from gatelight.names import check_name

    names = list(EXPERIMENTS) if args.names == ["all"] else args.names
    chosen = [EXPERIMENTS[check_name("experiment", name, EXPERIMENTS)] for name in names]
    store = Store(args.out)
    if not chosen and args.page is None:
        _list(list(EXPERIMENTS.values()), args.scale)
        return 0
    device = choose_device(args.device)
    set_threads(None if args.ray else args.threads, device)
    machine = Machine(args.data.absolute() if args.data else None, device.type)
    code = _run(chosen, args, store, machine)
    if args.page is not None and code != _STOPPED:
        _write_page(args, store)
    return code


_STOPPED = 130


def _run(experiments: list[Experiment], args: argparse.Namespace, store: Store, machine: Machine) -> int:
    """Run what is not finished and show progress."""
    from gatelight.experiments.framework import reproduction
    from gatelight.experiments.framework.cell import StoppedError
    from gatelight.training.progress import console

    parts = reproduction.plan(experiments, args.scale, store)
    _announce(parts, args.scale)
    todo = [cell for part in parts for cell in part.cells]
    progress = _Progress(todo, args.scale, store)
    try:
        with stop_on_signal() as stop:
            failed = reproduction.reproduce(
                parts, args.scale, store, machine, progress, stop, ray=args.ray, threads=args.threads or 1
            )
    except StoppedError:
        console.print("stopped; everything finished is kept; run the same command to continue")
        return _STOPPED
    if failed:
        console.print(f"{len(failed)} of {len(todo)} cells failed: " + "; ".join(cell.label for cell in failed))
    return 1 if failed else 0


def _announce(parts: list[Part], scale: str) -> None:
    """Print what will be run."""
    from gatelight.training.progress import console

    for part in parts:
        known = f", {part.known} known" if part.known else ""
        others = f", {part.shared} shared with the above" if part.shared else ""
        console.print(f"{part.experiment.name} at scale {scale}: {len(part.cells)} cells to run{known}{others}")


def _show_claims(experiment: Experiment, store: Store, scale: str) -> None:
    from gatelight.training.progress import console

    results = store.results(experiment, scale)
    for claim in experiment.claims:
        judged = claim.judged(results)
        console.print(f"  {judged.verdict}: {claim.text}", soft_wrap=True)
        console.print(f"    paper: {claim.paper}; here: {judged.ours or '-'}", soft_wrap=True)


def _list(experiments: list[Experiment], scale: str) -> None:
    from gatelight.training.progress import console, table

    rows = [[e.name, e.title, e.figures.replace("fig:", ""), _duration(e.seconds(scale))] for e in experiments]
    made = table(
        f"experiments, with about how long they take at scale {scale} on two cores",
        ["name", "what", "the paper's figures", "time"],
        rows,
        text=3,
    )
    console.print(made)
    console.print("run one with: gatelight reproduce NAME [--scale smoke|cpu|paper]")


def _duration(seconds: float) -> str:
    """A rough time in words."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def _write_page(args: argparse.Namespace, store: Store) -> None:
    from gatelight.experiments.framework.catalog import EXPERIMENTS
    from gatelight.experiments.framework.report import render
    from gatelight.files import write_text
    from gatelight.training.progress import console

    args.page.parent.mkdir(parents=True, exist_ok=True)
    write_text(args.page, render(EXPERIMENTS.values(), store, args.page, args.scale))
    console.print(f"wrote {args.page}")


class _Progress:
    """Shows which cell is running, its progress, the time left by the cells' own estimates, and the verdicts."""

    def __init__(self, cells: list[Cell], scale: str, store: Store) -> None:
        self._scale, self._store = scale, store
        self._count = len(cells)
        self._left = sum(cell.seconds for cell in cells)
        self._begun = self._shown = time.monotonic()
        self._spent = 0.0
        self._done = 0

    def began(self, cell: Cell) -> None:
        """Nothing to show yet."""

    def advanced(self, cell: Cell, share: float, text: str) -> None:
        """Show a long cell's progress now and then."""
        from gatelight.training.progress import console

        now = time.monotonic()
        if now - self._shown >= _EVERY:
            self._shown = now
            left = self._time_left(self._left - share * cell.seconds, self._spent + share * cell.seconds)
            console.print(f"  {cell.label}: {text}, {left} left", soft_wrap=True)

    def ended(self, cell: Cell, seconds: float) -> None:
        """Show a finished cell."""
        from gatelight.training.progress import console

        self._account(cell)
        left = self._time_left(self._left, self._spent)
        console.print(f"[{self._done}/{self._count}] {cell.label}: {seconds:.1f} s, {left} left", soft_wrap=True)

    def failed(self, cell: Cell, why: str) -> None:
        """Show a failed cell."""
        from gatelight.training.progress import console

        self._account(cell)
        console.print(f"[{self._done}/{self._count}] {cell.label} FAILED: {why}", soft_wrap=True)

    def concluded(self, experiment: Experiment, paths: list[Path]) -> None:
        """Show the verdicts on an experiment and what was written."""
        from gatelight.training.progress import console

        console.print(f"{experiment.name}:")
        _show_claims(experiment, self._store, self._scale)
        if paths:
            console.print("wrote " + ", ".join(map(str, paths)))

    def _account(self, cell: Cell) -> None:
        self._done += 1
        self._left -= cell.seconds
        self._spent += cell.seconds
        self._shown = time.monotonic()

    def _time_left(self, left: float, spent: float) -> str:
        pace = (time.monotonic() - self._begun) / spent if spent > 0 else 1.0
        return _duration(max(left, 0.0) * pace)


_EVERY = 10.0
