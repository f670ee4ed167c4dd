"""Tensor arrays: elements by index, written once and read once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import Session, errors
from penstock.core import dtypes
from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.kernels.data_flow.tensor_array import TensorArray, TensorArrayOptions
from support.sketch import sketch


def new(
    size: int = 3, shape: Any = None, dtype: Any = dtypes.float32, **options: Any
) -> TensorArray:
    """An array called A."""
    return TensorArray("A", dtype, size, TensorShape.of(shape), TensorArrayOptions(**options))


def vector(*items: float) -> Any:
    """A float32 vector."""
    return np.array(items, np.float32)


def test_elements_are_handed_over_and_not_copied() -> None:
    """What is read is the very array that was written."""
    array, value = new(), vector(1, 2)
    array.write(1, value)

    assert array.read(1) is value


@pytest.mark.parametrize(
    ("second", "text"),
    [
        (lambda a: a.write(1, vector(1)), "Could not write to TensorArray index 1 because it has"),
        (lambda a: (a.read(1), a.read(1)), "Could not read index 1 twice because it was cleared"),
        (lambda a: (a.read(1), a.write(1, vector(1))), "because it has already been read"),
        (lambda a: a.write(3, vector(1)), "Tried to write to index 3 but array is not resizeable"),
        (lambda a: a.write(-1, vector(1)), "index -1 but array is not resizeable and size is: 3"),
        (lambda a: a.read(7), "Tried to read from index 7 but array size is: 3"),
        (lambda a: a.read(-1), "Tried to read from index -1 but array size is: 3"),
        (lambda a: a.read(0), "element shape is not fully defined: <unknown>"),
        (lambda a: (a.close(), a.read(1)), "TensorArray A has already been closed"),
        (lambda a: (a.close(), a.size), "TensorArray A has already been closed"),
    ],
)
def test_misuse_is_refused_in_tensorflows_words(second: Any, text: str) -> None:
    """Each misuse of an array in which element 1 is written has its message."""
    array = new()
    array.write(1, vector(1))

    with pytest.raises(errors.InvalidArgumentError, match=text):
        second(array)


def test_unwritten_elements_are_zeros_of_a_known_shape() -> None:
    """A gap reads as zeros if all elements have one shape; strings have no zeros."""
    assert new(shape=[2], dtype=dtypes.int32).read(0).tolist() == [0, 0]
    assert new(shape=[]).read(0) == 0
    with pytest.raises(errors.InvalidArgumentError, match="TensorSetZero type not supported"):
        new(shape=[2], dtype=dtypes.string).read(0)


def test_identical_shapes_are_those_of_the_first_element() -> None:
    """The first write fixes the shape of all; gaps are zeros of it."""
    array = new(identical_element_shapes=True)
    array.write(0, vector(1, 2))

    assert array.read(2).tolist() == [0, 0]
    with pytest.raises(errors.InvalidArgumentError, match="value shape is \\[1\\] which is incomp"):
        array.write(1, vector(1))


def test_elements_may_stay_when_they_are_read() -> None:
    """Without clearing, an element is read as often as one likes."""
    array = new(clear_after_read=False)
    array.write(0, vector(1))

    assert array.read(0) is array.read(0)


def test_dynamic_arrays_grow_until_there_are_gradients() -> None:
    """Writing behind the end makes room; an array of gradients fixes the size."""
    array = new(size=0, dynamic_size=True)
    array.write(2, vector(1))
    assert array.size == 3

    gradients = array.make_gradients("A@g")
    assert gradients.size == 3
    with pytest.raises(errors.InvalidArgumentError, match="not resizeable and size is: 3"):
        array.write(3, vector(1))


def test_gradients_add_up_and_start_at_zero() -> None:
    """Several writes to an array of gradients are summed; none is a zero of the right shape."""
    array = new()
    array.write(0, vector(1, 2))
    array.write(1, vector(3))
    array.read(1)
    gradients = array.make_gradients("A@g")
    gradients.write(0, vector(10, 20))
    gradients.write(0, vector(1, 1))

    assert gradients.read(0).tolist() == [11, 21]
    assert gradients.read(1).tolist() == [0]
    with pytest.raises(errors.InvalidArgumentError, match="TensorArray A@g: Could not read"):
        gradients.read(2)


def test_gradients_of_another_shape_are_refused() -> None:
    """A gradient must have the shape of its element, or of the gradient before it."""
    array = new()
    array.write(0, vector(1, 2))

    with pytest.raises(
        errors.InvalidArgumentError,
        match="existing shape is \\[2\\] but the new input shape is \\[1\\]",
    ):
        array.make_gradients("A@g").write(0, vector(1))


def test_types_that_cannot_be_added_are_refused() -> None:
    """The second gradient of a string is an error, the first one is not."""
    gradients = TensorArray("A", dtypes.string, 1, UNKNOWN, TensorArrayOptions()).make_gradients(
        "g"
    )
    gradients.write(0, b"a")

    with pytest.raises(errors.InvalidArgumentError, match="AddToTensor type not supported: string"):
        gradients.write(0, b"b")


def test_negative_size_is_refused() -> None:
    """There is no array of fewer than no elements."""
    with pytest.raises(errors.InvalidArgumentError, match="Size should be >= 0"):
        new(size=-1)


@pytest.mark.parametrize("clears", [True, False])
@pytest.mark.parametrize("reads", [None, [0, 1, 2], [2, 0], [1, 1]])
@pytest.mark.parametrize("already", [None, 1])
def test_many_at_once_do_what_one_by_one_does(clears: Any, reads: Any, already: Any) -> None:
    """Rows that are written, and read twice, together or singly: same elements, same errors."""
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)

    def outcome(*, singly: bool) -> list[Any]:
        array = new(clear_after_read=clears, identical_element_shapes=True)
        wanted = range(3) if reads is None else reads
        found: list[Any] = []
        try:
            if already is not None:
                array.write(already, vector(7, 7))
            if singly:
                for index in range(3):
                    array.write(index, rows[index])
            else:
                array.write_many([0, 1, 2], rows)
            for _ in range(2):
                many = [array.read(i) for i in wanted] if singly else array.read_many(reads)
                found.append([value.tolist() for value in many])
            array.write(0, vector(1))
        except errors.InvalidArgumentError as error:
            found.append(str(error))
        return found

    assert outcome(singly=True) == outcome(singly=False)


def test_gaps_between_many_are_zeros() -> None:
    """All elements together: those that were written, and zeros for the others."""
    array = new(shape=[2])
    array.write(1, vector(1, 2))

    assert [value.tolist() for value in array.read_many()] == [[0, 0], [1, 2], [0, 0]]


def test_elements_of_several_shapes() -> None:
    """Where no shape is promised, each element has its own; a promise is kept by every write."""
    free, bound = new(), new(shape=[None])
    for index, value in enumerate((vector(1), vector(1, 2), np.float32(3))):
        free.write(index, value)
    bound.write(0, vector(1))
    bound.write(1, vector(1, 2))

    assert [np.shape(free.read(i)) for i in range(3)] == [(1,), (2,), ()]
    with pytest.raises(errors.InvalidArgumentError, match="value shape is \\[1,1\\] which is inc"):
        bound.write(2, np.ones((1, 1), np.float32))
    bound.merge_element_shape(TensorShape((1,)))
    with pytest.raises(errors.InvalidArgumentError, match="value shape is \\[2\\] which is incomp"):
        bound.write(2, vector(1, 2))


GRAPH = """
    size = Const() value=3
    array = TensorArrayV3(size) dtype=float32
    value = Placeholder() dtype=float32
    lengths = Placeholder() dtype=int64
    indices = Placeholder() dtype=int32
    scattered = TensorArrayScatterV3(array, indices, value, array:1)
    gathered = TensorArrayGatherV3(array, indices, scattered) dtype=float32
    split = TensorArraySplitV3(array, value, lengths, array:1)
    joined = TensorArrayConcatV3(array, split) dtype=float32
    empty = TensorArrayGatherV3(array, indices, array:1) dtype=float32 element_shape=[2]
    as_int = TensorArrayReadV3(array, size, array:1) dtype=int32
