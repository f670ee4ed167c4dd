"""Patterns of RE2 that keep no more groups than somebody asks for.

In:   a pattern that RE2 takes, and the number of the last group that is wanted.
Out:  a pattern that matches the same, whose later groups only group.
Not:  registers no kernel; judges no pattern, and compiles none.

RE2 finds what each group matched at a cost that grows with the square of their number, and its
Python binding asks for all of them.
"""

from __future__ import annotations

import re
from typing import Final

#: What begins a group that is kept is the only part of a pattern that is of interest: a quoted
#: text, an escaped byte, a set of characters and a group that is not kept are stepped over.
_PARTS: Final = re.compile(
    rb"""
      \\Q .*? (?: \\E | \Z )
    | \\ .
    | \[ \^? \]? (?: \[: [^\]]* :\] | \\ . | [^\]\\] )* \]
    | (?P<named> \( \? P? < [^>=!]+ > )
    | \( \?
    | (?P<group> \( )
    """,
    re.DOTALL | re.VERBOSE,
)


def keep_groups(pattern: bytes, last: int) -> tuple[bytes, int]:
    """The pattern with only its first ``last`` groups; and how many it had, as far as this sees."""
    count = 0

    def plain(part: re.Match[bytes]) -> bytes:
        nonlocal count
        if part["named"] is None and part["group"] is None:
            return part[0]
        count += 1
        return part[0] if count <= last else b"(?:"

    return _PARTS.sub(plain, pattern), count
