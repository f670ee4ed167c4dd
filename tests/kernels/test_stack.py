"""Stacks: last in, first out, within one step."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import Session, errors
from support.sketch import sketch

GRAPH = """
    size = Placeholder() dtype=int32
    a = Const() value=[1.0]
    b = Const() value=2.0
    stack = StackV2(size) elem_type=float32
    push = StackPushV2(stack, a)
    push2 = StackPushV2(stack, b, ^push)
    pop = StackPopV2(stack, ^push2) elem_type=float32
    pop2 = StackPopV2(stack, ^pop) elem_type=float32
    pop3 = StackPopV2(stack, ^pop2) elem_type=float32
    as_int = StackPopV2(stack, ^push) elem_type=int32
    close = StackCloseV2(stack)
    late = StackPushV2(stack, a, ^close)
    n = Const() value=1
    wrong = StackPushV2(stack, n)
"""


def run(fetch: object, size: int = -1) -> object:
    """Run the graph above with a stack of that size."""
    return Session(sketch(GRAPH)).run(fetch, {"size:0": np.int32(size)})


def test_values_come_back_in_reverse() -> None:
    """The last value pushed is the first one popped, whatever its shape."""
    first, second = run(["pop:0", "pop2:0"])  # type: ignore[misc]

    assert first == 2
    assert second.tolist() == [1]


@pytest.mark.parametrize(
    ("fetch", "size", "text"),
    [
        ("pop3:0", -1, "is empty when calling Pop"),
        ("push2:0", 1, "overflowed its max_size \\(1\\)"),
        ("push:0", 0, "overflowed its max_size \\(0\\)"),
        ("late:0", -1, "has already been closed"),
        ("wrong:0", -1, "Must have type 1 but got 3"),
    ],
)
def test_misuse_is_refused(fetch: str, size: int, text: str) -> None:
    """Each misuse has TensorFlow's message."""
    with pytest.raises(errors.InvalidArgumentError, match=text):
        run(fetch, size)


def test_popping_another_type_is_an_internal_error() -> None:
    """The type of the output is a promise that the stack cannot keep."""
    with pytest.raises(errors.InternalError, match="does not match declared output type int32"):
        run("as_int:0")
