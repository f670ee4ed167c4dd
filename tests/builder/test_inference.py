"""Types and numbers follow from the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.builder import Graph, Tensor, constant, ops, placeholder
from penstock.core import dtypes
from penstock.errors import InvalidArgumentError


def value_of(tensor: Tensor) -> Any:
    """What a Const holds."""
    return tensor.op.get_attr("value").value


@pytest.mark.parametrize(
    ("literal", "dtype"),
    [
        (1, "int32"),
        (2**40, "int64"),
        (2**63, "uint64"),
        (1.0, "float32"),
        (True, "bool"),
        (1j, "complex128"),
        ("text", "string"),
        (b"bytes", "string"),
        ([1, 2], "int32"),
        ([1, 2.5], "float32"),
        ([["a"], ["b"]], "string"),
        ([], "float32"),
        (np.float64(1), "float64"),
        (np.zeros(2, np.int8), "int8"),
        (np.array(["a"]), "string"),
        ([np.float64(1)], "float64"),
    ],
)
def test_a_literal_alone_has_tensorflows_type(literal: Any, dtype: str) -> None:
    """Python's numbers become 32 bits wide where they fit; numpy's keep their type."""
    assert constant(literal).dtype is dtypes.as_dtype(dtype)


def test_text_is_kept_as_bytes() -> None:
    """A string tensor holds UTF-8."""
    assert value_of(constant("ä")) == "ä".encode()
    assert value_of(constant(["a", b"b"])).tolist() == [b"a", b"b"]


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint8", "bfloat16", "complex64"])
def test_a_literal_follows_the_tensor_beside_it(dtype: str) -> None:
    """``x + 1`` and ``1 + x`` have the type of x, whichever comes first."""
    x = placeholder(dtype)

    for result in (x + 1, 1 + x, ops.add(1, x), ops.add_n([1, x]), ops.pack([1, x, 2])):
        assert result.dtype is x.dtype


@pytest.mark.parametrize(
    ("literal", "dtype"),
    [(1.5, "int32"), (300, "uint8"), (-1, "uint8"), (True, "int32"), (1, "bool"), ("a", "int32")],
)
def test_a_literal_never_loses_what_was_written(literal: Any, dtype: str) -> None:
    """A literal that its neighbour's type cannot hold is an error, not a rounded number."""
    x = placeholder(dtype)

    with pytest.raises(InvalidArgumentError, match="without loss"):
        ops.pack([x, literal])


def test_a_refused_call_leaves_no_nodes(graph: Graph) -> None:
    """Types are checked before anything is made."""
    x = placeholder("int32")

    with pytest.raises(InvalidArgumentError):
        ops.concat_v2([x, [1], [2.5]], 0)

    assert len(graph) == 1


def test_tensors_of_different_types_do_not_mix() -> None:
    """The error names both sides and the way out."""
    x, y = placeholder("int32", name="x"), placeholder("float32", name="y")

    with pytest.raises(InvalidArgumentError) as caught:
        _ = x + y

    assert "'y' must be of the type of 'x', which is int32, but is float32" in str(caught.value)
    assert "ops.cast" in caught.value.next_step


def test_an_input_of_a_fixed_type_takes_no_other() -> None:
    """Where the op itself says the type, a tensor must have it."""
    x = placeholder("int32", name="x")

    with pytest.raises(InvalidArgumentError, match="'x' must be bool, but x:0 is int32"):
        ops.logical_not(x)


def test_list_lengths_settle_number_attributes() -> None:
    """``N`` is how many tensors there are."""
    assert ops.add_n([1, 2, 3]).op.get_attr("N") == 3


def test_lists_that_must_be_equally_long_are() -> None:
    """Two lists under one number attribute that differ in length are refused."""
    with pytest.raises(InvalidArgumentError, match="as long as"):
        ops.dynamic_stitch([[0], [1]], [[1.0]])


def test_lists_of_any_types_settle_type_lists() -> None:
    """Each tensor of a free list brings its own type."""
    result = ops.identity_n([1, 2.0, "a"])

    assert [tensor.dtype.name for tensor in result] == ["int32", "float32", "string"]


