"""Sets; expected values follow from the definition of a set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from support.ops import run_op

LEFT = np.array([[3, 1, 3], [5, 6, 7]], np.int32)
RIGHT = np.array([[1, 2], [7, 7]], np.int32)


@pytest.mark.parametrize(
    ("operation", "rows"),
    [
        ("a-b", [[3], [5, 6]]),
        ("b-a", [[2], []]),
        ("intersection", [[1], [7]]),
        ("union", [[1, 2, 3], [5, 6, 7]]),
    ],
)
def test_operation(operation: str, rows: list[list[int]]) -> None:
    """The elements of each row's result, in ascending order and once each."""
    indices, values, shape = run_op(
        "DenseToDenseSetOperation", LEFT, RIGHT, set_operation=operation
    )
    places = [[at, number] for at, row in enumerate(rows) for number in range(len(row))]
    assert indices.tolist() == places
    assert values.tolist() == [value for row in rows for value in row]
    assert shape.tolist() == [2, max(map(len, rows))]


def test_size_counts_an_element_once() -> None:
    """The size of a set is the number of its different elements."""
    indices = np.array([[0, 0], [0, 1], [2, 0]], np.int64)
    sizes = run_op("SetSize", indices, np.array([7, 7, 1]), np.array([3, 2], np.int64))
    assert sizes.dtype == np.int32
    assert sizes.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("left", "operation", "message"),
    [
        (LEFT[:1], "union", "Mismatched group shapes"),
        (LEFT, "xor", "Invalid set_operation xor"),
        (LEFT[0], "union", "at least 2 dimensions"),
    ],
)
def test_refused(left: Any, operation: str, message: str) -> None:
    """Groups must agree, and the operation must be one."""
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run_op("DenseToDenseSetOperation", left, RIGHT, set_operation=operation)
