"""Lists of tensors: no list ever changes, and what nobody set reads as zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import errors
from penstock.core import dtypes
from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.kernels.variant.persistent_vector import PersistentVector
from support.ops import run_op

F = dtypes.float32
I32 = np.int32
ONE = np.array([1, 2], np.float32)


def sizes(shape: Any) -> Any:
    """An element shape as lists take it; -1 for unknown."""
    return np.array(shape, I32)


def reserve(size: int, shape: Any = (2,), dtype: Any = F) -> Any:
    """A list in which nothing is set."""
    return run_op("TensorListReserve", sizes(shape), I32(size), element_dtype=dtype)


def empty(shape: Any = (2,), limit: int = -1) -> Any:
    """A list without elements."""
    return run_op("EmptyTensorList", sizes(shape), I32(limit), element_dtype=F)


def rows(tensor: Any, shape: Any = -1) -> Any:
    """A list of rows."""
    return run_op("TensorListFromTensor", np.array(tensor, np.float32), sizes(shape))


def get(handle: Any, index: int, shape: Any = -1, dtype: Any = F) -> Any:
    """One element."""
    return run_op("TensorListGetItem", handle, I32(index), sizes(shape), element_dtype=dtype)


def put(handle: Any, index: int, item: Any, **attrs: Any) -> Any:
    """A list with another element."""
    return run_op("TensorListSetItem", handle, I32(index), item, **attrs)


def push(handle: Any, item: Any) -> Any:
    """A list with one more element."""
    return run_op("TensorListPushBack", handle, item)


def pop(handle: Any, shape: Any = -1) -> Any:
    """A list without its last element, and that."""
    return run_op("TensorListPopBack", handle, sizes(shape), element_dtype=F)


def stack(handle: Any, shape: Any = -1, dtype: Any = F, **attrs: Any) -> Any:
    """All elements as one tensor."""
    return run_op("TensorListStack", handle, sizes(shape), element_dtype=dtype, **attrs)


def gather(handle: Any, indices: Any, shape: Any = -1) -> Any:
    """Some elements as one tensor."""
    return run_op("TensorListGather", handle, sizes(indices), sizes(shape), element_dtype=F)


def scatter(tensor: Any, indices: Any, shape: Any = -1, size: int = -1) -> Any:
    """A list with rows at indices."""
    tensor = np.array(tensor, np.float32)
    return run_op("TensorListScatterV2", tensor, sizes(indices), sizes(shape), I32(size))


def scatter_into(handle: Any, tensor: Any, indices: Any) -> Any:
    """The list with rows at indices."""
    tensor = np.array(tensor, np.float32)
    return run_op("TensorListScatterIntoExistingList", handle, tensor, sizes(indices))


def split(tensor: Any, shape: Any, lengths: Any) -> Any:
    """A list of pieces."""
    tensor, lengths = np.array(tensor, np.float32), np.array(lengths, np.int64)
    return run_op("TensorListSplit", tensor, sizes(shape), lengths)


def concat(handle: Any, shape: TensorShape = UNKNOWN) -> Any:
    """All elements end to end, by the old op."""
    return run_op("TensorListConcat", handle, element_dtype=F, element_shape=shape)


def concat_v2(handle: Any, shape: Any = -1, lengths: Any = ()) -> Any:
    """All elements end to end."""
    lengths = np.array(lengths, np.int64)
    return run_op("TensorListConcatV2", handle, sizes(shape), lengths, element_dtype=F)


def resize(handle: Any, size: int) -> Any:
    """The list, cut or filled up."""
    return run_op("TensorListResize", handle, I32(size))


def together(*handles: Any) -> Any:
    """A vector of variants."""
    out = np.empty(len(handles), object)
    out[:] = handles
    return out


def test_two_branches_that_update_one_list_do_not_see_each_other() -> None:
    """Whatever is made of a list, the list itself and all else made of it stay as they were."""
    base = rows([[1, 2], [3, 4]])
    a, b = put(base, 0, ONE * 10), put(base, 0, ONE * 20)
    shorter, _ = pop(base)
    longer = push(shorter, ONE * 30)

    assert stack(a).tolist() == [[10, 20], [3, 4]]
    assert stack(b).tolist() == [[20, 40], [3, 4]]
    assert stack(longer).tolist() == [[1, 2], [30, 60]]
    assert stack(base).tolist() == [[1, 2], [3, 4]]


_CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 2000)),
        st.tuples(st.just("resize"), st.sampled_from([0, 1, 31, 32, 33, 1023, 1024, 1025, 1057])),
    ),
    max_size=12,
)


@given(_CHANGES)
def test_persistent_vectors_do_as_python_lists(changes: list[tuple[str, int]]) -> None:
    """After any changes each version still equals its list."""
    vector: PersistentVector[int] = PersistentVector()
    listed: list[int] = []
    versions = []
    for number, (what, at) in enumerate(changes):
        if what == "put":
            at = min(at, len(listed))
            vector, listed = vector.put(at, number), [*listed[:at], number, *listed[at + 1 :]]
        else:
            vector, listed = vector.resize(at, -1), listed[:at] + [-1] * (at - len(listed))
        versions.append((vector, listed))

    for each, expected in versions:
        assert list(each) == expected
        assert [each.get(i) for i in range(each.size)] == expected


def test_reserving_very_many_elements_takes_no_memory() -> None:
    """A list of two thousand million elements is made, read and changed in an instant."""
    handle = put(reserve(2**31 - 1), 2**30, ONE)

    assert get(handle, 2**30).tolist() == [1, 2]
    assert get(handle, 7).tolist() == [0, 0]
    assert run_op("TensorListLength", handle) == 2**31 - 1


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: get(reserve(2), 0), [0, 0]),
        (lambda: get(reserve(2, [-1]), 0, [3]), [0, 0, 0]),
        (lambda: get(put(reserve(2, [-1]), 1, ONE), 0), [0, 0]),
        (lambda: get(reserve(2, [], dtypes.string), 0, dtype=dtypes.string), b""),
        (lambda: get(reserve(2, [], dtypes.bool_), 0, dtype=dtypes.bool_), False),
        (lambda: pop(reserve(1))[1], [0, 0]),
        (lambda: stack(reserve(2)), [[0, 0], [0, 0]]),
        (lambda: stack(put(reserve(2, [-1]), 1, ONE)), [[0, 0], [1, 2]]),
        (lambda: stack(resize(push(empty(), ONE), 2)), [[1, 2], [0, 0]]),
        (lambda: stack(reserve(2, [1], dtypes.string), dtype=dtypes.string), [[b""], [b""]]),
        (lambda: gather(reserve(2), [1, 0, 1]), [[0, 0]] * 3),
        (lambda: stack(scatter([[1], [2]], [3, 1])), [[0], [2], [0], [1]]),
        (lambda: concat_v2(reserve(2, [2, 1]))[0], [[0]] * 4),
        (lambda: concat_v2(reserve(2, [-1, 1]), [-1, 1], [1, 2])[1], [1, 2]),
        (lambda: concat(put(reserve(2, [-1, -1]), 1, ONE[None]))[0], [[0, 0], [1, 2]]),
    ],
)
def test_what_nobody_set_reads_as_zeros(made: Any, expected: Any) -> None:
    """Zeros of the element shape, which other elements may complete."""
    assert made().tolist() == expected if isinstance(expected, list) else made() == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: stack(empty()).shape, (0, 2)),
        (lambda: stack(empty([-1]), [3]).shape, (0, 3)),
        (lambda: gather(reserve(2), []).shape, (0, 2)),
        (lambda: gather(rows([[1], [2]]), [[0], [1]]).tolist(), [[1], [2]]),
        (lambda: run_op("TensorListLength", scatter(np.zeros((0, 2)), [])), 0),
        (lambda: stack(scatter([[1], [2]], [1, 1], [1])).tolist(), [[0], [2]]),
        (lambda: stack(scatter([[1], [2]], [3, 1], size=5)).shape, (5, 1)),
        (
            lambda: stack(scatter_into(reserve(1, [1]), [[1], [2]], [0, 2])).tolist(),
            [[1], [0], [2]],
        ),
        (lambda: stack(resize(rows([1, 2, 3]), 1)).tolist(), [1]),
        (lambda: get(split([[1], [2], [3]], [3, 1], [2, 1]), 0).tolist(), [[1], [2]]),
        (lambda: [x.tolist() for x in concat(split([1, 2, 3], [-1], [2, 1]))], [[1, 2, 3], [2, 1]]),
        (lambda: concat(empty(), TensorShape((None, 1)))[0].shape, (0, 1)),
        (lambda: concat_v2(empty([-1, 1]))[0].shape, (0, 1)),
        (lambda: put(reserve(2), 5, ONE, resize_if_index_out_of_bounds=True).items.size, 6),
    ],
)
def test_elements_become_tensors_and_tensors_elements(made: Any, expected: Any) -> None:
    """Stacks, pieces and joined elements are as TensorFlow makes them."""
    assert made() == expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [([-1, 2], [-1, 2]), (-1, -1), ([], [])],
    ids=["partial", "none", "rank 0"],
)
def test_an_unknown_element_shape_is_minus_one(shape: Any, expected: Any) -> None:
    """Sizes of which -1 is unknown, or just -1."""
    found = run_op("TensorListElementShape", empty(shape), shape_type=dtypes.int64)

    assert found.dtype == np.int64
    assert found.tolist() == expected


def test_several_lists_are_joined_and_pushed_into_at_once() -> None:
    """Element-wise over vectors of lists."""
    lists = together(rows([1, 2], []), rows([3], []))
    joined = run_op("TensorListConcatLists", lists, lists, element_dtype=F)
    pushed = run_op("TensorListPushBackBatch", lists, np.array([7, 8], np.float32))

    assert [stack(x).tolist() for x in joined] == [[1, 2, 1, 2], [3, 3]]
    assert [stack(x).tolist() for x in pushed] == [[1, 2, 7], [3, 8]]


def add(*handles: Any) -> Any:
    """The sum of variants."""
    return run_op("AddN", list(handles))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: stack(add(rows([1, 2]), rows([3, 4]), rows([5, 6]))), [9, 12]),
        (lambda: stack(add(rows([1, 2]), reserve(2, []))), [1, 2]),
        (lambda: stack(add(reserve(2, -1), reserve(2, -1)), [2]), [[0, 0], [0, 0]]),
        (lambda: stack(run_op("ZerosLike", rows([[1, 2]]))), [[0, 0]]),
        (lambda: get(run_op("ZerosLike", put(reserve(2, -1), 0, ONE)), 1), [0, 0]),
        (lambda: stack(stack(add(*[rows_of_rows()] * 2), dtype=dtypes.variant)[0]), [2, 4]),
    ],
)
def test_lists_add_up_and_have_zeros(made: Any, expected: Any) -> None:
    """Element by element, also in lists of lists; what nobody set is zero."""
    assert made().tolist() == expected


def rows_of_rows() -> Any:
    """A list whose one element is a list."""
    return run_op(
        "TensorListFromTensor", together(rows(ONE)), sizes([]), element_dtype=dtypes.variant
    )


@pytest.mark.parametrize(
    ("misuse", "text"),
    [
        (lambda: reserve(-1), "must be a non negative number, but got -1"),
        (lambda: reserve(1, [-2]), "Dimension -2 must be >= -1"),
        (lambda: reserve(1, 3), "The only valid scalar shape tensor is the fully unknown shape"),
        (lambda: get(reserve(2), 2), "Trying to access element 2 in a list with 2 elements"),
        (lambda: get(reserve(2), -1), "Trying to access element -1 in a list with 2 elements"),
        (
            lambda: get(reserve(2), 0, dtype=dtypes.int32),
            "op elements int32 but list elements float",
        ),
        (lambda: get(reserve(2, [-1]), 0), r"not fully defined: \[\?\] and no list element is set"),
        (lambda: get(reserve(2), 0, [3]), r"Incompatible shapes during merge: \[3\] vs. \[2\]"),
        (lambda: get(together(empty()), 0), r"Input list must be a scalar saw: \[1\]"),
        (
            lambda: get(run_op("OptionalNone"), 0),
            "not a list. Saw: 'Variant<type: tensorflow::data",
        ),
        (lambda: put(reserve(2), 2, ONE), "Trying to modify element 2 in a list with 2 elements"),
        (lambda: put(reserve(2), 0, ONE[:1]), r"element shape: \[1\] list shape: \[2\]"),
        (
            lambda: put(reserve(2), -1, ONE, resize_if_index_out_of_bounds=True),
            "Trying to modify element -1",
        ),
        (lambda: push(empty(limit=0), ONE), "full list list size: 0 max_num_elements: 0"),
        (lambda: push(empty(), ONE[:1]), "Tried to append a tensor with incompatible shape"),
        (lambda: pop(empty()), "Trying to pop from an empty list"),
        (lambda: stack(empty(), num_elements=2), "expected a list with 2 elements but got a list"),
        (lambda: stack(empty([-1])), "Tried to stack elements of an empty list with non-fully"),
        (lambda: stack(reserve(2, -1)), "list which only contains uninitialized tensors"),
        (lambda: stack(push(push(empty(-1), ONE), ONE[0])), "ranks during merge: 1 vs. 0"),
        (lambda: gather(reserve(2), [2]), "Index 2 out o range; list only has 2 elements"),
        (lambda: gather(reserve(2, -1), []), "Tried to gather 0-elements"),
        (lambda: rows(1.0), "Tensor must be at least a vector"),
        (lambda: rows([[1, 2]], [3]), r"list with shape \[3\] from a tensor with shape \[2\]"),
        (lambda: scatter([[1], [2]], [-3, 1]), "must all be non-negative"),
        (lambda: scatter([[1], [2]], [1]), "Expected: 1 Actual: 2"),
        (lambda: scatter([[1], [2]], [3, 1], size=2), "scatter at index 3 in list with size 2"),
        (lambda: scatter_into(reserve(1, [1]), [[1], [2]], [0, -2]), "must all be non-negative"),
        (lambda: resize(empty(), -1), "expects size to be non-negative. Got: -1"),
        (lambda: split([1, 2, 3], [-1], [2, 2]), r"slice \[2, 4\] from tensor with length 3"),
        (lambda: split([1, 2, 3], [-1], [1, 1]), "Unused values in tensor"),
        (lambda: split([1, 2, 3], [-1], [-1, 4]), "Invalid value in lengths: -1"),
        (lambda: concat(empty([2, 1])), "All except the first dimension must be fully defined"),
        (lambda: concat(reserve(2), TensorShape((2, 1))), "in this version of TensorListConcat"),
        (lambda: concat_v2(reserve(2, [-1, 1]), -1, [1]), "at index 1 but leading_dims has only 1"),
        (lambda: add(rows([1, 2]), rows([3])), "different lengths. One is 2 and the other is 1"),
        (lambda: add(rows([[1, 2]]), rows([[3]])), r"One is \[2\] and the other is \[1\]"),
        (lambda: add(together(empty())), "AddN of non-scalar Tensor with dtype=DT_VARIANT"),
    ],
)
def test_misuse_is_refused_in_tensorflows_words(misuse: Any, text: str) -> None:
    """Each misuse has its message."""
    with pytest.raises(errors.InvalidArgumentError, match=text):
        misuse()
