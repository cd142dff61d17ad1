"""The page that says, claim by claim, what the paper found and what was found here."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from gatelight.experiments.framework.cell import key
from gatelight.experiments.framework.experiment import FAILS, HOLDS, IN_PART, NOT_RUN, Experiment, Judgement
from gatelight.experiments.framework.store import Store

_HEAD = """\
# Reproduction

What the paper (Rüttgers et al., *Light Differentiable Logic Gate Networks*, ICLR 2026) claims and what was found here,
at scale `{scale}`: {about}
The last column says how a vague word was read. A claim that does not hold stays on this page.

    gatelight reproduce                     lists the experiments
    gatelight reproduce NAME{out}
    gatelight reproduce --page {page}{out}

The last command writes this page from the data in `{folder}`.

"""


_ABOUT = {
    "smoke": "settings that take seconds, to see that everything runs; they decide nothing.",
    "cpu": """settings that two CPU cores finish in an hour for each experiment. They are smaller than the
published ones (`--scale paper`: CIFAR-100, 128,000 gates wide, 250,000 steps), so a claim that does not hold here may
still hold there. Where settings were changed after results had been seen, the earlier results stay: the dense networks
were 2,000 gates wide at first (`depth-narrow`) and are 8,000 wide elsewhere.""",
    "paper": "the published settings: CIFAR-100, 128,000 gates wide, 250,000 steps.",
}


def render(experiments: Iterable[Experiment], store: Store, page: Path, scale: str = "cpu") -> str:
    """The page as Markdown.

    Args:
        experiments: In the order of the page.
        store: Where their results are.
        page: Where the page will be, for links to the figures.
        scale: Whose results are shown.
    """
    count: Counter[str] = Counter()
    sections = []
    for experiment in experiments:
        text, verdicts = _section(experiment, store, page, scale)
        sections.append(text)
        count.update(verdicts)
    out = "" if store.folder == Path("reproduction") else f" --out {store.folder.as_posix()}"
    head = _HEAD.format(scale=scale, about=_ABOUT[scale], folder=store.folder.as_posix(), page=page.as_posix(), out=out)
    total = ", ".join(f"{v} {count[v]}" for v in (HOLDS, IN_PART, FAILS, NOT_RUN))
    return f"{head}{sum(count.values())} claims: {total}.\n" + "".join(sections)


def _section(experiment: Experiment, store: Store, page: Path, scale: str) -> tuple[str, list[str]]:
    results = store.published(experiment, scale)
    judged = [(claim, claim.judged(results)) for claim in experiment.claims]
    finished, wanted = len(results.finished), len({key(cell) for cell in results.wanted})
    lines = [f"\n## {experiment.title}\n", f"`{experiment.name}`: {experiment.figures}.\n"]
    if finished:
        part = "" if finished == wanted else f" {finished} of {wanted} runs are finished."
        lines.append(f"Here: {experiment.settings(scale)}.{part}\n")
    else:
        lines.append(f"Not run yet at this scale ({experiment.settings(scale)}).\n")
    lines.append("| claim | paper | here | verdict | why |\n|---|---|---|---|---|")
    lines += [f"| {_row(claim.text, claim.paper, judgement)} |" for claim, judgement in judged]
    picture = store.data_file(experiment, scale).with_suffix(".svg")
    if finished and picture.exists():
        link = Path(os.path.relpath(picture, page.parent)).as_posix()
        lines.append(f"\n![{experiment.title}]({link})")
    return "\n".join(lines) + "\n", [judgement.verdict for _, judgement in judged]


def _row(text: str, paper: str, judgement: Judgement) -> str:
    cells = (text, paper, judgement.ours or "-", f"**{judgement.verdict}**", judgement.reason or "-")
    return " | ".join(cell.replace("|", "\\|") for cell in cells)
