"""What the builder knows of shapes, and which calls fail where they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors

ops = ps.ops


def zeros(*sizes: int) -> ps.Tensor:
    return ps.constant(np.zeros(sizes, np.float32))


#: Calls that TensorFlow 2.21 refuses when the graph is built, each with what it says.
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "product": (
        lambda: ops.mat_mul(zeros(2, 3), zeros(4, 5)),
        "Dimensions must be equal, but are 3 and 4 for 'MatMul' (op: 'MatMul') "
        "with input shapes: [2,3], [4,5].",
    ),
    "rank": (lambda: ops.mat_mul(zeros(2), zeros(4, 5)), "Shape must be rank 2 but is rank 1"),
    "sum": (lambda: zeros(2) + zeros(3), "Dimensions must be equal, but are 2 and 3"),
    "reshape": (
        lambda: ops.reshape(zeros(6), [4]),
        "Cannot reshape a tensor with 6 elements to shape [4] (4 elements)",
    ),
    "concat": (
        lambda: ops.concat_v2([zeros(2, 3), zeros(2, 4)], 0),
        "must be equal, but are 3 and 4",
    ),
    "convolution": (
        lambda: ops.conv2_d(zeros(1, 2, 2, 3), zeros(3, 3, 3, 4), [1, 1, 1, 1], "VALID"),
        "Negative dimension size caused by subtracting 3 from 2",
    ),
    "pack": (
        lambda: ops.pack([zeros(2), zeros(3)]),
        "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2] and [3].",
    ),
    "squeeze": (
        lambda: ops.squeeze(zeros(2, 3), squeeze_dims=[0]),
        "Can not squeeze dim[0], expected a dimension of 1, got 2",
    ),
    "reduction": (
        lambda: ops.sum(zeros(2), 1),
        "Invalid reduction dimension 1 for input with 1 dimensions",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_calls_fail_where_they_are_written(case: str) -> None:
    """Shapes that cannot go together are refused in TensorFlow's words, before any session."""
    call, says = REFUSED[case]
    with ps.Graph().as_default(), pytest.raises(errors.InvalidArgumentError) as caught:
        call()
    assert says in caught.value.message


def test_what_is_refused_leaves_no_node_behind() -> None:
    """The graph is as it was but for the constants of the call; the next call goes on."""
    with ps.Graph().as_default() as graph:
        x = ps.placeholder("float32", [2, 3], name="x")
        with pytest.raises(errors.InvalidArgumentError):
            ops.mat_mul(x, x, name="y")
        assert [operation.name for operation in graph.get_operations()] == ["x"]
        assert x.consumers() == []
        y = ops.mat_mul(x, x, transpose_b=True)
    with ps.Session(graph) as session:
        assert session.run(y, {x: np.ones((2, 3))}).tolist() == [[3, 3], [3, 3]]


def test_what_is_refused_in_a_branch_leaves_none_there() -> None:
    """A branch whose builder catches the error builds something else instead."""

    def fallback() -> Any:
        try:
            return ops.mat_mul(x, x)
        except errors.InvalidArgumentError:
            return ops.neg(x)

    with ps.Graph().as_default() as graph:
        x = ps.placeholder("float32", [2, 3])
        p = ps.placeholder("bool", [])
        y = ps.cond(p, fallback, lambda: x)
        assert y.shape == ps.TensorShape.of([2, 3])
    with ps.Session(graph) as session:
        assert session.run(y, {x: np.ones((2, 3)), p: True}).tolist() == [[-1] * 3] * 2


def test_tensors_know_their_shapes() -> None:
    """Also those that follow from sizes that the graph computes."""
    with ps.Graph().as_default():
        x = ps.placeholder("float32", [None, 28, 28, 1])
        y = ops.conv2_d(x, zeros(5, 5, 1, 8), [1, 2, 2, 1], "SAME")
        flat = ops.reshape(y, ops.pack([ops.shape(y)[0], 14 * 14 * ops.shape(y)[3]]))
        assert str(y.shape) == "[?,14,14,8]"
        assert repr(flat) == f"<Tensor {flat.name} float32[?,1568]>"


def test_a_loop_that_is_closed_has_shapes() -> None:
    """While a loop is built, its variables may become anything; then what they keep is known."""
    inside = []

    def body(i: Any, x: Any, grown: Any) -> Any:
        inside.append(x)
        assert x.shape.dims is None
        return i + 1, x * 2.0, ops.concat_v2([grown, x], 0)

    with ps.Graph().as_default():
        first = [ps.constant(0), zeros(1, 4), zeros(3, 4)]
        i, x, grown = ps.while_loop(lambda i, *_: i < 3, body, first)
        assert [str(one.shape) for one in (i, x, grown)] == ["[]", "[1,4]", "[?,4]"]
        assert str(inside[0].shape) == "[1,4]"


def test_imported_nodes_have_shapes() -> None:
    """A definition that is merged into a graph is inferred as if it were written there."""
    with ps.Graph().as_default() as written:
        ops.tanh(ps.placeholder("float32", [2, None], name="x"), name="y")
    with ps.Graph().as_default() as graph:
        x = zeros(2, 7)
        (y,) = graph.import_graph_def(
            written.as_graph_def(), input_map={"x:0": x}, return_elements=["y:0"]
        )
        assert str(y.shape) == "[2,7]"
