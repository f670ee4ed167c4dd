"""What docs/explain.md shows is what is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs/explain.md").read_text("utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_where_a_nan_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    """As the comment behind the program says."""
    exec(PROGRAMS[1], {})
    assert capsys.readouterr().out.strip() == PROGRAMS[1].rpartition("# ")[2].strip()


def test_the_program_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Word for word."""
    shown = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0]
    exec(PROGRAMS[0], {})
    assert capsys.readouterr().out == shown
