"""Tables fit the terminal, and no name in them is ever cut or broken."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner

from penstock.cli import main
from penstock.cli.layout import in_rows
from support.functions import graph_def_with

EXAMPLES = Path(__file__).parents[2] / "examples"
LONG = "model/" + "x" * 294
WIDE = "数字の認識"
WIDTHS = [20, 40, 80, 200]
ROWS = [
    ("images:0", "float32[?,8,8]", "Placeholder"),
    (f"{LONG}:0", "int32", "ArgMax"),
    (WIDE, "string", "function"),
]


def cells(text: str) -> int:
    """How many columns a terminal needs for a text: two for East Asian wide characters."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def at_width(monkeypatch: pytest.MonkeyPatch, width: int | None) -> Callable[..., str]:
    """What a command prints on a terminal of so many columns."""
    monkeypatch.setattr("penstock.cli.layout.width_of_terminal", lambda: width)

    def printed(*args: str) -> str:
        done = CliRunner().invoke(main, list(args), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    return printed


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_fit(width: int) -> None:
    """No line is wider than the terminal, but for names that are wider themselves."""
    lines = list(in_rows(ROWS, width))
    words = [word for row in ROWS for word in row]

    assert "".join(lines).split() == "".join(f"{word} " for word in words).split()
    for line in lines:
        assert cells(line) <= width or line.strip() in words


def test_words_stand_below_each_other() -> None:
    """A column begins in the same place in each row, wide characters or not."""
    assert list(in_rows([("a", "b"), (WIDE, "c"), ("long", "d")], 80)) == [
        "  a           b",
        f"  {WIDE}  c",
        "  long        d",
    ]


def test_a_long_name_has_a_line_of_its_own() -> None:
    """The rest of its row stands below it, in its columns."""
    assert list(in_rows([("x", "1", "a"), ("y" * 50, "2", "b")], 40)) == [
        "  x  1  a",
        "  " + "y" * 50,
        "     2  b",
    ]


def test_rows_are_stacked_where_nothing_else_fits() -> None:
    """Every row is its first word, with the others below."""
    assert list(in_rows(ROWS[:1], 20)) == ["  images:0", "    float32[?,8,8]", "    Placeholder"]
    assert list(in_rows([("Op", "1 node", "no kernel for T=float16")], 20)) == [
        "  Op",
        "    1 node",
        "    no kernel for",
        "    T=float16",
    ]


def test_long_lists_are_wrapped_between_words() -> None:
    """The last column of a row may take several lines."""
    assert list(in_rows([("Op", "T: one two three four five six")], 20)) == [
        "  Op  T: one two",
        "      three four",
        "      five six",
    ]


def test_a_pipe_has_one_line_per_row() -> None:
    """Programs read rows, however long they are."""
    assert [line.split() for line in in_rows(ROWS, None)] == [list(row) for row in ROWS]


@pytest.mark.parametrize("width", WIDTHS[1:])
def test_ops(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """The longest table there is fits, and has all that it has on a wide terminal."""
    text = at_width(monkeypatch, width)("ops")
    whole = at_width(monkeypatch, None)("ops")

    assert text.split() == whole.split()
    for line in text.splitlines():
        assert cells(line) <= width or len(line.split()) == 1, line


@pytest.mark.parametrize("width", WIDTHS[1:])
def test_show(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, width: int) -> None:
    """Names of three hundred characters and wide ones are shown in full."""
    graph = graph_def_with(
        f"{LONG} = Placeholder\ny = Neg({LONG})\nz = Rint[T=float32](y) @/device:CPU:0",
        "F(x: float32) -> (y: float32)\ny = Neg(x)\nreturn y = y",
    )
    graph.library.function[0].signature.name = WIDE
    path = tmp_path / "g.pb"
    path.write_bytes(graph.SerializeToString())
    monkeypatch.chdir(tmp_path)
    text = at_width(monkeypatch, width)("show", "g.pb")

    assert f"  {LONG}:0\n" in text
    assert f"  {WIDE}(x) -> (y)" in text
    for line in text.splitlines()[1:]:
        is_heading = not line.startswith(" ")
        assert cells(line) <= width or is_heading or len(line.split()) == 1, line


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_real_terminal() -> None:
    """The width is that of the terminal, and headings stand out."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    command = [sys.executable, "-m", "penstock", "show", str(EXAMPLES / "digits_rnn.pb")]
    env = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    with subprocess.Popen(command, stdout=theirs, env=env):
        os.close(theirs)
        with open(ours, "rb", closefd=True) as terminal:
            lines = list(_lines(terminal))

    assert "\x1b[1minputs\x1b[0m" in lines
    assert "  images:0" in lines
    assert "    float32[?,8,8]" in lines
    assert max(len(line) for line in lines if line.startswith(" ")) <= 30


def _lines(terminal: IO[bytes]) -> Iterator[str]:
    try:
        for line in terminal:
            yield line.decode().rstrip()
    except OSError:  # Linux says so when nobody is left to write
        return
