"""What docs/replay.md shows is what is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs/replay.md").read_text("utf-8")
[SNAPSHOT] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_a_snapshot_in_another_session(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As the comment behind the program says."""
    monkeypatch.chdir(tmp_path)
    exec(SNAPSHOT, {})
    assert capsys.readouterr().out.strip() == SNAPSHOT.rpartition("# ")[2].strip()
