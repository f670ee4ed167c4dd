"""Errors on the wire: a code and a text, and back.

In:   an ``OpError``; or the code and text of one that another task sent.
Out:  the same, with the node that it is about.
Not:  knows no protocol: who sends it says where it stands.

Texts are short: what a transport's metadata may hold is limited, and TensorFlow's front end takes
seconds for long ones.
"""

from __future__ import annotations

import re
from typing import Final

from penstock import errors
from penstock.errors import Code, OpError, UnknownError, Where

#: Characters of a text; TensorFlow cuts its own at about as many.
MAX_TEXT: Final = 3000
#: What TensorFlow, too, puts before errors that only follow from others.
_DERIVED: Final = "[_Derived_]"
#: Our own line about the place, and TensorFlow's.
_PLACE: Final = re.compile(
    r"\s*(?:at\s+)?\[\[\{\{node (?P<node>[^{}]+)\}\}\]\]"
    r"(?: \((?P<op>\w+)\))?(?: on (?P<device>[^,]+))?"
    r"(?:, frame (?P<frame>[^,]+), iteration (?P<iteration>\d+))?"
    r"(?:, in function (?P<function>.+))?\s*"
)
_NEXT: Final = "  next  "
_CLASSES: Final[dict[int, type[OpError]]] = {
    int(cls.code): cls
    for cls in vars(errors).values()
    if isinstance(cls, type) and issubclass(cls, OpError) and cls is not OpError
}


def to_wire(error: OpError) -> tuple[int, str]:
    """The code and the text of an error."""
    mark = _DERIVED if error.derived else ""
    return int(error.code), shortened(mark + error.message)


def shortened(text: str) -> str:
    """A text of at most ``MAX_TEXT`` characters; its end, which says where, stays."""
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2
    return f"{text[:half]}… [truncated] …{text[-half:]}"


def from_wire(code: int, text: str, *, origin: str = "") -> OpError:
    """The error of a code and a text; of ``origin``, if that is not empty."""
    derived = text.startswith(_DERIVED)
    reason, *lines = text.removeprefix(_DERIVED).split("\n")
    where: Where | None = None
    next_step = ""
    details = [f"From {origin}:"] if origin else []
    for line in lines:
        place = _PLACE.fullmatch(line)
        if place is not None and where is None:
            where = _where(place)
        elif line.startswith(_NEXT):
            next_step = line.removeprefix(_NEXT)
        elif line.strip():
            details.append(line)
    cls = _CLASSES.get(code, UnknownError)
    return cls(reason, details=details, where=where, next_step=next_step, derived=derived)


def _where(found: re.Match[str]) -> Where:
    parts = found.groupdict(default="")
    return Where(
        parts["node"],
        parts["op"],
        parts["device"],
        parts["frame"],
        int(parts["iteration"] or 0),
        parts["function"],
    )


def is_lost(error: OpError) -> bool:
    """Whether an error says that a task went away, and with it what it knew."""
    return error.code in (Code.UNAVAILABLE, Code.ABORTED)
