"""What docs/data.md and examples/digits_over_data.py show works as it is written there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def test_the_example_reads_digits_without_an_engine() -> None:
    """Of a thousand images as many are right as of the 397 that they are made of."""
    program = runpy.run_path(str(ROOT / "examples/digits_over_data.py"))
    right, seconds = program["alone"](397 * 3, 1)
    assert 0.98 < right < 0.99
    assert seconds > 0


def test_the_first_program_reads_digits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints those that the README shows."""
    pytest.importorskip("dask.array")
    [program] = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs/data.md").read_text("utf-8"), re.DOTALL
    )
    monkeypatch.chdir(ROOT)
    namespace: dict[str, Any] = {}
    exec(program, namespace)
    assert capsys.readouterr().out.startswith("[0 4 2 7 7 9 1 9 0 9 3 8 6")
