"""What no linter knows: exported names, sizes, docstrings, the journey on disk."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import penstock
from penstock import ops
from penstock.cli.python_text import python_text

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "penstock"
MODULES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
MAX_LINES = 600
#: Modules that are longer, and why.
LONGER_ON_PURPOSE: dict[str, str] = {}


def test_public_names_are_exactly_these() -> None:
    """Adding or losing a public name is a decision, not an accident."""
    submodules = {path.stem for path in SOURCE.iterdir()}
    imported = {
        name
        for name, value in vars(penstock).items()
        if not name.startswith("_")
        and name not in ("TYPE_CHECKING", "annotations", "importlib")
        and not (isinstance(value, types.ModuleType) and name in submodules)
    }

    assert imported <= set(penstock.__all__)
    assert set(dir(penstock)) == set(penstock.__all__)
    assert all(getattr(penstock, name) is not None for name in penstock.__all__)


def test_import_is_light() -> None:
    """Importing Penstock brings in neither the command line's packages nor any extra."""
    heavy = ["click", "rich", "scipy", "PIL", "tensorflow"]
    code = f"import penstock, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_modules_introduce_themselves(path: Path) -> None:
    """Every module has a docstring, and none is longer than a reader's patience."""
    text = path.read_text("utf-8")

    assert ast.get_docstring(ast.parse(text))
    if str(path.relative_to(SOURCE)) not in LONGER_ON_PURPOSE:
        assert len(text.splitlines()) <= MAX_LINES


@pytest.mark.parametrize("path", TESTS, ids=lambda p: str(p.relative_to(ROOT / "tests")))
def test_tests_are_claims(path: Path) -> None:
    """Every test says in its docstring what it claims."""
    silent = [
        node.name
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]

    assert silent == []


def test_the_documented_journey_exists() -> None:
    """Every file that docs/architecture.md names is there."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*/[a-z_]+\.(?:py|txt))", text))
    missing = [name for name in named if not list(ROOT.rglob(name))]

    assert len(named) > 10
    assert missing == []


def test_semantics_page_links_to_tests_that_exist() -> None:
    """Every rule of docs/semantics.md names a test, and the test is there."""
    text = (ROOT / "docs" / "semantics.md").read_text("utf-8")
    links = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    missing = [
        f"{path}::{name}"
        for path, name in links
        if not (ROOT / path).is_file()
        or (name and f"def {name}(" not in (ROOT / path).read_text("utf-8"))
    ]

    assert len(links) > 20
    assert missing == []


def test_the_documented_text_is_what_is_generated() -> None:
    """The example of docs/architecture.md is compiled to what stands there."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    example = text.partition("<!-- example -->")[2].partition("<!-- end of example -->")[0]
    code, generated = re.findall(r"```python\n(.*?)```", example, re.DOTALL)
    graph = penstock.Graph()
    with graph.as_default():
        names = {"ops": ops, "x": ops.placeholder(penstock.dtypes.float32, [], name="x")}
        exec(code, names)

    assert generated in python_text(graph, [names["z"].name], [])
    assert f"is {len(graph)} nodes" in example
