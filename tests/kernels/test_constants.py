"""Kernels that remember what they read out of a constant."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from penstock.core.values import freeze
from penstock.kernels.api.constants import is_constant, remembering
from support.ops import make_op, run_op

MATRIX: Final = np.arange(12, dtype=np.float32).reshape(3, 4)
CUBE: Final = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

#: By op: which input says how, two values of it, inputs with None in its place, attributes.
CASES: Final[dict[str, tuple[int, Any, Any, list[Any], dict[str, Any]]]] = {
    "BroadcastTo": (1, np.array([2, 3, 4]), np.array([1, 3, 4]), [MATRIX, None], {}),
    "ConcatOffset": (
        1,
        [np.array([2, 3]), np.array([2, 3])],
        [np.array([2, 5]), np.array([2, 3])],
        [np.int32(1), None],
        {},
    ),
    "Fill": (0, np.array([2, 3]), np.array([4, 1]), [None, np.float32(7)], {}),
    "ExpandDims": (1, np.int32(0), np.int32(-1), [MATRIX, None], {}),
    "Max": (1, np.array([0]), np.array([1]), [MATRIX, None], {}),
    "Pad": (1, np.array([[0, 1], [2, 0]]), np.array([[1, 0], [0, 0]]), [MATRIX, None], {}),
    "Reshape": (1, np.array([4, 3]), np.array([-1, 6]), [MATRIX, None], {}),
    "Slice": (1, np.array([0, 1]), np.array([1, 0]), [MATRIX, None, np.array([2, 2])], {}),
    "Split": (0, np.int32(0), np.int32(1), [None, np.ones((2, 4))], {"num_split": 2}),
    "SplitV": (
        1,
        np.array([1, 3]),
        np.array([-1, 2]),
        [MATRIX, None, np.int32(1)],
        {"num_split": 2},
    ),
    "StridedSlice": (
        1,
        np.array([0]),
        np.array([2]),
        [MATRIX, None, np.array([3]), np.array([1])],
        {"shrink_axis_mask": 1},
    ),
    "Sum": (1, np.array([0, 1]), np.array([-1, 0]), [CUBE, None], {}),
    "Tile": (1, np.array([1, 2]), np.array([2, 1]), [MATRIX, None], {}),
    "Transpose": (1, np.array([1, 0]), np.array([0, 1]), [MATRIX, None], {}),
}


def _listed(outputs: Any) -> list[Any]:
    parts = outputs if isinstance(outputs, tuple) else (outputs,)
    return [(np.shape(part), np.asarray(part).tolist()) for part in parts]


def _inputs(op: str, how: Any) -> list[Any]:
    at, _, _, inputs, _ = CASES[op]
    return [how if i == at else given for i, given in enumerate(inputs)]


def _frozen(how: Any) -> Any:
    return [freeze(part) for part in how] if isinstance(how, list) else freeze(how)


def _flat(inputs: list[Any]) -> list[Any]:
    return [part for given in inputs for part in (given if isinstance(given, list) else [given])]


def _fresh(op: str, how: Any) -> list[Any]:
    """What a kernel answers that was never called before."""
    return _listed(run_op(op, *_inputs(op, how), **CASES[op][4]))


@pytest.mark.parametrize("op", CASES)
def test_another_constant_is_read_again(op: str) -> None:
    """Calls in turn with two constants answer what kernels for each of them answer."""
    _, first, second, _, attrs = CASES[op]
    kernel, _ = make_op(op, *_inputs(op, first), **attrs)
    hows = [_frozen(how) for how in (first, first, second, first, second, second)]

    answers = [_listed(kernel(*_flat(_inputs(op, how)))) for how in hows]

    assert answers == [_fresh(op, how) for how in hows]
    assert answers[1] != answers[2]


@pytest.mark.parametrize("op", [op for op, case in CASES.items() if np.ndim(case[1]) == 1])
def test_what_can_change_is_not_remembered(op: str) -> None:
    """An array that somebody may write into is read in every call."""
    _, first, second, _, attrs = CASES[op]
    kernel, _ = make_op(op, *_inputs(op, first), **attrs)
    how = np.array(first)

    before = _listed(kernel(*_inputs(op, how)))
    how[...] = second
    after = _listed(kernel(*_inputs(op, how)))

    assert (before, after) == (_fresh(op, first), _fresh(op, second))


def test_another_shape_under_the_same_axis() -> None:
    """What is remembered of an axis holds for the shape that it was met with."""
    kernel, (axis, _) = make_op("Split", np.int32(1), MATRIX, num_split=2)

    assert [part.shape for part in kernel(axis, MATRIX)] == [(3, 2)] * 2
    assert [part.shape for part in kernel(axis, CUBE[:, :2])] == [(2, 1, 4)] * 2


def _seen_as_constant(array: Any) -> Any:
    """A view of an array that nobody can write into, though its memory may change."""
    view = np.asarray(array)[...]
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("op", [op for op, case in CASES.items() if not isinstance(case[1], list)])
def test_the_constant_of_the_last_call_is_not_read_again(op: str) -> None:
    """Whoever changes a constant's memory behind its back is not noticed: nobody looks there."""
    _, first, second, _, attrs = CASES[op]
    kernel, _ = make_op(op, *_inputs(op, first), **attrs)
    memory = np.array(first)
    inputs = [_frozen(given) for given in _inputs(op, _seen_as_constant(memory))]

    before = _listed(kernel(*inputs))
    memory[...] = second
    after = _listed(kernel(*inputs))

    assert before == after == _fresh(op, first)


def test_a_reader_is_asked_once_about_a_constant() -> None:
    """As long as the same constant comes; one that is equal to it is another one."""
    asked: list[Any] = []
    read = remembering(lambda value: (asked.append(value), int(value))[1])
    one, other = np.int32(7), np.int32(7)

    assert [read(value) for value in (one, one, one, other, other, one)] == [7] * 6
    assert [id(value) for value in asked] == [id(one), id(other), id(one)]


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        (np.int32(3), True),
        (freeze(np.arange(3)), True),
        (np.arange(3), False),
        (_seen_as_constant(np.arange(3)), True),
        ([1, 2], False),
    ],
)
def test_constants_are_what_nobody_can_write_into(value: Any, is_one: bool) -> None:
    """Scalars, and arrays that are read-only."""
    assert is_constant(value) is is_one
