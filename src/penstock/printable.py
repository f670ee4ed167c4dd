"""Text of strangers, safe to show.

In:   names and other strings that come out of graphs and files.
Out:  the same with every character that a terminal would obey, or a reader could not see,
      written as an escape.
Not:  quotes nothing, cuts nothing, and knows no graph; it imports nothing of Penstock.

Escape sequences move the cursor, retitle windows and hide lines; bidirectional marks show a
name back to front; a line break in a name makes a second line of a log.  So what is not
printable in Unicode's sense (``str.isprintable``) is shown as Python would write it: ``\\x1b``,
``\\u202e``, ``\\n``.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """``text`` on one line, with nothing in it but printable characters and spaces."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def printable_lines(text: str) -> str:
    """The same for a text of several lines: line breaks and tabs stay as they are."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def _escaped(char: str) -> str:
    # Surrogates, which stand for bytes that are no UTF-8, have an escape as well.
    return char.encode("unicode_escape").decode("ascii")
