"""How the command shows progress: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from gatelight.nn import LogicNetwork

_WIDE = 100

console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def percent(share: float) -> str:
    """A share as a percentage with two decimals."""
    return f"{100 * share:.2f} %"


class TrainingProgress:
    """Shows a run: steps, loss, both accuracies, speed and time left."""

    def __init__(self, quiet: bool = False) -> None:
        self._live = console.is_terminal and not quiet
        self._quiet = quiet
        self._bar: Progress | None = None
        self._accuracies = "soft -  discrete -"
        self._first, self._steps, self._begun, self._shown = 0, 0, 0.0, 0.0

    def started(self, step: int, steps: int, model: LogicNetwork) -> None:
        """Show what is trained and start the bar."""
        self._first, self._steps, self._begun = step, steps, time.monotonic()
        if not self._quiet:
            gates = model.gates
            parameters = sum(p.numel() for p in model.parameters())
            depth = len(model.logic_layers)
            begin = f", resuming at step {step:,}" if step else ""
            console.print(f"{gates:,} gates in {depth} layers, {parameters:,} parameters, {steps:,} steps{begin}")
        if self._live:
            self._bar = Progress(
                BarColumn(bar_width=8 if console.width < _WIDE else 40),
                MofNCompleteColumn(),
                TextColumn("{task.fields[text]}"),
                TimeRemainingColumn(compact=True),
                TextColumn("left"),
                console=console,
            )
            self._task = self._bar.add_task("", total=steps, completed=step, text=self._accuracies)
            self._bar.start()

    def stepped(self, step: int, loss: float) -> None:
        """Move the bar."""
        now = time.monotonic()
        if self._bar is not None and (now - self._shown > 0.1 or step == self._steps):
            self._shown = now
            speed = (step - self._first) / max(now - self._begun, 1e-9)
            text = f"{self._accuracies}  {speed:.0f}/s"
            if console.width >= _WIDE:
                text = f"loss {loss:.3f}  {text}"
            self._bar.update(self._task, completed=step, text=text)

    def evaluated(self, row: dict[str, Any]) -> None:
        """Show an evaluation."""
        soft, discrete = percent(row["soft_accuracy"]), percent(row["discrete_accuracy"])
        self._accuracies = f"soft {soft}  discrete {discrete}"
        if self._quiet or self._live:
            return
        now = time.monotonic()
        speed = (row["step"] - self._first) / max(now - self._begun, 1e-9)
        left = (self._steps - row["step"]) / max(speed, 1e-9)
        console.print(
            f"step {row['step']:>7,}/{self._steps:,}  loss {row['loss']:.4f}  {row['on']}: {self._accuracies}  "
            f"{speed:.1f} steps/s  {_clock(left)} left"
        )

    def close(self) -> None:
        """Stop the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class DownloadProgress:
    """Shows bytes as they arrive; a callable for :func:`gatelight.data.load`."""

    def __init__(self) -> None:
        self._shown = 0.0

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Report progress of one file."""
        now = time.monotonic()
        if now - self._shown < 0.5 and done != total:
            return
        self._shown = now
        of = f" of {total / 1e6:.1f}" if total else ""
        end = "\r" if console.is_terminal and done != total else "\n"
        console.print(f"{what}: {done / 1e6:.1f}{of} MB", end=end)


def table(title: str, columns: list[str], rows: list[list[str]]) -> Table:
    """A table whose first column is text and whose others are numbers."""
    made = Table(title=title, title_justify="left", header_style="bold")
    for index, column in enumerate(columns):
        made.add_column(column, justify="left" if index == 0 else "right")
    for row in rows:
        made.add_row(*row)
    return made


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
