"""Small pieces of HTML, for notebooks.

In:   texts of any origin, a model's names among them.
Out:  HTML in which they are text and nothing else.
Not:  has no style of its own: the notebook's is used.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final

from penstock.printable import printable

#: Rows of a table that are shown.
_ROWS: Final = 20
#: Letters of a cell that are shown.
_LETTERS: Final = 200


def as_text(value: Any) -> str:
    """A value as text; it ends no element, and commands nothing."""
    text = str(value)
    shown = text if len(text) <= _LETTERS else f"{text[:_LETTERS]}…"
    return html.escape(printable(shown))


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table with its title above it; nothing if there are no rows."""
    left = iter(rows)
    lines = [_row("td", row) for row in islice(left, _ROWS)]
    if not lines:
        return ""
    more = sum(1 for _ in left)
    if more:
        lines.append(_row("td", [f"… and {more:,} more"]))
    head = _row("th", header)
    return (
        f"<table><caption>{as_text(title)}</caption><thead>{head}</thead>"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def folded(title: str, *parts: str) -> str:
    """Parts that are seen when the title is clicked; nothing if there are none."""
    content = "".join(parts)
    return f"<details><summary>{as_text(title)}</summary>{content}</details>" if content else ""


def block(title: str, *parts: str) -> str:
    """Parts below a line in bold."""
    return f"<div><b>{as_text(title)}</b>{''.join(parts)}</div>"


def _row(cell: str, values: Sequence[Any]) -> str:
    return f"<tr>{''.join(f'<{cell}>{as_text(value)}</{cell}>' for value in values)}</tr>"
