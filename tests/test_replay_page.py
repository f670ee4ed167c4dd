"""What docs/replay.md shows is what is printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main

PAGE = (Path(__file__).parents[1] / "docs/replay.md").read_text("utf-8")
REPLAY, SNAPSHOT = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
[SHOWN] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for the files that programs write."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_racy_step_is_recorded_replayed_and_shrunk(capsys: pytest.CaptureFixture[str]) -> None:
    """Word for word as the page shows it."""
    exec(REPLAY, {})
    assert capsys.readouterr().out == SHOWN


def test_a_snapshot_in_another_session(capsys: pytest.CaptureFixture[str]) -> None:
    """As the comment behind the program says."""
    exec(SNAPSHOT, {})
    assert capsys.readouterr().out.strip() == SNAPSHOT.rpartition("# ")[2].strip()


def test_the_commands_run(folder: Path) -> None:
    """On a graph whose nodes have these names."""
    graph = ps.Graph()
    with graph.as_default():
        v = ps.Variable(np.float64(1), name="v")
        ps.global_variables_initializer(name="init")
        ps.group(v.assign(v.read_value() * 2.0), v.assign_add(5.0), name="step")
    (folder / "train.pb").write_bytes(ps.graph_to_def(graph).SerializeToString())
    *lines, shrinking = re.findall(r"^penstock (.*)$", PAGE, re.MULTILINE)
    said = ""
    for line in lines:
        done = CliRunner().invoke(main, shlex.split(line), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        said += done.output
    assert "1000 of 1000 replays as recorded" in said
    # It depends on the machine whether the threads have exchanged anything.
    done = CliRunner().invoke(main, shlex.split(shrinking), catch_exceptions=False)
    assert done.exit_code == 0 or "no matter of order" in done.output
