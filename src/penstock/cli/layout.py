"""Text in columns that suit the terminal.

In:   rows of words, or many short items.
Out:  lines, in which nothing of a graph's own text is obeyed by the terminal.
Not:  never cuts a name, and never puts a line break into one: a name that is too long for its
      column gets a line of its own, and what is longer than the terminal is wrapped by it, so
      that it can be copied as it is.

A file or a pipe has no width: there, each row is one line, whatever its length.
"""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Final

import click
from rich.cells import cell_len

from penstock.printable import printable

#: Columns of what is no terminal, for what is not in rows.
_PIPE_COLUMNS: Final = 100
#: The narrowest terminal that text is fitted into.
_NARROWEST: Final = 20
_GAP: Final = "  "


def columns() -> int:
    """How many characters stand in one line."""
    return width_of_terminal() or _PIPE_COLUMNS


def width_of_terminal() -> int | None:
    """The same, or None if stdout is no terminal."""
    if not sys.stdout.isatty():
        return None
    return max(_NARROWEST, shutil.get_terminal_size().columns)


def heading(text: str) -> None:
    """Print the name of a section."""
    click.echo()
    click.echo(click.style(text, bold=True))


def print_rows(rows: Sequence[Sequence[str]], limit: int = 50) -> None:
    """Print rows with their words one below the other; say how many there are more."""
    for line in in_rows(rows[:limit], width_of_terminal()):
        click.echo(line)
    if len(rows) > limit:
        click.echo(f"{_GAP}… and {len(rows) - limit} more")


def in_rows(rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """Rows with their words one below the other, in ``width`` columns if that can be.

    If not, long words of the first column get lines of their own, and the last column is
    wrapped; if that is not enough either, every row becomes a word with lines below it.
    """
    rows = [[printable(word) for word in row] for row in rows]
    sizes = [max(map(cell_len, words)) for words in itertools.zip_longest(*rows, fillvalue="")]
    if width is not None and sum(sizes) + len(_GAP) * len(sizes) > width:
        sizes = _narrowed(sizes, rows, width)
    for row in rows:
        yield from _aligned(row, sizes, width) if sizes else _stacked(row, width or 0)


def _narrowed(sizes: Sequence[int], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Sizes with a narrower first column, so that rows fit; none if they cannot."""
    if len(sizes) == 1:
        return [*sizes]
    lasts = [word for row in rows if len(row) == len(sizes) for word in row[-1].split()]
    taken = sum(sizes[1:-1]) + max(map(cell_len, lasts), default=0) + len(_GAP) * len(sizes)
    # Half a line for names leaves the other half for what is said about them.
    room = min(width - taken, width // 2)
    fitting = [size for row in rows if (size := cell_len(row[0])) <= room]
    return [max(fitting), *sizes[1:]] if fitting else []


def _aligned(row: Sequence[str], sizes: Sequence[int], width: int | None) -> Iterator[str]:
    """A row in columns of these sizes, perhaps over several lines."""
    *words, last = row
    if words and cell_len(words[0]) > sizes[0]:
        yield _GAP + words[0]
        words[0] = ""
    head = _GAP + "".join(
        _padded(word, size) + _GAP for word, size in zip(words, sizes, strict=False)
    )
    for line in _wrapped(last.split(" "), " ", None if width is None else width - cell_len(head)):
        yield (head + line).rstrip()
        head = " " * cell_len(head)


def _stacked(row: Sequence[str], width: int) -> Iterator[str]:
    """A row as its first word, and the others below it."""
    first, *words = row
    yield _GAP + first
    *cells, last = words
    inner = width - 2 * len(_GAP)
    for cell in _wrapped(cells, _GAP, inner):
        yield _GAP + _GAP + cell
    for line in _wrapped(last.split(" "), " ", inner):
        yield _GAP + _GAP + line


def _padded(word: str, size: int) -> str:
    return word + " " * (size - cell_len(word))


def _wrapped(words: Sequence[str], gap: str, width: int | None) -> Iterator[str]:
    """Lines of whole words; one that is too long has a line of its own."""
    if not words:
        return
    line, *rest = words
    for word in rest:
        if width is None or cell_len(line) + len(gap) + cell_len(word) <= width:
            line += gap + word
        else:
            yield line
            line = word
    yield line


def print_items(items: Sequence[str]) -> None:
    """Print short items in as many columns as fit, ordered downwards."""
    if not items:
        return
    items = [printable(item) for item in items]
    width = max(map(cell_len, items)) + len(_GAP)
    across = max(1, (columns() - len(_GAP)) // width)
    down = -(-len(items) // across)
    for start in range(down):
        line = "".join(_padded(item, width) for item in items[start::down])
        click.echo(_GAP + line.rstrip())


def counted(count: int, noun: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
