"""Nothing is compiled that the compiler does not write."""

from __future__ import annotations

import pytest

from penstock.errors import InternalError
from penstock.runtime.compiler.vet import vet

NAMES = {"region", "part", "x", "y", "iteration_number", "c_x"}
OBJECTS = {"k_x", "count", "true", "end_loop", "read", "s_x", "type", "ndarray"}

LAWFUL = """
def part(run, x):
    interrupt = run.interrupt
    if interrupt.loops_end:
        end_loop(interrupt)
    return (k_x(x, -1),)

def region(run, x, *_):
    y, = part(run, x)
    for iteration_number in count():
        c_x.frame, c_x.iteration = x, iteration_number
        if y is not true and (x is None or not y):
            break
        else:
            y = x + y if type(y) is ndarray else read(x, s_x)
    del x
    return (y, None, False)
"""


def test_what_the_compiler_writes_passes() -> None:
    """All kinds of lines that generated code is made of, also a second time."""
    known = {""}
    vet(LAWFUL, NAMES, OBJECTS, lawful=known)
    seen = set(known)
    vet(LAWFUL, NAMES, OBJECTS, lawful=known)

    assert len(seen) > 10
    assert known == seen


def test_a_known_shape_does_not_make_names_known() -> None:
    """That a line like this one was lawful says nothing about who is called in it."""
    vet("def region(run, x):\n    y = k_x(x)\n", NAMES, OBJECTS)
    with pytest.raises(InternalError, match="the name k_y"):
        vet("def region(run, x):\n    y = k_y(x)\n", NAMES, OBJECTS)
    with pytest.raises(InternalError, match="does not write"):
        vet("def region(run, x):\n    y = x(x)\n", NAMES, OBJECTS)


def test_what_is_remembered_is_bounded() -> None:
    """Shapes without end do not fill the memory."""
    known = {""}
    for count in range(1, 30):
        text = f"def region(run, x):\n    del {', '.join(['x'] * count)}\n"
        vet(text, NAMES, OBJECTS, lawful=known, max_lawful=10)

    assert len(known) == 10


@pytest.mark.parametrize(
    "line",
    [
        "open(x)",
        "y = __import__",
        "import os",
        "from os import system",
        "x(y)",
        "k_x(x)(y)",
        "k_x.__globals__",
        "x.append(y)",
        "y = x.__class__",
        "y = run.step.resources",
        "type(x, y, y)",
        "k_x(x, key=y)",
        "k_x(*x)",
        "k_x(**x)",
        "y = 'text'",
        "y = b'text'",
        "y = f'{x}'",
        "y = ...",
        "y = 1.5",
        "y = x[0]",
        "y = [x]",
        "y = {x}",
        "y = {x: y}",
        "y = lambda: x",
        "y = [x for x in y]",
        "y = (x := y)",
        "y: int = x",
        "y += x",
        "global y",
        "while x: pass",
        "with x: pass",
        "try: k_x(x)\n    finally: k_x(y)",
        "raise x",
        "assert x",
        "yield x",
        "async def y(): pass",
        "class y: pass",
        "def y(): pass",
        "def z(): pass",
        "y = x;\\\n    k_x(\n    y)",
        "y = (x,\n    y)",
        "x if y else:",
        "y = x\x0c",
        "ｙ = x",
        "if x: y = open(x)",
        "y = k_x(x, 'else:')",
        "z = x",
        "for z in count(): break",
        "for x in count(): break\n    else: k_x(x)",
        "def y(a=k_x(1)): return",
        "def y(*, x): return",
        "def y(x: k_x): return",
        "@k_x\n    def y(): return",
        "match x:\n        case y: break",
    ],
)
def test_everything_else_is_refused(line: str) -> None:
    """One line that the compiler would not write is enough, wherever it stands."""
    code = f"def region(run, x, *_):\n    y = x\n    {line}\n    return (y,)\n"

    with pytest.raises(InternalError, match="does not write"):
        vet(code, NAMES, OBJECTS)


@pytest.mark.parametrize("code", ["k_x(1)\n", "x = 1\n", "def z(run):\n    return ()\n"])
def test_only_functions_that_were_named_stand_outside(code: str) -> None:
    """Nothing runs before the function is called, and no function has an unknown name."""
    with pytest.raises(InternalError, match="does not write"):
        vet(code, NAMES, OBJECTS)


@pytest.mark.parametrize("code", ["def region(:\n", "def region(run):\n\treturn\0\n"])
def test_what_is_no_python_is_refused(code: str) -> None:
    """A text that Python cannot read is our mistake, too, and says so."""
    with pytest.raises(InternalError, match="does not write"):
        vet(code, NAMES, OBJECTS)
