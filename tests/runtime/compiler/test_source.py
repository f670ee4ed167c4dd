"""A text is known to tracebacks and debuggers, and says which node a line is for."""

from __future__ import annotations

import gc
import linecache
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.errors import InternalError
from penstock.runtime.compiler.source import (
    Iterations,
    Source,
    SourceLine,
    SourcePlace,
    make_source,
)
from support.pythons import with_gil
from support.sketch import sketch

GRAPH = sketch("a = NoOp()\nb = NoOp()\nc = NoOp()")
A, B, C = (GRAPH.node(name) for name in "abc")
OUTER, INNER = Iterations("outer", "i"), Iterations("inner", "j")


def source(act: Callable[[int, int], Any] = lambda _i, _j: None) -> Source:
    """Two loops that call ``act`` with their iterations, in the line of node b."""
    lines = [
        SourceLine("def region(run):"),
        SourceLine("    x = 1", A),
        SourceLine("    for i in range(3):", None, label="outer"),
        SourceLine("        check(i)", C, (OUTER,)),
        SourceLine("        for j in range(2):", None, (OUTER,), label="inner"),
        SourceLine("            act(i, j)", B, (OUTER, INNER)),
        SourceLine("    return (x,)"),
    ]
    objects = {"act": act, "check": lambda _i: None, "range": range}
    return make_source(lines, "region", {"region", "i", "j", "x"}, objects, needs_context=False)


def raising(cause: Exception, at: tuple[int, int]) -> Callable[[int, int], None]:
    """Raise in one iteration."""

    def act(i: int, j: int) -> None:
        if (i, j) == at:
            raise cause

    return act


def test_the_listing_is_code_and_labels() -> None:
    """The listing shows what was compiled, and the graph's words beside it."""
    made = source()
    assert made.listing.splitlines()[1:3] == [
        "    x = 1  # a (NoOp)",
        "    for i in range(3):  # outer",
    ]
    assert made.function(None) == (1,)


def test_labels_are_shown_and_never_compiled() -> None:
    """A label with line breaks and terminal sequences is one harmless line of the listing."""
    label = "x\nraise SystemExit\r\x1b[2J\u202e"
    lines = [
        SourceLine("", label=label),
        SourceLine("def region(run):"),
        SourceLine("    return ()", label=label),
    ]
    made = make_source(lines, "region", {"region"}, {}, needs_context=False)

    assert made.function(None) == ()
    assert made.listing.splitlines() == [
        r"# x\nraise SystemExit\r\x1b[2J\u202e",
        "def region(run):",
        r"    return ()  # x\nraise SystemExit\r\x1b[2J\u202e",
    ]


def test_generated_code_has_no_builtins() -> None:
    """Even what came through all checks could not open a file."""
    made = source()
    assert made.function.__globals__["__builtins__"] == {}


def test_lines_that_make_no_code_are_our_mistake() -> None:
    """Each line may be lawful, and all of them no Python: that is an OpError, too."""
    lines = [SourceLine("def region(run):"), SourceLine("return")]
    with pytest.raises(InternalError):
        make_source(lines, "region", {"region"}, {}, needs_context=False)
    with pytest.raises(InternalError, match="no Python"):
        make_source([lines[0], SourceLine("")], "region", {"region"}, {}, needs_context=False)


def test_tracebacks_show_the_line() -> None:
    """Python prints the line of generated text in which an error arose."""
    made = source(raising(ValueError("here"), (1, 1)))
    with pytest.raises(ValueError, match="here") as caught:
        made.function(None)
    shown = "".join(traceback.format_exception(caught.value))
    assert "act(i, j)" in shown
    assert made.filename in shown
    assert linecache.getline(made.filename, 2) == "    x = 1  # a (NoOp)\n"
    assert linecache.getlines(made.filename)[:1] == ["def region(run):\n"]


def test_the_text_goes_when_the_source_does() -> None:
    """Nothing is left behind of requests that are forgotten."""
    made = source()
    filename = made.filename
    assert filename in linecache.cache
    del made
    gc.collect()
    assert filename not in linecache.cache


def test_sources_are_told_apart() -> None:
    """Each source has a file name of its own, with nothing of the graph in it."""
    one, two = source(), source()
    assert one.filename != two.filename
    assert one.filename.startswith("<penstock region ")


def test_the_place_of_an_error() -> None:
    """Node, frame and iteration follow from the line and the counters at that moment."""
    made = source(raising(ValueError("here"), (2, 1)))
    with pytest.raises(ValueError, match="here") as caught:
        made.function(None)
    assert made.place_of(caught.value.__traceback__) == SourcePlace(B, "outer[2]/inner", 1)


def test_an_error_elsewhere_has_no_place() -> None:
    """What did not arise in the text, or in a line that holds others together, has no node."""
    made = source()
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 // 0
    assert made.place_of(caught.value.__traceback__) is None
    assert made.place_of(None) is None
    with pytest.raises(TypeError) as other:
        made.function()
    assert made.place_of(other.value.__traceback__) is None


def test_without_the_gil_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The frames of a thread that goes on are not looked at, not even one's own."""
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    monkeypatch.setattr(sys, "_current_frames", lambda: pytest.fail("looked"))
    made = source()
    assert made.place_now(threading.get_ident()) is None


#: Asks where a thread is, whenever the collector is about to look at thread-local data.
ASKING = """
import gc, threading
from penstock.runtime.compiler.source import _frame_of

class Cycle:
    def __init__(self):
        self.me, self.local = self, threading.local()

gc.set_threshold(1)
for _ in range(500):
    gc.disable()
    for _ in range(3):
        Cycle()
    gc.enable()
    assert _frame_of(threading.get_ident()) is not None
print(gc.isenabled())
"""


def test_collections_are_no_danger() -> None:
    """A collection of thread-local data does not stop the process while somebody asks."""
    source_folder = Path(penstock.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", ASKING],
        env={**os.environ, "PYTHONPATH": str(source_folder)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout == "True\n"


@with_gil
def test_the_place_now() -> None:
    """Another thread can ask where a thread is."""
    reached, go = threading.Event(), threading.Event()

    def act(i: int, j: int) -> None:
        if (i, j) == (1, 0):
            reached.set()
            go.wait(10.0)

    made = source(act)
    thread = threading.Thread(target=made.function, args=[None])
    thread.start()
    try:
        assert reached.wait(10.0)
        assert thread.ident is not None
        assert made.place_now(thread.ident) == SourcePlace(B, "outer[1]/inner", 0)
        assert made.place_now(threading.get_ident()) is None
    finally:
        go.set()
        thread.join(10.0)
    assert made.place_now(thread.ident) is None


@pytest.mark.parametrize(
    ("place", "around", "whole"),
    [
        (SourcePlace(A, "", 0), ("", 0), SourcePlace(A, "", 0)),
        (SourcePlace(A, "", 0), ("outer", 3), SourcePlace(A, "outer", 3)),
        (SourcePlace(A, "inner", 2), ("outer", 3), SourcePlace(A, "outer[3]/inner", 2)),
        (SourcePlace(A, "b[1]/c", 2), ("x[5]/a", 3), SourcePlace(A, "x[5]/a[3]/b[1]/c", 2)),
    ],
)
def test_a_place_within_an_iteration(
    place: SourcePlace, around: tuple[str, int], whole: SourcePlace
) -> None:
    """A text that itself runs in an iteration of a loop adds that iteration in front."""
    assert place.within(*around) == whole
