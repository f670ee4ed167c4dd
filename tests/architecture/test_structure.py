"""What no linter knows: exported names, sizes, docstrings, the journey on disk."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
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
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FILES = [
    path
    for folder in ("src", "tests", "tools", "docs", "examples", "benchmarks")
    for path in (ROOT / folder).rglob("*.*")
    if path.suffix in (".py", ".pyi", ".txt", ".md")
] + [*ROOT.glob("*.md"), *ROOT.glob("*.py")]
MAX_LINES = 400
#: Modules that are longer, and why.
LONGER_ON_PURPOSE: dict[str, str] = {}


def test_public_names_are_exactly_these() -> None:
    """Adding or losing a public name is a decision, not an accident."""
    submodules = {path.stem for path in SOURCE.iterdir()}
    imported = {
        name
        for name, value in vars(penstock).items()
        if not name.startswith("_")
        and name != "importing"
        and name not in ("TYPE_CHECKING", "annotations", "collector_pause", "importlib")
        and not (isinstance(value, types.ModuleType) and name in submodules)
    }

    assert imported <= set(penstock.__all__)
    assert set(dir(penstock)) == set(penstock.__all__)
    assert all(getattr(penstock, name) is not None for name in penstock.__all__)


def test_import_is_light() -> None:
    """Importing Penstock brings in neither the command line's packages nor any extra.

    Nor what only some graphs, or mistakes, need of Python's own.
    """
    heavy = ["click", "rich", "scipy", "PIL", "tensorflow", "onnxruntime"]
    rare = ["difflib", "hashlib", "pathlib"]
    code = (
        "import numpy, sys; numpys = set(sys.modules); import penstock; "
        f"print([m for m in {heavy + rare} if m in sys.modules and m not in numpys])"
    )
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


def test_private_classes_have_names_of_their_own() -> None:
    """One word is one thing: a reader who meets a private class knows which one it is."""
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))

    assert len(homes) > 100
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_the_documented_journey_exists() -> None:
    """Every file that docs/architecture.md names is there."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*/[a-z_]+\.(?:py|txt))", text))
    missing = [name for name in named if not list(ROOT.rglob(name))]

    assert len(named) > 10
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    """No page leads to a file that is not there, in a folder or by its name alone."""
    text = page.read_text("utf-8")
    named = set(re.findall(r"(?<![\w./<-])((?:[\w.-]+/)*[\w-]+\.(?:pyi?|txt|md))\b(?!\()", text))
    known = {str(path.relative_to(ROOT)) for path in FILES}
    known |= set(re.findall(r"<!-- file: (\S+) -->", text))  # which the reader makes
    missing = [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in known)]

    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_functions_that_a_page_names_exist(page: Path) -> None:
    """Where a page says in which file something is, it is there."""
    text = page.read_text("utf-8")
    places = re.findall(r"`((?:\w+/)+\w+\.py):{1,2} ?([\w.]+)`", text)
    wrong = [
        f"{path}: {name}"
        for path, name in places
        if not any(
            str(file).endswith(f"/{path}")
            and re.search(
                rf"^ *(def|class) {name.split('.')[-1]}\b", file.read_text("utf-8"), re.MULTILINE
            )
            for file in FILES
        )
    ]

    assert wrong == []


def test_the_documented_layers_are_those_that_are_checked() -> None:
    """The layers of docs/architecture.md stand in the order of the import contract."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    block = text.partition("## The layers")[2].split("```")[1]
    shown = [re.split(r"\s{2,}", line)[0] for line in block.strip().splitlines()]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]

    assert shown == contracts["contracts"][0]["layers"]


def test_what_contracts_do_not_see_is_for_type_checkers() -> None:
    """An import that a contract leaves out is under ``if TYPE_CHECKING``: no program runs it."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    ignored = [edge for c in contracts["contracts"] for edge in c.get("ignore_imports", ())]
    run = []
    for edge in ignored:
        importer, _, imported = edge.partition(" -> ")
        tree = ast.parse((SOURCE.parent / f"{importer.replace('.', '/')}.py").read_text("utf-8"))
        hidden = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        run += [
            edge
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            and node.module == imported
            and id(node) not in hidden
        ]

    assert len(ignored) > 5
    assert run == []


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
