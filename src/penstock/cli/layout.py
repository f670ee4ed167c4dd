"""Text in columns that suit the terminal.

In:   rows of words, or many short items.
Out:  lines, in which nothing of a graph's own text is obeyed by the terminal.
Not:  never cuts a name: what is too long for the terminal is wrapped by it.
"""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Sequence
from typing import Final

import click

from penstock.printable import printable

#: Columns of what is no terminal: a file or a pipe.
_PIPE_COLUMNS: Final = 100
_GAP: Final = "  "


def columns() -> int:
    """How many characters stand in one line."""
    if not sys.stdout.isatty():
        return _PIPE_COLUMNS
    return max(20, shutil.get_terminal_size().columns)


def heading(text: str) -> None:
    """Print the name of a section."""
    click.echo()
    click.echo(click.style(text, bold=True))


def print_rows(rows: Sequence[Sequence[str]], limit: int = 50) -> None:
    """Print rows with their words one below the other; say how many there are more."""
    shown = [[printable(word) for word in row] for row in rows[:limit]]
    widths = [max(map(len, words)) for words in itertools.zip_longest(*shown, fillvalue="")]
    for row in shown:
        padded = (word.ljust(width) for word, width in zip(row, widths, strict=False))
        click.echo((_GAP + _GAP.join(padded)).rstrip())
    if len(rows) > limit:
        click.echo(f"{_GAP}… and {len(rows) - limit} more")


def print_items(items: Sequence[str]) -> None:
    """Print short items in as many columns as fit, ordered downwards."""
    if not items:
        return
    items = [printable(item) for item in items]
    width = max(map(len, items)) + len(_GAP)
    across = max(1, (columns() - len(_GAP)) // width)
    down = -(-len(items) // across)
    for start in range(down):
        line = "".join(item.ljust(width) for item in items[start::down])
        click.echo(_GAP + line.rstrip())


def counted(count: int, noun: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
