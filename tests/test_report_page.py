"""What docs/report.md shows is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.reporting.contents import contents_of
from penstock.reporting.facts import GraphFacts, Report, StepFacts

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "report.md").read_text("utf-8")


def test_the_program_prints_what_became_of_nodes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It says what was folded, summarises values, and writes the page."""
    monkeypatch.chdir(tmp_path)
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], {})
    printed = capsys.readouterr().out
    assert "scale | fold_constants | it is a Const now" in printed
    assert "y float32[4] 6.0" in printed
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_all_that_may_be_in_a_report_is_explained() -> None:
    """Each kind of content has its row."""
    step = StepFacts(0, (), 0, (), (), 0, (), (), error="failed")
    kinds = {one.what for one in contents_of(Report("", GraphFacts(()), step=step))}
    assert kinds == set(
        re.findall(r"^\| ([a-zA-Z ]+?) \| (?:names|never|if|with)", PAGE, re.MULTILINE)
    )


def test_every_tab_has_its_row() -> None:
    """The tabs of the page are those of the table."""
    frame = (ROOT / "src/penstock/reporting/page/frame.html").read_text("utf-8")
    tabs = re.findall(r'role="tab".*?>(\w+)</button>', frame)
    rows = PAGE.partition("| tab | shows |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| (\w+) \|", rows, re.MULTILINE) == tabs
