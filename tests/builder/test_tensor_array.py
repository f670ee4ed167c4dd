"""Arrays of tensors, element by element."""

from __future__ import annotations

import numpy as np
import pytest

from builder.asking import run
from penstock.builder import Graph, TensorArray, constant, device
from penstock.errors import InvalidArgumentError, OpError


def test_what_is_written_can_be_read(graph: Graph) -> None:
    """An element read through the array that its write returned is the value written."""
    array = TensorArray("float32", 2).write(0, [1, 2]).write(1, [3, 4])

    assert run(graph, array.read(1)).tolist() == [3, 4]


def test_stack_and_unstack_are_inverse(graph: Graph) -> None:
    """The slices of a tensor, stacked, are the tensor."""
    value = np.arange(6, dtype=np.int32).reshape(3, 2)
    array = TensorArray("int32", 3).unstack(value)

    assert np.array_equal(run(graph, array.stack()), value)


def test_an_empty_array_stacks_if_its_elements_shape_is_known(graph: Graph) -> None:
    """No elements of a known shape make a tensor without slices."""
    array = TensorArray("int32", 0, element_shape=(2,))

    assert run(graph, array.stack()).shape == (0, 2)


def test_gather_and_scatter_choose_elements(graph: Graph) -> None:
    """Both take indices, in any order."""
    array = TensorArray("int32", 3).scatter([2, 0], [5, 6]).write(1, 7)

    assert run(graph, array.gather([0, 1, 2])).tolist() == [6, 7, 5]


def test_split_and_concat_are_inverse(graph: Graph) -> None:
    """Pieces of different lengths come together again."""
    array = TensorArray("int32", 2, infer_shape=False).split(np.arange(5, dtype=np.int32), [2, 3])

    assert run(graph, array.concat()).tolist() == [0, 1, 2, 3, 4]


def test_a_dynamic_array_grows(graph: Graph) -> None:
    """Writing beyond the end makes the array longer; without ``dynamic_size`` it fails."""
    growing = TensorArray("int32", dynamic_size=True).write(0, 5).write(1, 6)
    fixed = TensorArray("int32", 1).write(1, 6)

    assert run(graph, growing.size()) == 2
    with pytest.raises(OpError):
        run(graph, fixed.flow)


def test_an_element_is_read_once_unless_kept(graph: Graph) -> None:
    """``clear_after_read=False`` keeps elements for another read."""
    kept = TensorArray("int32", 1, clear_after_read=False).write(0, 4)

    assert run(graph, [kept.read(0), kept.read(constant(0))]) == [4, 4]


def test_values_take_the_arrays_type() -> None:
    """A literal is converted, a tensor of another type refused."""
    array = TensorArray("float32", 1)

    assert array.write(0, 1).flow.op.get_attr("T").name == "float32"
    with pytest.raises(InvalidArgumentError, match="must be float32"):
        array.write(0, constant(1))


def test_operations_stay_on_the_arrays_device() -> None:
    """The array is where it was made; who uses it elsewhere sends values there."""
    with device("/cpu:1"):
        array = TensorArray("int32", 1)
    with device("/cpu:0"):
        written = array.write(0, 1)

    assert written.flow.device == "/device:CPU:1"


def test_an_array_can_be_closed(graph: Graph) -> None:
    """After ``close`` has run, its elements are gone."""
    array = TensorArray("int32", 1)

    assert array.close().type == "TensorArrayCloseV3"
    assert array.identity().handle == array.handle
    assert "TensorArray of int32" in repr(array)
    assert run(graph, array.close()) is None
