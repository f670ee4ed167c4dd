"""Work that is counted, not timed.

A bytecode is one piece of work, and so is each element that a method of a list or a tuple looks
at.  What the operator ``in`` looks at is not seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

#: Methods that go through all of a list.
_WALKS: Final = frozenset({"copy", "count", "index", "insert", "remove", "reverse", "sort"})


@contextmanager
def counted_work() -> Iterator[list[int]]:
    """Counts what this thread does inside, in a list's only element."""
    work = [0]

    def traced(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        work[0] += event == "opcode"
        return traced

    def called(_frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and function.__name__ in _WALKS:
            owner = function.__self__
            if isinstance(owner, list | tuple):
                work[0] += len(owner)

    before = sys.gettrace(), sys.getprofile()
    sys.setprofile(called)
    sys.settrace(traced)
    try:
        yield work
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
