"""There is one way to the system's randomness for kernels, so that all of it can be replayed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

KERNELS: Final = Path(__file__).parents[2] / "src" / "penstock" / "kernels"
#: Modules that draw from the system, or begin where it says.
DRAWING: Final = {"random", "secrets", "uuid"}
#: What does so if it is given no seed.
UNSEEDED: Final = {"RandomState", "default_rng"}


def draws(tree: ast.Module) -> Iterator[str]:
    """Whatever in a module draws from the system."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from ({alias.name.partition(".")[0] for alias in names} & DRAWING)
            case ast.ImportFrom(module=str(module)):
                yield from {module.partition(".")[0]} & DRAWING
            case ast.Attribute(ast.Name("os"), "urandom" | "getrandom" as name):
                yield f"os.{name}"
            case ast.Call(ast.Attribute(attr=name), [], []) if name in UNSEEDED:
                yield name


@pytest.mark.parametrize("path", sorted(KERNELS.rglob("*.py")), ids=lambda path: path.name)
def test_kernels_draw_from_their_chance_alone(path: Path) -> None:
    """What nobody gave a seed follows from what the session has drawn: ``state/chance.py``."""
    assert set(draws(ast.parse(path.read_text("utf-8")))) == set()


def test_what_draws_by_itself_is_found() -> None:
    """Each of the ways."""
    text = "import secrets\nfrom random import random\nos.urandom(3)\nnp.random.default_rng()"
    found = set(draws(ast.parse(text)))
    assert found == {"secrets", "random", "os.urandom", "default_rng"}
