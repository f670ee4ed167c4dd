"""Building takes time in proportion to what is built.

What a further node, branch or loop costs is counted, not timed: the bytecodes that run while it is
made.  They must not be more in a graph that holds a hundred times as much already.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from support.counted_work import counted_work

#: What a construct makes of a tensor; what the next one is given.
Step = Callable[[Any], Any]

_FEW, _MANY = 5, 300
#: Tables are filled, and caches; so much more is no growth.
_ALLOWED = 1.25


def _unnamed(y: Any) -> Any:
    return ps.ops.add(y, y)


def _named(y: Any) -> Any:
    return ps.ops.neg(y, name="again")


def _scoped(y: Any) -> Any:
    with ps.name_scope("scope"):
        return y + 1.0


def _waiting(y: Any) -> Any:
    with ps.control_dependencies([y]):
        return ps.identity(y)


def _sized(y: Any) -> Any:
    return ps.ops.reshape(y, ps.ops.shape(y))


def _choice(y: Any) -> Any:
    return ps.cond(ps.ops.sum(y, 0) > 0.0, lambda: y * 2.0, lambda: -y)


def _loop(y: Any) -> Any:
    def body(i: Any, value: Any) -> Any:
        return i + 1, value * 2.0

    return ps.while_loop(lambda i, _: i < 3, body, [ps.constant(0), y])[1]


_STEPS: list[Step] = [_unnamed, _named, _scoped, _waiting, _sized, _choice, _loop]


@pytest.mark.parametrize("step", _STEPS)
def test_a_node_costs_the_same_in_a_large_graph(step: Step) -> None:
    """The next node, branch or loop takes as many bytecodes after 300 of its like as after 5."""
    assert _next_one(step, _MANY) <= _ALLOWED * _next_one(step, _FEW)


@pytest.mark.parametrize("step", _STEPS)
def test_a_node_costs_the_same_in_a_large_body(step: Step) -> None:
    """The same inside of the body of a loop that is still open."""
    counts = []

    def body(value: Any, length: int) -> Any:
        counts.append(_count(step, _chain(step, value, length)))
        return value

    for length in (_FEW, _MANY):
        with ps.Graph().as_default():
            once = functools.partial(body, length=length)
            ps.while_loop(lambda value: ps.ops.sum(value, 0) < 3.0, once, [_start()])
    few, many = counts
    assert many <= _ALLOWED * few


def test_a_node_costs_the_same_in_a_loop_of_many_variables() -> None:
    """Nor does a body's node ask after each variable of the loop."""
    counts = []

    def body(i: Any, *values: Any) -> Any:
        assert all(value.shape.dims is None for value in values)  # all have been looked at
        counts.append(_count(_unnamed, values[-1]))
        return i + 1, *values

    for length in (_FEW, _MANY):
        with ps.Graph().as_default():
            ps.while_loop(lambda i, *_: i < 3, body, [ps.constant(0), *[_start()] * length])
    few, many = counts
    assert many <= _ALLOWED * few


def test_shapes_are_inferred_once_however_they_are_asked_for() -> None:
    """Asking for the shapes of a row of loops, one node after the other, looks once at each."""
    counts = []
    for length in (20, 120):
        with ps.Graph().as_default() as graph:
            _chain(_loop, _start(), length)
        with ps.Graph().as_default() as read:
            ps.import_graph_def(graph.as_graph_def(), name="")
        with counted_work() as count:
            shapes = [tensor.shape for op in read.get_operations() for tensor in op.outputs]
        assert len(shapes) > 20 * length
        counts.append(count[0])
    few, many = counts
    assert many <= 6 * _ALLOWED * few


def _next_one(step: Step, length: int) -> int:
    """The bytecodes that a step takes after so many of its like."""
    with ps.Graph().as_default():
        return _count(step, _chain(step, _start(), length))


def _start() -> Any:
    return ps.placeholder("float32", [4])


def _chain(step: Step, y: Any, length: int) -> Any:
    for _ in range(length):
        y = step(y)
    return y


def _count(step: Step, y: Any) -> int:
    with counted_work() as count:
        step(y)
    return count[0]
