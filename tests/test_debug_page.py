"""What docs/debug.md shows is what is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main
from penstock.debugger.commands import BY_NAME

PAGE = (Path(__file__).parents[1] / "docs/debug.md").read_text("utf-8")


def test_the_program_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Word for word."""
    [program] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    [shown] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    exec(program, {})
    assert capsys.readouterr().out == shown


def test_the_conversation_is_as_the_page_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same commands, from a pipe, are answered with the same words."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [2], name="x")
        ps.ops.exp(ps.ops.log(x, name="log"), name="y")
    (tmp_path / "model.pb").write_bytes(ps.graph_to_def(graph).SerializeToString())
    monkeypatch.chdir(tmp_path)
    [session] = re.findall(r"```console\n\$ penstock (.*?)```", PAGE, re.DOTALL)
    command, _, said = session.partition("\n")
    lines = re.findall(r"^\(penstock\) (.*)$", said, re.MULTILINE)
    done = CliRunner().invoke(main, command.split(), "\n".join(lines) + "\n")
    assert done.stdout == said
    assert done.exit_code == 0


def test_every_command_is_there() -> None:
    """What stands first in a row of the tables is a command."""
    cells = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    named = {words.split()[0] for cell in cells for words in re.findall(r"`+(\w[^`]*)", cell)}
    # What stands between backticks within backticks is a tensor.
    assert named - {"x:0"} <= set(BY_NAME)
    assert len(named) > 15