"""


def run(fetches: Any, **feeds: Any) -> Any:
    """Run the graph above."""
    return Session(sketch(GRAPH)).run(fetches, {f"{name}:0": v for name, v in feeds.items()})


def test_rows_are_scattered_and_gathered() -> None:
    """Rows go where the indices say, and come back in the same order."""
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)

    out = run("gathered:0", value=rows, indices=np.array([2, 0, 1], np.int32))

    assert out.tolist() == rows.tolist()


def test_pieces_are_split_and_joined() -> None:
    """What is split by lengths is joined to the same tensor, with the same lengths."""
    value, lengths = np.arange(6, dtype=np.float32), np.array([1, 0, 5], np.int64)

    out, out_lengths = run(["joined:0", "joined:1"], value=value, lengths=lengths)

    assert out.tolist() == value.tolist()
    assert out_lengths.tolist() == [1, 0, 5]


@pytest.mark.parametrize(
    ("value", "lengths", "text"),
    [
        ([1, 2, 3], [1, 1, 2], "sum of lengths is 4 and value's shape is: \\[3\\]"),
        ([1, 2, 3], [1, 2], "size of lengths \\(3 vs. 2\\)"),
        ([1, 2, 3], [-1, 2, 2], "Expected lengths >= 0"),
        (1, [1, 0, 0], "Expected value to be at least a vector"),
    ],
)
def test_bad_splits_are_refused(value: Any, lengths: Any, text: str) -> None:
    """Lengths must fit the value and the array; negative ones do not bring us down."""
    with pytest.raises(errors.InvalidArgumentError, match=text):
        run("split:0", value=np.float32(value), lengths=np.array(lengths, np.int64))


@pytest.mark.parametrize(
    ("indices", "value", "text"),
    [
        ([0, 3], [1, 2], "Max scatter index must be < array size \\(3 vs. 3\\)"),
        ([0, 0], [1, 2], "already been written to"),
        ([0], [1, 2], "len\\(indices\\) == values.shape\\[0\\], but saw: 1 vs. 2"),
        ([[0]], [1], "indices to be a vector, but received shape: \\[1,1\\]"),
        ([0], 1, "must be at least a vector but received shape: \\[\\]"),
    ],
)
def test_bad_scatters_are_refused(indices: Any, value: Any, text: str) -> None:
    """Indices must fit the array, and the value the indices."""
    with pytest.raises(errors.InvalidArgumentError, match=text):
        run("scattered:0", value=np.float32(value), indices=np.array(indices, np.int32))


def test_gathering_nothing_needs_a_shape() -> None:
    """No elements are a tensor without rows if their shape is known, else an error."""
    none = np.zeros(0, np.int32)

    assert run("empty:0", indices=none).shape == (0, 2)
    with pytest.raises(errors.UnimplementedError, match="not fully defined"):
        run("gathered:0", indices=none, value=np.zeros((0, 2), np.float32))


@pytest.mark.parametrize("second", [[1, 2, 3], [[1, 2], [3, 4]], 5])
def test_elements_that_differ_cannot_be_stacked(second: Any) -> None:
    """One element of another length, of another rank or without one is named."""
    graph = sketch(
        """
        size = Const() value=2
        array = TensorArrayV3(size) dtype=float32
        zero = Const() value=0
        one = Const() value=1
        a = Placeholder() dtype=float32
        b = Placeholder() dtype=float32
        indices = Const() value=[0, 1]
        first = TensorArrayWriteV3(array, zero, a, array:1)
        second = TensorArrayWriteV3(array, one, b, first)
        all = TensorArrayGatherV3(array, indices, second) dtype=float32
        """
    )
    feeds = {"a:0": np.ones((2, 2), np.float32), "b:0": np.float32(second)}

    if np.shape(second) == (2, 2):
        assert Session(graph).run("all:0", feeds).tolist() == [[[1, 1], [1, 1]], second]
        return
    with pytest.raises(errors.InvalidArgumentError, match=r"inconsistent shapes. .*index 1 has sh"):
        Session(graph).run("all:0", feeds)


def test_a_handle_is_worth_nothing_in_another_step() -> None:
    """The array of a step is gone with it, even if its handle is fed to the next one."""
    session = Session(sketch(GRAPH))
    handle = session.run("array:0")

    with pytest.raises(errors.NotFoundError, match="does not exist in this step"):
        session.run("as_int:0", {"array:0": handle, "array:1": np.float32(0)})


def test_types_must_agree() -> None:
    """A reader of another type is told both."""
    with pytest.raises(
        errors.InvalidArgumentError, match="dtype is float but Op requested dtype int32"
    ):
        run("as_int:0")
