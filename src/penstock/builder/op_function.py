"""The Python function that calls an op.

In:   a spelling of the op's name.
Out:  a function with the op's signature and a docstring; the same one every time.
"""

from __future__ import annotations

import functools
import keyword
from collections.abc import Callable
from typing import Any, TypeAlias

from penstock.builder.graph import apply
from penstock.builder.hints import hint_for_op
from penstock.builder.signatures import docstring_of, signature_of
from penstock.builder.spelling import find_spelling, snake_case
from penstock.catalogue.registry import get_op, listed_ops

#: Takes what its signature says, returns what ``call.call`` does.
OpFunction: TypeAlias = Callable[..., Any]


def op_function(spelling: str) -> OpFunction:
    """The function of an op; raises AttributeError, with near names, if none is meant."""
    op = find_spelling(spelling)
    if op is None:
        raise AttributeError(f"there is no op '{spelling}'{hint_for_op(spelling)}")
    return _function_of(op)


def op_functions() -> list[str]:
    """The names of the functions of all ops that users call."""
    return [function_name(op) for op in listed_ops()]


def function_name(op: str) -> str:
    """The snake-case name of an op's function; with an underscore if Python keeps it for itself."""
    name = snake_case(op)
    return name + "_" if keyword.iskeyword(name) else name


@functools.cache
def _function_of(op: str) -> OpFunction:
    op_def = get_op(op)

    def function(*args: Any, **kwargs: Any) -> Any:
        return apply(op, *args, **kwargs)

    function.__name__ = function.__qualname__ = snake_case(op)
    function.__module__ = "penstock.builder.ops"
    function.__doc__ = docstring_of(op_def)
    function.__signature__ = signature_of(op_def)  # type: ignore[attr-defined]
    return function
