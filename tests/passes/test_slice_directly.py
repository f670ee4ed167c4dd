"""One slice by its number is taken by that, and is the same slice, or the same error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.passes.slice_directly import slice_directly
from support.drafts import after, draft, unchanged
from support.sketch import sketch

COLUMN = """
    x = Placeholder() dtype=float32
    i = Placeholder() dtype=int32
    w = Placeholder() dtype=float32
    zero = Const() value=0
    one = Const() value=1
    ones = Const() value=[1,1] dtype=int32
    next = AddV2(i, one)
    begin = Pack(zero, i)
    end = Pack(zero, next)
    y = StridedSlice(x, begin, end, ones) begin_mask=1 end_mask=1 shrink_axis_mask=2
    out = Neg(y)
"""
ROW = """
    x = Placeholder() dtype=float32
    i = Placeholder() dtype=int32
    one = Const() value=1
    ones = Const() value=[1] dtype=int32
    next = Add(one, i)
    begin = Pack(i)
    end = Pack(next)
    y = StridedSlice(x, begin, end, ones) shrink_axis_mask=1
    out = Neg(y)
"""
LAST = COLUMN.replace("begin_mask=1 end_mask=1", "ellipsis_mask=1")
#: Each with the index that it means, of a number.
FORMS: dict[str, tuple[str, Any]] = {
    "column": (COLUMN, lambda i: (slice(None), i)),
    "row": (ROW, lambda i: (i,)),
    "last axis": (LAST, lambda i: (..., i)),
}


@pytest.mark.parametrize(("form", "axis"), [("column", 1), ("row", 0), ("last axis", -1)])
def test_a_slice_reads_its_number(form: str, axis: int) -> None:
    """Nothing is packed, and nothing added up."""
    made = after(slice_directly, FORMS[form][0])
    assert [line for line in made if line.startswith("y = _SliceAt(x, i)")]
    rewritten = draft(FORMS[form][0])
    slice_directly(rewritten)
    assert rewritten.graph.node("y").attrs["axis"] == axis
    assert not any("Pack" in line or "next" in line for line in made)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("shrink_axis_mask=2", "shrink_axis_mask=0"),
        ("shrink_axis_mask=2", "shrink_axis_mask=3"),
        ("shrink_axis_mask=2", "shrink_axis_mask=2 new_axis_mask=1"),
        ("begin_mask=1", "begin_mask=0"),
        ("end_mask=1", "end_mask=0"),
        ("value=[1,1]", "value=[2,1]"),
        ("value=[1,1]", "value=[1,-1]"),
        ("value=[1,1]", "value=[1,0]"),
        ("value=[1,1]", "value=[1,1,1]"),
        ("begin = Pack(zero, i)", "begin = Pack(zero, i) axis=-1"),
        ("begin = Pack(zero, i)", "begin = Pack(i, i)"),
        ("begin = Pack(zero, i)", "begin = Pack(zero, i, zero)"),
        ("end = Pack(zero, next)", "end = Pack(next, next)"),
        ("end = Pack(zero, next)", "end = Pack(zero, next, zero)"),
        ("next = AddV2(i, one)", "next = Mul(i, one)"),
        ("next = AddV2(i, one)", "next = AddV2(i, i)"),
        ("Pack(zero, next)", "Concat(zero, ones)"),
    ],
)
def test_others_stay(old: str, new: str) -> None:
    """Parts, other strides and masks, and what else might have another shape or wait."""
    assert old in COLUMN
    assert unchanged(slice_directly, COLUMN.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("end, ones)", "end, ones, ^w)"),
        ("begin = Pack(zero, i)", "begin = Pack(zero, i, ^w)"),
        ("end = Pack(zero, next)", "end = Pack(zero, next, ^w)"),
        ("AddV2(i, one)", "AddV2(i, one, ^w)"),
        ("zero = Const()", "zero = Const(^w)"),
        ("one = Const()", "one = Const(^w)"),
        ("ones = Const()", "ones = Const(^w)"),
    ],
)
def test_what_is_passed_over_has_its_waits(old: str, new: str) -> None:
    """What is dead where that is dead stays so."""
    assert old in COLUMN
    made = after(slice_directly, COLUMN.replace(old, new))
    assert [line for line in made if line.startswith("y = _SliceAt(x, i, ^w)")]


def answer(text: str, feeds: dict[str, Any], *, optimised: bool) -> Any:
    """What a graph gives, or what is wrong; and the ops that ran."""
    options = ps.GraphOptions() if optimised else ps.GraphOptions.nothing()
    metadata = ps.RunMetadata()
    with ps.Session(sketch(text), config=ps.Config(graph_options=options)) as session:
        run = ps.RunOptions(output_partition_graphs=True)
        try:
            given = session.run("out:0", feeds, run, metadata)
        except ps.errors.OpError as error:
            return type(error), error.message
    ops = {node.op for part in metadata.partition_graphs for node in part.node}
    assert ("_SliceAt" in ops) is optimised
    return given.dtype, given.shape, given.tobytes()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", [0, 2, -1, -3])
def test_results_are_those_of_the_vectors(form: str, number: int) -> None:
    """From either end."""
    text, index = FORMS[form]
    x = np.arange(27, dtype=np.float32).reshape(3, 3, 3)
    feeds = {"x:0": x, "i:0": np.int32(number), **({"w:0": x} if "w =" in text else {})}
    got = answer(text, feeds, optimised=True)
    assert got == answer(text, feeds, optimised=False)
    assert got[2] == (-x[index(number)]).tobytes()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("shape", "number"), [((3, 3), 3), ((3, 3), -4), ((), 0), ((0, 0), 0), ((3, 3), [1])]
)
def test_errors_are_those_of_the_vectors(form: str, shape: tuple[int, ...], number: Any) -> None:
    """Numbers out of range, and what has no such axis; a vector is no number."""
    text, _ = FORMS[form]
    feeds = {"x:0": np.zeros(shape, np.float32), "i:0": np.asarray(number, np.int32)}
    feeds |= {"w:0": np.float32(0)} if "w =" in text else {}
    kind, message = answer(text, feeds, optimised=True)
    other, wanted = answer(text, feeds, optimised=False)
    assert kind is other
    if number != [1]:  # where the one is told of packed vectors
        assert message.replace("_SliceAt", "StridedSlice") == wanted
