"""What came of the steps of a graph, and whether two accounts of it agree.

In:   outcomes: values, or failures, one per step.
Out:  in words how they differ; nothing if they do not.
Not:  knows not which of two is right, nor who made them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

#: The code of a step that has met its deadline.
DEADLINE: Final = "DEADLINE_EXCEEDED"


@dataclass(frozen=True, slots=True)
class Values:
    """A step that came to its end."""

    arrays: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A step, or a session, that did not."""

    #: The canonical code; the exception's type in brackets if it has none.
    code: str
    #: The node that failed; empty if none did.
    node: str = field(compare=False)
    message: str = field(compare=False)

    @property
    def is_answer(self) -> bool:
        """Whether it is what a bad graph may expect, rather than a mistake of ours."""
        return not self.code.startswith("(") and "please report" not in self.message


Outcome: TypeAlias = "Values | Failure"


def ending(found: Sequence[Outcome]) -> str:
    """How the last step ended: a code, or OK."""
    return code_of(found[-1]) if found else "OK"


def culprit(found: Sequence[Outcome]) -> str:
    """The node that failed; empty if none did."""
    last = found[-1] if found else None
    return last.node if isinstance(last, Failure) else ""


def code_of(outcome: Outcome) -> str:
    """How a step ended: a code, or OK."""
    return outcome.code if isinstance(outcome, Failure) else "OK"


def difference(meant: Sequence[Outcome], found: Sequence[Outcome], tolerance: float) -> str:
    """How the steps of a graph differ from what they should be; empty if they do not."""
    for number, (want, got) in enumerate(zip(meant, found, strict=False)):
        reason = _step_difference(want, got, tolerance)
        if reason:
            return f"step {number}: {reason}"
    return "" if len(meant) == len(found) else f"{len(found)} steps of {len(meant)}"


def _step_difference(want: Outcome, got: Outcome, tolerance: float) -> str:
    if isinstance(want, Values) and isinstance(got, Values):
        for slot, (a, b) in enumerate(zip(want.arrays, got.arrays, strict=True)):
            if not same(a, b, tolerance):
                return f"fetch {slot} is {short(b)} instead of {short(a)}"
        return ""
    if code_of(want) == code_of(got):
        return ""
    message = got.message if isinstance(got, Failure) else ""
    return f"{code_of(got)} instead of {code_of(want)} {message}"


def same(a: Any, b: Any, tolerance: float = 0.0) -> bool:
    """Whether two arrays are equal: bit for bit, but for NaN, unless there is a tolerance."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype == object:
        return all(_same_object(x, y) for x, y in zip(a.flat, b.flat, strict=True))
    if a.dtype.kind not in "fcV" or a.dtype.names:
        return a.tobytes() == b.tobytes()
    if a.dtype.kind == "V":  # the small floats of ml_dtypes
        a, b = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(all="ignore"):
        equal = ((a == b) & _same_signs(a, b)) | ((a != a) & (b != b))
        if tolerance:
            equal |= np.abs(a - b) <= tolerance * np.maximum(np.abs(a), 1.0)
    return bool(np.all(equal))


def _same_signs(a: Any, b: Any) -> Any:
    """Of zeros, too."""
    parts = [(a.real, b.real), (a.imag, b.imag)] if a.dtype.kind == "c" else [(a, b)]
    return np.logical_and.reduce([np.signbit(x) == np.signbit(y) for x, y in parts])


def _same_object(x: object, y: object) -> bool:
    """Texts by what they say; handles and the like by their kind."""
    return x == y if isinstance(x, bytes) else type(x) is type(y)


def short(array: Any) -> str:
    """An array for people."""
    shown = np.array2string(array, threshold=8, edgeitems=2).replace("\n", " ")
    return f"{array.dtype}{list(array.shape)} {shown[:100]}"
