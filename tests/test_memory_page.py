"""What docs/memory.md shows is what is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs/memory.md").read_text("utf-8")


def test_the_program_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Word for word."""
    program, shown = (
        re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[0]
        for language in ("python", "text")
    )
    exec(program, {})
    assert capsys.readouterr().out == shown
