"""What no linter knows about the tests themselves: what they replace, and that they can fail."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("*.py"))
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
#: Constants that tests replace, by the test's file, and why.
REPLACED_ON_PURPOSE = {
    # What a program may do before it asks whether to go on: some milliseconds otherwise.
    "passes/native/test_compile_regions.py": {"BUDGET"},
    "passes/native/test_random_numbers.py": {"BUDGET"},
    # How many cores there are is the machine's to say, as the time is.
    "kernels/test_intra_op.py": {"HELPERS"},
    "kernels/test_products.py": {"HELPERS"},
    "passes/offload/test_offload_regions.py": {"CORES"},
    # A kernel is made by the registry, which knows no sizes: whoever wants small pieces there has
    # no way to say so.  This list only shrinks.
    "kernels/test_correlation.py": {
        *("_AT_ONCE", "_HEIGHT", "_LEAST_ROWS", "_LEAST_TAPS", "_LEAST_WORK", "_RUN", "_SHARED")
    },
    "kernels/test_gates_op.py": {"ALONE"},
    "kernels/test_resize.py": {"HELPERS", "_MANY"},
}


def replaced_constants(text: str) -> set[str]:
    """The upper-case names that a file sets in modules which are Penstock's, or may be.

    Of a name that is computed, all upper-case strings of the same function are suspected.
    """
    tree = ast.parse(text)
    sources = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return {
        name
        for scope in ast.walk(tree)
        if isinstance(scope, ast.FunctionDef)
        for owner, names in _replacements(scope)
        if sources.get(owner, "penstock").startswith("penstock")
        for name in names
        if _CONSTANT.fullmatch(name)
    }


def _replacements(scope: ast.FunctionDef) -> Iterator[tuple[str, list[str]]]:
    """Each module that something is set in, and what that may be."""
    for node in ast.walk(scope):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="setattr" | "object"), args=[ast.Name(id=owner), name, *_]
            ):
                suspects = [name] if isinstance(name, ast.Constant) else ast.walk(scope)
                yield owner, _strings(suspects)
            case ast.Call(
                func=ast.Attribute(attr="setattr" | "patch"),
                args=[ast.Constant(value=str(path)), *_],
            ):
                owner, _, name = path.rpartition(".")
                yield owner.partition(".")[0], [name]


def _strings(nodes: Iterator[ast.AST] | list[ast.expr]) -> list[str]:
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(TESTS)))
def test_tests_pass_sizes_rather_than_replace_them(path: Path) -> None:
    """A threshold is a parameter with a default, so that a test can say another one."""
    allowed = REPLACED_ON_PURPOSE.get(str(path.relative_to(TESTS)), set())

    assert replaced_constants(path.read_text("utf-8")) == allowed


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)


def _tells(scope: ast.FunctionDef, telling: set[str]) -> bool:
    """Whether a function asserts or raises something, or calls another that does."""
    return any(
        isinstance(node, ast.Assert | ast.Raise)
        or (isinstance(node, ast.Call) and _called(node).startswith("assert"))
        or (isinstance(node, ast.Call) and _called(node) in telling)
        for node in ast.walk(scope)
    )


def silent_tests(texts: dict[str, str]) -> list[str]:
    """Tests without any assertion, of their own or in what they call, by files' names."""
    functions = [
        (file, node)
        for file, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    ]
    helpers = [node for _, node in functions if not node.name.startswith("test_")]
    # These are made to raise; the graph's own checks are as good as an assertion.
    telling = {"raises", "warns", "fail", "check_graph", "check_placed", "check_partitions"}
    before = 0
    while before < len(telling):
        before = len(telling)
        telling |= {node.name for node in helpers if _tells(node, telling)}
    return [
        f"{file}::{node.name}"
        for file, node in functions
        if node.name.startswith("test_") and not _tells(node, telling)
    ]


def test_every_test_can_fail() -> None:
    """Whoever runs something, and looks at nothing, has shown that it does not crash at most."""
    assert silent_tests({str(p.relative_to(TESTS)): p.read_text("utf-8") for p in FILES}) == []


def test_a_silent_test_is_found() -> None:
    """A helper counts if it tells, or calls one that does; in any file."""
    helpers = "def deep():\n    assert 1\ndef near():\n    deep()\ndef mute():\n    print()\n"
    tests = "def test_a():\n    near()\ndef test_b():\n    mute()\ndef test_c():\n    assert 1\n"

    assert silent_tests({"helpers": helpers, "tests": tests}) == ["tests::test_b"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('monkeypatch.setattr(tune, "SLOW", 0)', {"SLOW"}),
        ('monkeypatch.setattr(unknown, "_SLOW_2", 0)', {"_SLOW_2"}),
        ('monkeypatch.setattr("penstock.runtime.tune.SLOW", 0)', {"SLOW"}),
        ('mock.patch.object(tune, "SLOW", 0)', {"SLOW"}),
        ('for name in ("A", "_B"): monkeypatch.setattr(tune, name, 0)', {"A", "_B"}),
        ('monkeypatch.setattr(tune, "perf_counter", 0)', set()),
        ('monkeypatch.setattr(other, "SLOW", 0)', set()),
    ],
)
def test_a_replaced_constant_is_found(line: str, found: set[str]) -> None:
    """However it is written; classes, functions and other people's modules are no constants."""
    imports = "from penstock.runtime import tune\nfrom elsewhere import other\n"

    assert replaced_constants(f"{imports}def test():\n    {line}\n") == found
