"""What is behind a reference, when a kernel wants to know.

In:   references (variables of the TF1 years) and, for errors, the node they come from.
Out:  their values; FailedPreconditionError if there is none yet.
Not:  takes no lock: the value behind a reference is replaced, never written into.
"""

from __future__ import annotations

from typing import Any

from penstock.advice import InitializeIt
from penstock.core.values import Ref, Value
from penstock.errors import FailedPreconditionError, InvalidArgumentError


def read(ref: Any, source: str) -> Value:
    """The value behind a reference; what is no reference is its own value."""
    if not isinstance(ref, Ref):
        return ref
    if ref.value is None:
        raise _uninitialized(source)
    return ref.value


def initialized(ref: Any, source: str, slot: int = 0) -> Ref:
    """The reference itself; an error if there is nothing behind it, or if it is none."""
    if not isinstance(ref, Ref):
        raise InvalidArgumentError(f"{slot}-th input expects a ref type")
    if ref.value is None:
        raise _uninitialized(source)
    return ref


def _uninitialized(source: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"Attempting to use uninitialized value {source}",
        next_step=InitializeIt("variable", source),
    )
