"""How the command shows progress: a live bar on a terminal, plain lines elsewhere or without rich."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

_WIDE = 100


class _PlainConsole:
    """Replaces rich's console if rich is not installed: prints text as it is."""

    is_terminal = False
    width = 160

    def print(self, text: str = "", end: str = "\n", **_style: Any) -> None:
        sys.stdout.write(text + end)

    def print_json(self, text: str) -> None:
        self.print(text)


def _make_console() -> Any:
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        return _PlainConsole()
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 160)


console = _make_console()


def say(text: str) -> None:
    """Print a line, never broken in two: it may hold a path or a command to copy."""
    console.print(text, soft_wrap=True)


def percent(share: float) -> str:
    """A share as a percentage with two decimals."""
    return f"{100 * share:.2f} %"


class TrainingProgress:
    """Shows a run: steps, loss, both accuracies, speed and time left."""

    def __init__(self, quiet: bool = False) -> None:
        self._live = console.is_terminal and not quiet
        self._quiet = quiet
        self._bar: Any = None
        self._accuracies = "soft -  rounded -"
        self._first, self._steps, self._begun, self._shown = 0, 0, 0.0, 0.0

    def started(self, step: int, steps: int, model: nn.Module) -> None:
        """Show what is trained and start the bar."""
        self._first, self._steps, self._begun = step, steps, time.monotonic()
        if not self._quiet:
            begin = f", resuming at step {step:,}" if step else ""
            console.print(f"{_described(model)}, {steps:,} steps{begin}")
        if self._live:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

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
        soft, rounded = percent(row["soft_accuracy"]), percent(row["discrete_accuracy"])
        self._accuracies = f"soft {soft}  rounded {rounded}"
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


def _described(model: nn.Module) -> str:
    """The size of a model: its gates, if it says how many it has, and its parameters."""
    parameters = f"{sum(p.numel() for p in model.parameters()):,} parameters"
    gates, layers = getattr(model, "gates", None), getattr(model, "logic_layers", None)
    if not isinstance(gates, int) or layers is None:
        return parameters
    return f"{gates:,} gates in {len(layers)} layers, {parameters}"


class ProgressObserver:
    """Passes a trainer's progress on as a share that is done and a line of text."""

    def __init__(self, advanced: Callable[[float, str], None]) -> None:
        self._advanced = advanced
        self._steps = 1

    def started(self, step: int, steps: int, model: nn.Module) -> None:
        """Note how many steps there will be."""
        self._steps = steps

    def stepped(self, step: int, loss: float) -> None:
        """Do nothing: reports at evaluations are frequent enough."""

    def evaluated(self, row: dict[str, Any]) -> None:
        """Pass on the step and the rounded accuracy."""
        text = f"step {row['step']:,}/{self._steps:,}, rounded {100 * row['discrete_accuracy']:.1f} %"
        self._advanced(row["step"] / self._steps, text)


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


def table(title: str, columns: list[str], rows: list[list[str]], text: int = 1) -> Any:
    """A table for the console whose first ``text`` columns are text and whose others are numbers."""
    if isinstance(console, _PlainConsole):
        return _plain_table(title, columns, rows, text)
    from rich.table import Table

    made = Table(title=title, title_justify="left", header_style="bold")
    for index, column in enumerate(columns):
        is_text = index < text
        made.add_column(column, justify="left" if is_text else "right", overflow="fold" if is_text else "ellipsis")
    for row in rows:
        made.add_row(*row)
    return made


def _plain_table(title: str, columns: list[str], rows: list[list[str]], text: int) -> str:
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if index < text else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (columns, *rows)
    ]
    return "\n".join([title, *lines])


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