def test_an_attributes_default_decides_where_only_literals_are() -> None:
    """A plain literal takes the type that the op prefers, a numpy array keeps its own."""
    x = placeholder("float32")

    assert ops.sum(x, 0).op.get_attr("Tidx") is dtypes.int32
    assert ops.sum(x, np.int64(0)).op.get_attr("Tidx") is dtypes.int64


def test_literals_alone_agree_on_the_widest() -> None:
    """``add(1, 2.5)`` adds real numbers."""
    assert ops.add(1, 2.5).dtype is dtypes.float32


def test_a_type_can_be_given() -> None:
    """An explicit type attribute goes before what literals say."""
    assert ops.add(1, 2, T="float64").dtype is dtypes.float64


def test_types_that_the_op_does_not_know_are_refused() -> None:
    """An attribute outside its list of allowed values is an error that lists them."""
    with pytest.raises(InvalidArgumentError, match="'T' cannot be bool") as caught:
        ops.neg(constant(value=True))

    assert "float32" in caught.value.next_step


def test_attributes_keep_their_bounds() -> None:
    """A number below an attribute's minimum is refused."""
    with pytest.raises(InvalidArgumentError, match="must be at least 1"):
        ops.add_n([], T="int32")


def test_a_list_with_tensors_in_it_is_packed() -> None:
    """``reshape(x, [n, 2])`` works when n is a tensor."""
    x, n = placeholder("float32"), placeholder("int32", name="n")

    shape = ops.reshape(x, [n, 2]).op.inputs[1]

    assert shape.op.type == "Pack"
    assert [tensor.dtype.name for tensor in shape.op.inputs] == ["int32", "int32"]


def test_several_outputs_have_names() -> None:
    """An op with several outputs returns a named tuple, lists in it where it has lists."""
    best = ops.top_k_v2([1.0, 2.0], 1)
    parts = ops.split(0, [1, 2], num_split=2)

    assert (best.values.name, best.indices.name) == ("TopKV2:0", "TopKV2:1")
    assert [tensor.name for tensor in parts] == ["Split:0", "Split:1"]


def test_an_op_without_outputs_returns_the_operation() -> None:
    """Nothing to take, but something to run and to wait for."""
    assert ops.no_op(name="done").name == "done"


def test_references_feed_values_but_not_the_other_way() -> None:
    """A variable of the reference kind can be read anywhere; a value cannot be assigned to."""
    variable = ops.variable_v2((), "float32")

    assert variable.dtype.is_ref
    assert (variable + 1).dtype is dtypes.float32
    assert ops.assign(variable, 1).dtype.is_ref
    with pytest.raises(InvalidArgumentError, match="float32_ref"):
        ops.assign(constant(1.0), 1.0)


def test_graphs_do_not_mix() -> None:
    """A tensor of another graph is refused by name."""
    with Graph().as_default():
        stranger = constant(1, name="stranger")

    with pytest.raises(InvalidArgumentError, match="stranger:0 belongs to another graph"):
        ops.add_n([constant(1), stranger])


def test_inputs_choose_the_graph() -> None:
    """A node goes to the graph of its inputs, whatever the default is."""
    with Graph().as_default() as graph:
        x = constant(1)

    assert (x + 1).graph is graph


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.add(1),
        lambda: ops.add(1, 2, 3),
        lambda: ops.add(1, 2, colour="red"),
        lambda: ops.add_n(1),
        lambda: ops.cast(1, DstT="colour"),
        lambda: ops.add(None, 1),
        lambda: ops.add(object(), 1),
    ],
)
def test_a_call_that_does_not_fit_the_signature_is_a_type_error(call: Any) -> None:
    """Missing, surplus and impossible arguments are mistakes of Python's kind."""
    with pytest.raises(TypeError):
        call()


def test_ragged_lists_are_refused() -> None:
    """A tensor is rectangular."""
    with pytest.raises(InvalidArgumentError, match="different lengths"):
        constant([[1, 2], [3]])


def test_a_constant_takes_a_shape() -> None:
    """Elements are put into form; one element fills it."""
    assert value_of(constant([1, 2, 3, 4], shape=(2, 2))).tolist() == [[1, 2], [3, 4]]
    assert value_of(constant(7, shape=(2,))).tolist() == [7, 7]
    with pytest.raises(InvalidArgumentError, match="3 elements do not fill"):
        constant([1, 2, 3], shape=(2, 2))
