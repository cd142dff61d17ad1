from pathlib import Path

import pytest

from gatelight.experiments.framework.catalog import EXPERIMENTS
from gatelight.experiments.framework.report import render
from gatelight.experiments.framework.store import Store

ROOT = Path(__file__).parents[3]


def test_the_committed_page_is_that_of_the_committed_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = Path("docs/reproduction.md")
    assert page.read_text() == render(EXPERIMENTS.values(), Store(Path("results/reproduction")), page), (
        "make it again: gatelight reproduce --page docs/reproduction.md --out results/reproduction"
    )


def test_every_claim_is_on_the_page_whether_run_or_not(tmp_path: Path) -> None:
    text = render(EXPERIMENTS.values(), Store(tmp_path), tmp_path / "page.md")
    claims = [claim for experiment in EXPERIMENTS.values() for claim in experiment.claims]
    assert text.count("**not run yet**") == len(claims)
    assert all(claim.text in text for claim in claims)
    assert f"{len(claims)} claims: holds 0, holds in part 0, does not hold here 0, not run yet {len(claims)}." in text
    assert "![" not in text
