"""Maps and optionals: variants that hold tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from support.ops import run_op

F = dtypes.float32
F32 = np.float32
I32 = np.int32


def insert(handle: Any, key: Any, value: Any) -> Any:
    """A map with one more entry."""
    return run_op("TensorMapInsert", handle, key, value)


def lookup(handle: Any, key: Any, dtype: Any = F) -> Any:
    """The value under a key."""
    return run_op("TensorMapLookup", handle, key, value_dtype=dtype)


def has(handle: Any, key: Any) -> Any:
    """Whether there is a key."""
    return run_op("TensorMapHasKey", handle, key)


def erase(handle: Any, key: Any) -> Any:
    """A map with one entry less."""
    return run_op("TensorMapErase", handle, key, value_dtype=F)


def keys(handle: Any, dtype: Any = dtypes.int32) -> Any:
    """All keys."""
    return run_op("TensorMapStackKeys", handle, key_dtype=dtype)


EMPTY = run_op("EmptyTensorMap")
ONE = insert(EMPTY, I32(5), F32(3))


def test_a_changed_map_leaves_the_old_one_as_it_was() -> None:
    """Inserting and erasing make new maps."""
    more, less = insert(ONE, I32(6), F32(4)), erase(ONE, I32(5))

    assert [run_op("TensorMapSize", x) for x in (more, ONE, less)] == [2, 1, 0]
    assert lookup(insert(ONE, I32(5), F32(9)), I32(5)) == 9
    assert lookup(ONE, I32(5)) == 3


@pytest.mark.parametrize(
    ("key", "other", "expected"),
    [
        (I32(1), np.int64(1), False),
        (F32("nan"), F32("nan"), True),
        (F32(-0.0), F32(0.0), False),
        (np.array([1, 2], I32), np.array([[1, 2]], I32), False),
        (np.array([1, 2], I32), np.array([1, 2], I32), True),
        (b"a", b"a", True),
    ],
)
def test_keys_are_told_apart_by_type_shape_and_bytes(key: Any, other: Any, expected: bool) -> None:
    """Equal numbers of another type, shape or sign are other keys."""
    assert has(insert(EMPTY, key, F32(1)), other) == expected


def test_sums_of_maps_have_all_keys_and_zeros_have_none() -> None:
    """Values under the same key are added; the zero of maps is the empty one."""
    added = run_op("AddN", [ONE, insert(insert(EMPTY, I32(5), F32(4)), I32(6), F32(1))])

    assert keys(added).tolist() == [5, 6]
    assert (lookup(added, I32(5)), lookup(added, I32(6))) == (7, 1)
    assert run_op("TensorMapSize", run_op("ZerosLike", ONE)) == 0


def none() -> Any:
    """An optional without a value."""
    return run_op("OptionalNone")


def some(*values: Any) -> Any:
    """An optional with values."""
    return run_op("OptionalFromValue", list(values))


def values(optional: Any, types: Any = (F,), shapes: Any = ((),)) -> Any:
    """What an optional holds."""
    declared = tuple(map(TensorShape, shapes))
    return run_op("OptionalGetValue", optional, output_types=types, output_shapes=declared)


def test_optionals_hold_what_they_were_given_or_nothing() -> None:
    """Values come back as they are; sums and zeros are made value by value."""
    assert values(some(F32(1))) == (1,)
    assert [run_op("OptionalHasValue", x) for x in (some(F32(1)), none())] == [True, False]
    assert values(run_op("AddN", [some(F32(1)), some(F32(2))])) == (3,)
    assert values(run_op("ZerosLike", some(F32(1)))) == (0,)
    assert not run_op("OptionalHasValue", run_op("ZerosLike", none()))
    assert not run_op("OptionalHasValue", run_op("AddN", [none(), none()]))


@pytest.mark.parametrize(
    ("misuse", "text"),
    [
        (lambda: lookup(ONE, I32(1)), 'Trying to lookup non-existent key. Could not find key "1"'),
        (lambda: lookup(ONE, I32(5), dtypes.int32), "actual float vs. expect int32"),
        (lambda: erase(ONE, I32(7)), 'erase non-existent item. Could not find key "7"'),
        (lambda: keys(EMPTY), "cannot be called on empty map"),
        (lambda: keys(ONE, F), "Key does not match requested dtype"),
        (lambda: keys(insert(ONE, np.array([1], I32), F32(1))), "must all have the same shape"),
        (
            lambda: run_op("TensorMapSize", none()),
            "not a map. Saw: 'Variant<type: tensorflow::data",
        ),
        (lambda: values(none()), "does not have a value"),
        (lambda: values(some(I32(1))), "component 0. Expected: float. Actual: int32"),
        (lambda: values(some(F32(1)), shapes=((2,),)), r"Expected: \[2\]. Actual: \[\]"),
        (lambda: values(some(F32(1), F32(2))), "has 2 components, expected 1"),
        (lambda: values(EMPTY), "must be an OptionalVariant object"),
        (lambda: run_op("AddN", [none(), some(F32(1))]), "one has a value and the other doesn't"),
        (lambda: run_op("AddN", [some(b"a"), some(b"b")]), "Trying to add unsupported dtype 7"),
    ],
)
def test_misuse_is_refused_in_tensorflows_words(misuse: Any, text: str) -> None:
    """Each misuse has its message."""
    with pytest.raises(errors.InvalidArgumentError, match=text):
        misuse()


def test_variants_of_different_kinds_cannot_be_added() -> None:
    """The error names both kinds."""
    with pytest.raises(errors.InternalError, match="have different type ids"):
        run_op("AddN", [none(), ONE])
