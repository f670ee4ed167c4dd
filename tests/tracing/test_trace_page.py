"""What docs/trace.md shows works as it is written there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "trace.md").read_text("utf-8")


def test_the_example(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> None:
    """It prints what its comments say, and writes the file."""
    code = PAGE.partition("<!-- example: trace -->")[2].partition("```python\n")[2]
    code = code.partition("```")[0].replace('"step.json"', repr(str(tmp_path / "step.json")))
    monkeypatch.chdir(ROOT)
    images = np.load("examples/digits_test.npz")["images"]
    exec(code, {"feeds": {"images:0": images}})
    value, trace, slowest = capsys.readouterr().out.rstrip().rsplit("\n", 2)
    assert value.startswith("[0 4 2 7 7")
    assert trace == re.findall(r"# (<Trace: .*>)", PAGE)[0]
    assert len(slowest.split()) in (2, 3)
    assert (tmp_path / "step.json").exists()


def test_the_executor_of_the_page(capsys: Any) -> None:
    """It prints what its comment says."""
    code = PAGE.partition("<!-- example: executor -->")[2].partition("```python\n")[2]
    code = code.partition("```")[0]
    exec(code, {})
    assert capsys.readouterr().out.strip() == re.findall(r"  # (\[.*\])", code)[0]


def test_every_detail_and_track_has_its_row() -> None:
    """Tables of the page are those of the code."""
    rows = set(re.findall(r"^\| `([^`]+)`", PAGE, re.MULTILINE))
    assert {detail.value for detail in ps.TraceDetail} <= rows
    assert {"steps", "waits", "loops", "iterations", "dead nodes"} <= rows
    assert {"ready nodes", "live bytes"} <= rows
