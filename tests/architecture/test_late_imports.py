"""What is imported late, in a thread, is imported under a lock that whoever forks takes first.

Otherwise Python's lock of a module that a thread is importing would stay locked in the child.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "penstock"
#: Modules that have such a lock of their own; and one in which nothing is late.
APART = {
    "catalogue/plugins.py",
    "core/memory.py",
    "kernels/api/registry.py",
    "kernels/api/shape_rules.py",
    "kernels/onnx/library.py",
}


def is_import(node: ast.AST) -> bool:
    """Whether something imports a module."""
    is_call = isinstance(node, ast.Call) and ast.unparse(node.func) == "importlib.import_module"
    return is_call or isinstance(node, ast.Import | ast.ImportFrom)


def late_imports(node: ast.AST, *, inside: bool = False) -> Iterator[int]:
    """The lines of imports in functions that hold no lock."""
    if inside and is_import(node):
        yield node.lineno
    if isinstance(node, ast.With) and any(
        ast.unparse(item.context_expr) == "importing" for item in node.items
    ):
        return
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from late_imports(child, inside=inside or is_function)


def test_late_imports_hold_the_lock() -> None:
    """All but those of commands, which are programs of their own."""
    found = [
        f"{name}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        if (name := path.relative_to(SOURCE).as_posix()) not in APART and "cli/" not in name
        for line in late_imports(ast.parse(path.read_text("utf-8")))
    ]
    assert found == []


def test_modules_apart_import_late() -> None:
    """Each would be found, and has a lock, but for the one that imports while it is imported."""
    for name in APART:
        text = (SOURCE / name).read_text("utf-8")
        assert list(late_imports(ast.parse(text)))
        assert ("held_at_forks" in text) == (name != "core/memory.py")
