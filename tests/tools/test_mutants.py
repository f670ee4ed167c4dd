"""The mistakes that the mutation tool makes: all that could be noticed, and nothing else."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

TOOLS: Final = Path(__file__).parents[2] / "tools"
PACKAGES: Final = TOOLS.parent / "src" / "penstock"


def tool(name: str) -> ModuleType:
    """A module of ``tools``."""
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


mutants: Any = tool("mutants")


def made(body: str) -> set[str]:
    """What becomes of the body of a function, spaces aside."""
    text = f"def f(a, b):\n    {body}\n"
    found = {mutant.applied(text) for mutant in mutants.mutants_of(text)}
    return {ast.unparse(ast.parse(one).body[0].body[0]) for one in found}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("return a < b", {"return a <= b", "return None"}),
        ("return a is not b", {"return a is b", "return None"}),
        ("return a in b", {"return a not in b", "return None"}),
        (
            "return a and b < 0",
            {
                "return a or b < 0",
                "return (not a) and b < 0",
                "return a and b <= 0",
                "return a and b < 1",
                "return None",
            },
        ),
        ("return not a", {"return a", "return None"}),
        ("return -1", {"return +1", "return None"}),
        ("return a + b", {"return a - b", "return None"}),
        ("return [x for x in a if x]", {"return [x for x in a if True]", "return None"}),
        ("return False", {"return True"}),
        ("a.x = b", {"pass"}),
        ("a += b", {"pass", "a -= b"}),
        ("a(b)", {"pass"}),
        ("del a[b]", {"pass"}),
        ("raise a", {"pass"}),
        ("x = True", {"x = False"}),
        ("x = 'y'", {"x = 'yX'"}),
        ("x = zip(a, b, strict=True)", set()),
        ("begin('writing')", {"pass"}),
        ("assert a == 1", set()),
        ("x: int = 1", {"x: int = 2"}),
        ("raise ValueError(f'{a + 1} is not {b}')", {"pass"}),
    ],
)
def test_each_mistake(body: str, wanted: set[str]) -> None:
    """One mutant for each thing that could be otherwise; none in what only people read."""
    assert {ast.unparse(ast.parse(one)) for one in wanted} == made(body)


def test_a_condition_is_negated_and_a_loop_goes_on() -> None:
    """Branches are taken the other way round, and loops end or do not."""
    text = "def f(a):\n    while a:\n        if a.b:\n            break\n        continue\n"
    found = {mutant.applied(text) for mutant in mutants.mutants_of(text)}
    assert found == {
        text.replace("while a", "while (not a)"),
        text.replace("if a.b", "if (not a.b)"),
        text.replace("break", "continue"),
        text.replace("        continue\n", "        break\n"),
    }


def test_what_stands_outside_of_functions_says_what_it_defines() -> None:
    """So that the tests of those who read it can be found."""
    [number, default] = mutants.mutants_of("LIMIT: Final = 3\n\ndef f(a=1):\n    '''Text.'''\n")
    assert (number.defines, number.line) == (("LIMIT",), 1)
    assert "f" in default.defines


@pytest.mark.parametrize("path", ["passes/lower.py", "runtime/executor/propagate.py"])
def test_every_mutant_is_python_and_another_program(path: str) -> None:
    """Of real modules: one that could not be read would be killed by any test."""
    text = (PACKAGES / path).read_text("utf-8")
    before = ast.dump(ast.parse(text))
    found = mutants.mutants_of(text)
    assert len(found) > 50
    for mutant in found[::25]:
        assert ast.dump(ast.parse(mutant.applied(text))) != before
