"""Rows and slices of variables, read and changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import Session, errors
from penstock.core.dtypes import as_dtype
from support.sketch import sketch

ROWS = [[1, 2], [3, 4], [5, 6]]
NAN = float("nan")


def changed(
    op: str, value: Any, indices: Any, updates: Any, dtype: str = "float32", policy: str = ""
) -> Any:
    """The variable after the op; both kinds of variables must agree."""
    extra = f'bad_indices_policy="{policy}"' if policy else ""
    session = Session(
        sketch(f"""
            x = Placeholder() dtype={dtype}
            i = Placeholder() dtype=int32
            u = Placeholder() dtype={dtype}
            v = VariableV2() dtype={dtype} shape=[]
            init = Assign(v, x) validate_shape=False
            change = {op}(v, i, u) {extra}
            h = VarHandleOp() dtype={dtype} shape=[]
            init_resource = AssignVariableOp(h, x)
            change_resource = Resource{op}(h, i, u) {extra}
            read = ReadVariableOp(h) dtype={dtype}
        """)
    )
    kind = as_dtype(dtype).numpy
    feeds = {"x:0": np.array(value, kind)}
    session.run(["init:0", "init_resource"], feeds)
    feeds = {"i:0": np.array(indices, np.int32), "u:0": np.array(updates, kind)}
    result = session.run("change:0", feeds)
    session.run("change_resource", feeds)
    np.testing.assert_array_equal(session.run("read:0"), result)
    return result.tolist()


@pytest.mark.parametrize(
    ("op", "indices", "updates", "expected"),
    [
        ("ScatterAdd", [0, 0], [[1, 1], [1, 1]], [[3, 4], [3, 4], [5, 6]]),
        ("ScatterAdd", 1, [1, 1], [[1, 2], [4, 5], [5, 6]]),
        ("ScatterAdd", [0, 1], 10, [[11, 12], [13, 14], [5, 6]]),
        ("ScatterAdd", [[0, 1]], [[[1, 1], [2, 2]]], [[2, 3], [5, 6], [5, 6]]),
        ("ScatterAdd", [], np.zeros((0, 2)), ROWS),
        ("ScatterSub", [0, 0], [[1, 1], [1, 1]], [[-1, 0], [3, 4], [5, 6]]),
        ("ScatterMul", [0, 0], [[3, 3], [3, 3]], [[9, 18], [3, 4], [5, 6]]),
        ("ScatterDiv", [0, 0], [[2, 2], [2, 4]], [[0.25, 0.25], [3, 4], [5, 6]]),
        ("ScatterMin", [0, 2], [[0, 9], [9, 0]], [[0, 2], [3, 4], [5, 0]]),
        ("ScatterMax", [0, 2], [[0, 9], [9, 0]], [[1, 9], [3, 4], [9, 6]]),
        ("ScatterUpdate", [0, 0], [[7, 7], [8, 8]], [[8, 8], [3, 4], [5, 6]]),
        ("ScatterUpdate", [0, 1], 10, [[10, 10], [10, 10], [5, 6]]),
    ],
)
def test_rows_change_one_after_the_other(
    op: str, indices: Any, updates: Any, expected: Any
) -> None:
    """Of several updates of one row all count, or the last; a scalar goes to all rows."""
    assert changed(op, ROWS, indices, updates) == expected


@pytest.mark.parametrize("op", ["ScatterMin", "ScatterMax"])
def test_updates_that_are_no_numbers_change_nothing(op: str) -> None:
    """NaN in the variable stays, NaN as an update does nothing."""
    result = changed(op, [1, NAN, 3], [0, 1, 2], [NAN, 2, NAN])

    assert result[0] == 1
    assert np.isnan(result[1])
    assert result[2] == 3


def test_integers_are_divided_towards_zero() -> None:
    """As in C, and unlike in Python."""
    assert changed("ScatterDiv", [-7, 7, 3], [0, 1], 2, "int32") == [-3, 3, 3]


def test_text_and_truth_values_can_be_replaced() -> None:
    """Replacing takes every type of elements."""
    assert changed("ScatterUpdate", [b"a", b"b"], [1], [b"c"], "string") == [b"a", b"c"]
    assert changed("ScatterUpdate", [True, False], [1], [True], "bool") == [True, True]
    assert changed("ScatterNdUpdate", [b"a", b"b"], [[1]], [b"c"], "string") == [b"a", b"c"]


@pytest.mark.parametrize(
    ("value", "indices", "updates", "message"),
    [
        (ROWS, [3], [[1, 1]], r"indices\[0\] = 3 is not in \[0, 3\)"),
        (ROWS, [[0, -1]], 7, r"indices\[0,1\] = -1 is not in \[0, 3\)"),
        (ROWS, 9, 7, r"indices = 9 is not in \[0, 3\)"),
        (ROWS, [0, 1], [10], r"Must have updates.shape = .* updates.shape \[1\], indices.shape"),
        (ROWS, [0, 1], [[1, 1]], r"Must have updates.shape"),
        (5, [0], [1], r"params must be at least 1-D, got shape \[\]"),
    ],
)
def test_rows_that_are_not_there_are_refused(
    value: Any, indices: Any, updates: Any, message: str
) -> None:
    """The first index outside, or the shapes that do not fit, are named."""
    with pytest.raises(errors.InvalidArgumentError, match=message):
        changed("ScatterAdd", value, indices, updates)


def test_integers_are_not_divided_by_zero() -> None:
    """Floats may be, in reference variables; there the result is infinite."""
    with pytest.raises(errors.InvalidArgumentError, match="updates must not contain 0"):
        changed("ScatterDiv", [1, 2], [0], [0], "int32")
    with pytest.raises(errors.InvalidArgumentError, match="updates must not contain 0"):
        changed("ScatterDiv", [1, 2], [0], [0])  # the resource variable's


@pytest.mark.parametrize(
    ("op", "indices", "updates", "expected"),
    [
        ("ScatterNdUpdate", [[0], [0]], [[1, 1], [1, 2]], [[1, 2], [3, 4], [5, 6]]),
        ("ScatterNdUpdate", [[0, 1], [2, 0]], [7, 8], [[1, 7], [3, 4], [8, 6]]),
        ("ScatterNdUpdate", [0], [[9, 9]], [[9, 9], [3, 4], [5, 6]]),
        ("ScatterNdUpdate", [[[0]], [[2]]], [[[1, 1]], [[9, 9]]], [[1, 1], [3, 4], [9, 9]]),
        ("ScatterNdUpdate", np.zeros((0, 1)), np.zeros((0, 2)), ROWS),
        ("ScatterNdAdd", [[0], [0]], [[1, 1], [1, 2]], [[3, 5], [3, 4], [5, 6]]),
        ("ScatterNdSub", [[0], [0]], [[1, 1], [1, 2]], [[-1, -1], [3, 4], [5, 6]]),
        ("ScatterNdMin", [[0], [0]], [[-1, NAN], [1, 2]], [[-1, 2], [3, 4], [5, 6]]),
        ("ScatterNdMax", [[1]], [[9, NAN]], [[1, 2], [9, 4], [5, 6]]),
    ],
)
def test_elements_change_one_after_the_other(
    op: str, indices: Any, updates: Any, expected: Any
) -> None:
    """An index of fewer dimensions means a slice; a vector lists rows."""
    assert changed(op, ROWS, indices, updates) == expected


@pytest.mark.parametrize(
    ("value", "indices", "updates", "message"),
    [
        (ROWS, [[3]], [[1, 1]], r"indices\[0\] = \[3\] does not index into shape \[3,2\]"),
        (ROWS, [[0, 5]], [1], r"indices\[0\] = \[0, 5\] does not index into shape \[3,2\]"),
        (ROWS, [[0]], [1], r"Dimensions \[1,2\) of input\[shape=\[3,2\]\] must match"),
        (5, [[0]], [1], r"Output must be at least 1-D, got shape: \[\]"),
        (np.zeros((0, 2)), [[0]], [[1, 1]], "Indices and updates specified for empty output"),
    ],
)
def test_elements_that_are_not_there_are_refused(
    value: Any, indices: Any, updates: Any, message: str
) -> None:
    """The first index outside, or the shapes that do not fit, are named."""
    with pytest.raises(errors.InvalidArgumentError, match=message):
        changed("ScatterNdUpdate", value, indices, updates)


def test_indices_outside_may_be_ignored() -> None:
    """If the node says so, what fits is changed, and the rest is left out."""
    result = changed("ScatterNdUpdate", ROWS, [[3], [0]], [[1, 1], [9, 9]], policy="IGNORE")

    assert result == [[9, 9], [3, 4], [5, 6]]


# -- reading ---------------------------------------------------------------------------------


def gathered(op: str, indices: Any, *, attrs: str = "", value: Any = ROWS) -> Any:
    """What the op reads from a variable."""
    session = Session(
        sketch(f"""
            x = Placeholder() dtype=float32
            i = Placeholder() dtype=int32
            h = VarHandleOp() dtype=float32 shape=[]
            init = AssignVariableOp(h, x)
            read = {op}(h, i) dtype=float32 {attrs}
        """)
    )
    index = {"i:0": np.array(indices, np.int32)}
    with pytest.raises(errors.NotFoundError, match="localhost/h/Var does not exist"):
        session.run("read:0", index)
    session.run("init", {"x:0": np.array(value, np.float32)})
    return session.run("read:0", index).tolist()


def test_rows_are_gathered() -> None:
    """By number, or by number within each part of a batch."""
    assert gathered("ResourceGather", [0, 2]) == [[1, 2], [5, 6]]
    assert gathered("ResourceGather", 1) == [3, 4]
    assert gathered("ResourceGather", []) == []
    batched = gathered("ResourceGather", [[0], [1], [1]], attrs="batch_dims=1")
    assert batched == [[1], [4], [6]]
    with pytest.raises(errors.InvalidArgumentError, match=r"indices\[0\] = 3 is not in \[0, 3\)"):
        gathered("ResourceGather", [3])
    with pytest.raises(errors.InvalidArgumentError, match="params must be at least 1 dim"):
        gathered("ResourceGather", [0], value=5)


def test_elements_are_gathered() -> None:
    """By index along the first few dimensions."""
    assert gathered("ResourceGatherNd", [[0, 1]]) == [2]
    assert gathered("ResourceGatherNd", [[2], [0]]) == [[5, 6], [1, 2]]
    with pytest.raises(errors.InvalidArgumentError, match=r"= \[3, 1\] does not index into"):
        gathered("ResourceGatherNd", [[3, 1]])


# -- slices ----------------------------------------------------------------------------------


def sliced(new: Any) -> Any:
    """The variable after its rows 1 and 2 were replaced; both kinds must agree."""
    session = Session(
        sketch("""
            rows = Const() value=[[1.0,2.0],[3.0,4.0],[5.0,6.0]]
            begin = Const() value=[1]
            end = Const() value=[3]
            step = Const() value=[1]
            u = Placeholder() dtype=float32
            v = VariableV2() dtype=float32 shape=[3,2]
            init = Assign(v, rows)
            change = StridedSliceAssign(v, begin, end, step, u)
            h = VarHandleOp() dtype=float32 shape=[3,2]
            init_resource = AssignVariableOp(h, rows)
            change_resource = ResourceStridedSliceAssign(h, begin, end, step, u)
            read = ReadVariableOp(h) dtype=float32
        """)
    )
    session.run(["init:0", "init_resource"])
    feeds = {"u:0": np.array(new, np.float32)}
    result = session.run("change:0", feeds)
    session.run("change_resource", feeds)
    np.testing.assert_array_equal(session.run("read:0"), result)
    return result.tolist()


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ([[1, 2], [3, 4]], [[1, 2], [1, 2], [3, 4]]),
        (7, [[1, 2], [7, 7], [7, 7]]),
        ([[0, 9]], [[1, 2], [0, 9], [0, 9]]),
    ],
)
def test_slices_are_replaced(new: Any, expected: Any) -> None:
    """What is smaller than the slice is repeated."""
    assert sliced(new) == expected


def test_slice_must_have_room() -> None:
    """What is larger than the slice does not fit."""
    with pytest.raises(
        errors.InvalidArgumentError,
        match=r"Cannot broadcast input shape \[3,2\] into final shape \[2,2\]",
    ):
        sliced(ROWS)
