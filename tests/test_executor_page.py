"""What docs/executor.md shows works as it is written there, with public names only."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "executor.md").read_text("utf-8")
EXAMPLES = dict(re.findall(r"<!-- example: (.*?) -->\n\n```python\n(.*?)```", PAGE, re.DOTALL))
#: Examples that go on with what an earlier one has made.
CONTINUES = {"errors": "two executors", "cancellation": "two executors"}


def promised(code: str) -> list[str]:
    """What the comments say that the code prints."""
    whole_lines = re.findall(r"^# (.*)$", code, re.MULTILINE)
    return whole_lines or re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each example runs as it stands there, and its comments are its output."""
    names: dict[str, Any] = {}
    if name in CONTINUES:
        exec(EXAMPLES[CONTINUES[name]], names)
    capsys.readouterr()
    exec(EXAMPLES[name], names)

    assert promised(EXAMPLES[name])
    assert capsys.readouterr().out.splitlines() == promised(EXAMPLES[name])


def test_every_example_is_run() -> None:
    """No code of the page stands without the mark by which it is found."""
    assert PAGE.count("```python") == len(EXAMPLES) == 7


def test_public_names_are_enough() -> None:
    """The examples import Penstock itself, and no module of it."""
    imported = {
        name.name if isinstance(node, ast.Import) else node.module
        for code in EXAMPLES.values()
        for node in ast.walk(ast.parse(code))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in node.names
    }

    assert imported == {"numpy", "penstock", "threading"}
