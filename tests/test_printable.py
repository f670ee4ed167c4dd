"""What strangers wrote is shown without being obeyed."""

from __future__ import annotations

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import InvalidArgumentError, Where
from penstock.printable import printable, printable_lines
from support.custom import custom_kernels
from support.sketch import sketch

#: What a terminal would obey, or a reader not see: escapes, C1 controls, line breaks of all kinds,
#: bidirectional marks, a zero-width space, a byte that is no UTF-8.
OBEYED = [
    "\x1b[2J",
    "\x9b31m",
    "\r",
    "\x07",
    "\x85",
    "\u2028",
    "\u202e",
    "\u2066",
    "\u200b",
    "\udcff",
]


@pytest.mark.parametrize("text", OBEYED)
def test_nothing_that_a_terminal_obeys_gets_through(text: str) -> None:
    """Each is written as an escape, which begins with a backslash."""
    shown = printable(f"a{text}b")

    assert shown.isprintable()
    assert shown.startswith("a\\")


def test_what_people_write_stays_as_it_is() -> None:
    """Names of all scripts, and backslashes, are shown as they are."""
    assert printable("größe/층_1\\x: 日本") == "größe/층_1\\x: 日本"


def test_a_line_break_in_a_name_makes_no_second_line() -> None:
    """One name is one line; a text of several keeps its lines."""
    assert printable("a\nb\tc") == "a\\nb\\tc"
    assert printable_lines("a\n\tb\x1b") == "a\n\tb\\x1b"


@given(st.text())
def test_any_text_becomes_printable(text: str) -> None:
    """Whatever comes in, what goes out is printable, and the same once more."""
    shown = printable(text)

    assert shown.isprintable()
    assert printable(shown) == shown


def test_errors_show_names_with_escapes() -> None:
    """An error's text, with its place, is safe to print; its fields are as they were."""
    error = InvalidArgumentError("bad \x1b[31m", where=Where("n\u202e", device="\x9b"))

    assert "\x1b" not in str(error)
    assert "\\x1b[31m" in error.message
    assert "{{node n\\u202e}}" in error.message
    assert error.node_name == "n\u202e"


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("text", ["a \x1b[2J b", "plain"])
def test_tracebacks_show_no_text_that_a_terminal_obeys(tier: ps.Tier, text: str) -> None:
    """The Python error behind an error is shown, unless it quotes what must not be shown."""

    def fail(_x: object) -> object:
        raise ValueError(text)

    with custom_kernels("Quotes(x: float32) -> (y: float32)") as register:
        register("Quotes", fail)
        graph = sketch("x = Const() value=1.0\ny = Quotes(x)")
        with (
            pytest.raises(InvalidArgumentError) as caught,
            ps.Session(graph, config=ps.Config(tier=tier)) as session,
        ):
            session.run("y:0")
    shown = "".join(traceback.format_exception(caught.value))

    assert printable_lines(shown) == shown
    assert ("ValueError: plain" in shown) == (text == "plain")
