"""An experiment: cells, the paper's claims about them with a way to judge each, and a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from matplotlib.figure import Figure

from gatelight.experiments.framework.cell import Cell, key

SCALES = ("smoke", "cpu", "paper")

HOLDS = "holds"
IN_PART = "holds in part"
FAILS = "does not hold here"
NOT_RUN = "not run yet"

Found = TypeVar("Found")


class MissingResultError(LookupError):
    """A result that a judgment needs is missing."""


@dataclass(frozen=True)
class Judgement:
    """What we found for a claim.

    Attributes:
        ours: Our value.
        verdict: One of the four constants of this module.
        reason: Why, in a sentence.
    """

    ours: str
    verdict: str
    reason: str = ""


class Results:
    """The finished cells of an experiment at one scale.

    Args:
        wanted: All its cells.
        finished: The result of each cell that is done.
    """

    def __init__(self, wanted: Sequence[Cell], finished: Sequence[tuple[Cell, dict[str, Any]]]) -> None:
        self.wanted = list(wanted)
        self.finished = list(finished)

    @property
    def unfinished(self) -> list[Cell]:
        """The cells without a result."""
        done = {key(cell) for cell, _ in self.finished}
        return [cell for cell in self.wanted if key(cell) not in done]

    def found(
        self, of: type[Found], where: Callable[[Found], bool] = lambda _cell: True
    ) -> list[tuple[Found, dict[str, Any]]]:
        """Cells of a class that satisfy ``where`` and are finished, with their results."""
        return [(cell, result) for cell, result in self.finished if isinstance(cell, of) and where(cell)]

    def all(
        self, of: type[Found], where: Callable[[Found], bool] = lambda _cell: True
    ) -> list[tuple[Found, dict[str, Any]]]:
        """Like :meth:`found`, but raises :class:`MissingResultError` if a cell is unfinished or none matches."""
        wanted = [cell for cell in self.wanted if isinstance(cell, of) and where(cell)]
        found = self.found(of, where)
        if len(found) < max(len(wanted), 1):
            raise MissingResultError(f"{len(found)} of {len(wanted)} cells are finished")
        return found

    def one(self, of: type[Found], where: Callable[[Found], bool] = lambda _cell: True) -> dict[str, Any]:
        """The result of the only cell that satisfies ``where``."""
        ((_, result),) = self.all(of, where)
        return result


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes:
        text: What it says.
        paper: The value it gives.
        judge: Judges it by our results; may raise :class:`MissingResultError`.
    """

    text: str
    paper: str
    judge: Callable[[Results], Judgement]

    def judged(self, results: Results) -> Judgement:
        """The judgment; ``not run yet`` if results are missing."""
        try:
            return self.judge(results)
        except MissingResultError as missing:
            return Judgement("", NOT_RUN, str(missing) if results.finished else "")


@dataclass(frozen=True)
class Experiment:
    """One item of the reproduction.

    Attributes:
        name: The name on the command line.
        title: What it shows.
        figures: The paper's figures, by their labels in its source.
        settings: What was run at a scale, in words.
        cells: All cells at a scale.
        claims: The paper's claims.
        draw: Draws the figure from the finished cells.
        place: Its position in lists and on the page: ascending; equal ones by file and line.
    """

    name: str
    title: str
    figures: str
    settings: Callable[[str], str]
    cells: Callable[[str], Sequence[Cell]]
    claims: tuple[Claim, ...]
    draw: Callable[[Results], Figure]
    place: int = 1_000

    def seconds(self, scale: str) -> float:
        """About how long all cells take on two cores."""
        return sum(cell.seconds for cell in self.cells(scale))


def verdict(*parts: bool) -> str:
    """HOLDS if all parts of a claim do, FAILS if none, IN_PART otherwise.

    >>> verdict(True, True), verdict(True, False), verdict(False)
    ('holds', 'holds in part', 'does not hold here')
    """
    return HOLDS if all(parts) else IN_PART if any(parts) else FAILS
