"""What the rules write means what TensorFlow's ops mean; where it would not, they write nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np
import pytest

import penstock as ps
from penstock.defs.onnx_schema import ModelProto
from penstock.kernels.api.node_list import NodeList

pytest.importorskip("onnxruntime")

RANDOM = np.random.default_rng(11)
ops = ps.ops


@pytest.fixture(autouse=True)
def no_way_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ONNX Runtime refuses is not computed by numpy, as it would be else."""

    def fail(*_args: Any) -> Any:
        raise AssertionError("ONNX Runtime has refused a model, or failed")

    monkeypatch.setattr(NodeList, "__call__", fail)


def numbers(*shape: int) -> Any:
    """Random numbers of float32."""
    return RANDOM.standard_normal(shape, np.float32)


def image() -> ps.Tensor:
    """A product of a convolution: its channels come first inside of a region."""
    x = ps.placeholder("float32", [None, 5, 6, 3], name="x")
    return ops.conv2_d(x, np.float32(np.eye(3)[None, None]), strides=[1] * 4, padding="SAME")


def matrix() -> ps.Tensor:
    """A product of matrices, in TensorFlow's own layout."""
    return ops.mat_mul(ps.placeholder("float32", [None, 3], name="x"), np.eye(3, dtype=np.float32))


def conv(x: Any, shape: Any, strides: Any = (1, 1), padding: str = "SAME", **more: Any) -> Any:
    """A convolution by random numbers."""
    whole = [1, *strides, 1]
    return ops.conv2_d(x, numbers(*shape), strides=whole, padding=padding, **more)


def read_gate(x: Any, gate: Any) -> Any:
    """A gate that is more than a factor."""
    return x * gate + gate


def batch_norm(x: Any) -> Any:
    """A normalisation by numbers that are known."""
    arrays = numbers(3), numbers(3), numbers(3), np.abs(numbers(3)) + 0.5
    return ops.fused_batch_norm_v3(x, *arrays, is_training=False, epsilon=0.01)[0]


def moments(x: Any, axis: int) -> list[Any]:
    """A mean and a variance, which become one node where there are kernels in C."""
    mean = ops.mean(x, [axis], keep_dims=True)
    return [mean, ops.mean(ops.squared_difference(x, mean), [axis], keep_dims=True)]


UNARY: Final = (
    "abs", "cos", "erf", "exp", "floor", "ceil", "neg", "relu", "relu6", "sigmoid", "sin",
    "softplus", "softsign", "square", "tanh", "reciprocal", "selu", "elu", "identity",
    "log_softmax", "softmax", "stop_gradient", "leaky_relu",
)  # fmt: skip
#: What is done to an image whose channels come first, and nearly all of which is one region.
OF_IMAGES: Final[dict[str, Callable[[Any], Any]]] = {
    **{name: getattr(ops, name) for name in UNARY},
    "leaky_relu_alpha": lambda x: ops.leaky_relu(x, alpha=0.7),
    "log": lambda x: ops.log(ops.abs(x) + 1.0),
    "rsqrt": lambda x: ops.rsqrt(ops.abs(x) + 1.0),
    "sqrt": lambda x: ops.sqrt(ops.abs(x)),
    "pow": lambda x: ops.pow(ops.abs(x) + 1.0, numbers(3)),
    "add_image": lambda x: x + numbers(2, 5, 6, 3),
    "sub_channel": lambda x: numbers(3) - x,
    "mul_row": lambda x: x * numbers(6, 3),
    "div_number": lambda x: x / np.float32(3),
    "maximum_half": lambda x: ops.maximum(x, numbers(1, 5, 1, 3)),
    "minimum_channel": lambda x: ops.minimum(numbers(3), x),
    "squared_difference": lambda x: ops.squared_difference(x, numbers(3)),
    "add_n": lambda x: ops.add_n([x, x, ops.abs(x)]),
    "bias": lambda x: ops.bias_add(x, numbers(3)),
    "several_the_same": lambda x: ops.sub(*ops.identity_n([ops.abs(x), x])),
    "conv_same": lambda x: conv(x, (3, 2, 3, 4)),
    "conv_strides": lambda x: conv(x, (3, 2, 3, 4), (2, 3)),
    "conv_valid": lambda x: conv(x, (2, 3, 3, 4), padding="VALID"),
    "conv_dilated": lambda x: conv(x, (3, 2, 3, 4), dilations=[1, 2, 3, 1]),
    "conv_explicit": lambda x: conv(
        x, (3, 3, 3, 4), padding="EXPLICIT", explicit_paddings=[0, 0, 2, 1, 0, 3, 0, 0]
    ),
    "conv_groups": lambda x: conv(conv(x, (1, 1, 3, 6)), (2, 2, 3, 4)),
    "conv_relu": lambda x: ops.relu(ops.bias_add(conv(x, (3, 3, 3, 4)), numbers(4))),
    "conv_leaky": lambda x: ops.leaky_relu(
        ops.bias_add(conv(x, (3, 3, 3, 4)), numbers(4)), alpha=0.4
    ),
    "conv_relu6": lambda x: ops.relu6(5.0 * ops.bias_add(conv(x, (3, 3, 3, 4)), numbers(4))),
    "conv_relu6_fused": lambda x: ops.relu6(
        ops.bias_add(conv(x, (3, 3, 3, 4)), np.float32([9, 9, 3, -9]))
    ),
    "depthwise": lambda x: ops.depthwise_conv2d_native(
        x, numbers(3, 2, 3, 2), strides=[1, 2, 2, 1], padding="SAME"
    ),
    "depthwise_valid": lambda x: ops.depthwise_conv2d_native(
        x, numbers(3, 2, 3, 1), strides=[1, 1, 1, 1], padding="VALID"
    ),
    "max_pool": lambda x: ops.max_pool(x, ksize=[1, 2, 3, 1], strides=[1, 2, 1, 1], padding="SAME"),
    "avg_pool": lambda x: ops.avg_pool(x, ksize=[1, 3, 2, 1], strides=[1, 1, 2, 1], padding="SAME"),
    "avg_pool_valid": lambda x: ops.avg_pool(
        x, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="VALID"
    ),
    "batch_norm": batch_norm,
    "scaled_and_moved": lambda x: ops.relu(x) * numbers(3) + numbers(1, 1, 1, 3),
    "scaled_before_and_moved": lambda x: numbers(3) + numbers(1, 3) * ops.relu(x),
    "scaled_and_read_twice": lambda x: ops.relu((y := ops.relu(x) * numbers(3)) + numbers(3)) * y,
    "scaled_by_row_and_moved": lambda x: ops.relu(x) * numbers(6, 3) + numbers(3),
    "moments": lambda x: sum(moments(x, -1)),
    "moments_of_rows": lambda x: sum(moments(x, 1)),
    "global_mean": lambda x: ops.mean(x, [1, 2]),
    "global_mean_kept": lambda x: ops.mean(x, [2, 1], keep_dims=True),
    "sum_axis": lambda x: ops.sum(x, [1]),
    "sum_kept": lambda x: ops.sum(x, [-1, 0], keep_dims=True),
    "max_axes": lambda x: ops.max(x, [1, 3]),
    "max_kept": lambda x: ops.max(x, [2], keep_dims=True),
    "min_axis": lambda x: ops.min(x, -1),
    "prod_axis": lambda x: ops.prod(x, [2]),
    "reshape": lambda x: ops.reshape(x, [-1, 18]),
    "transpose": lambda x: ops.transpose(x, [0, 2, 3, 1]),
    "concat_channels": lambda x: ops.concat_v2([x, ops.abs(x)], -1),
    "concat_rows": lambda x: ops.concat_v2([x, numbers(2, 2, 6, 3)], 1),
    "pad": lambda x: ops.pad(x, [[0, 0], [1, 2], [0, 3], [0, 1]]),
    "pad_value": lambda x: ops.pad_v2(x, [[0, 1], [0, 2], [3, 0], [0, 0]], 1.5),
    "greater": lambda x: ops.greater(x, numbers(3)),
    "greater_equal": lambda x: ops.greater_equal(x, ops.abs(x)),
    "less": lambda x: ops.less(x, 0.1),
    "less_equal": lambda x: ops.less_equal(ops.abs(x), x),
    "gelu": lambda x: 0.5 * x * ops.erfc(-x * np.float32(math.sqrt(0.5))),
    "hard_swish": lambda x: x * (ops.relu6(x + 3.0) / np.float32(6)),
    "hard_swish_by_product": lambda x: ops.relu6(np.float32(3) + x) * np.float32(1 / 6) * x,
    "gelu_by_division": lambda x: x / np.float32(2) * ops.erfc(x / np.float32(-math.sqrt(2))),
}
#: What is done to a matrix of three columns.
OF_MATRICES: Final[dict[str, Callable[[Any], Any]]] = {
    "mat_mul": lambda x: ops.mat_mul(x, numbers(3, 4)),
    "transposed": lambda x: ops.mat_mul(x, numbers(4, 3), transpose_b=True),
    "transposed_both": lambda x: ops.mat_mul(x, numbers(2, 8), transpose_a=True, transpose_b=True),
    "mat_mul_relu": lambda x: ops.relu(ops.bias_add(ops.mat_mul(x, numbers(3, 4)), numbers(4))),
    "mat_mul_tanh": lambda x: ops.tanh(ops.bias_add(ops.mat_mul(x, numbers(3, 4)), numbers(4))),
    "bias_row": lambda x: ops.bias_add(x, numbers(3)),
    "batches": lambda x: ops.batch_mat_mul_v2(numbers(2, 1, 5, 4), ops.reshape(x, [1, 2, 4, 3])),
    "batches_turned": lambda x: ops.batch_mat_mul_v2(
        ops.reshape(x, [2, 4, 3]), numbers(2, 5, 4), adj_x=True, adj_y=True
    ),
    "einsum": lambda x: ops.einsum(
        [ops.reshape(x, [2, 4, 3]), numbers(3, 5)], equation="abc,cd->bad"
    ),
    "einsum_upper": lambda x: ops.einsum(
        [ops.reshape(x, [8, 3]), numbers(8, 5)], equation="BT,BS->TS"
    ),
    "softmax": ops.softmax,
    "log_softmax": ops.log_softmax,
    "squeeze": lambda x: ops.squeeze(ops.reshape(x, [1, 8, 1, 3]), squeeze_dims=[-2, 0]),
    "expand_dims": lambda x: ops.expand_dims(x, -2),
    "expand_first": lambda x: ops.expand_dims(x, 0),
    "concat": lambda x: ops.concat_v2([x, numbers(8, 2)], 1),
    "mirror": lambda x: ops.mirror_pad(ops.reshape(x, [8, 3]), [[2, 1], [0, 2]], mode="REFLECT"),
    "moments": lambda x: sum(moments(x, 1)),
    "sum_last": lambda x: ops.sum(x, [-1]),
    "mean_kept": lambda x: ops.mean(x, [1], keep_dims=True),
    "max_all": lambda x: ops.max(x, [0, 1]),
}
#: What no region has, each for a reason of its own.
REFUSED: Final[dict[str, Callable[[Any], Any]]] = {
    "channels_first": lambda x: ops.bias_add(x, numbers(5), data_format="NCHW"),
    "a_shape_that_is_computed": lambda x: ops.reshape(x, ops.concat_v2([ops.shape(x), [1]], 0)),
    "an_empty_shape": lambda x: ops.reshape(x[:0], [0, 7]),
    "a_filter_that_is_computed": lambda x: ops.conv2_d(
        x, ops.reshape(ops.mean(x, [0, 1, 2]), [1, 1, 3, 1]), strides=[1] * 4, padding="SAME"
    ),
    "training": lambda x: ops.fused_batch_norm_v3(
        x, numbers(3), numbers(3), numbers(0), numbers(0), is_training=True
    )[0],
    "statistics_that_are_read": lambda x: ops.fused_batch_norm_v3(
        x, numbers(3), numbers(3), numbers(3), np.abs(numbers(3)), is_training=False
    )[1],
    "symmetric": lambda x: ops.mirror_pad(x, [[0, 0], [1, 1], [0, 0], [0, 0]], mode="SYMMETRIC"),
    "axes_that_are_missing": lambda x: ops.squeeze(ops.mean(x, [1], keep_dims=True)),
    "a_tail_that_would_vanish": lambda x: ops.log(ops.erfc(ops.abs(x) + 4.0)),
    "a_gate_of_something_else": lambda x: ops.erfc(x) * ops.exp(x),
    "a_gate_that_is_read": lambda x: read_gate(x, ops.erfc(-x)),
    "a_gate_of_a_quotient": lambda x: ops.erfc(x) * (np.float32(2) / x),
    "stretched_einsum": lambda x: ops.einsum([x, x], equation="abcd,abcd->a"),
}
OPS_OF_REGIONS: Final = {"Const", "_Arg", "_Retval", "_OnnxRegion", "NoOp"}


def compared(make: Callable[[], Any], x: Any) -> set[str]:
    """Run a graph with regions and without; the ops that were left to numpy."""
    graph = ps.Graph()
    with graph.as_default():
        ps.identity(make(), name="y")
    answers, left = [], set[str]()
    for accelerate in (False, True):
        config = ps.Config(
            accelerate=accelerate, check_graphs=True, limits=ps.Limits(region_products=0)
        )
        metadata = ps.RunMetadata()
        options = ps.RunOptions(output_partition_graphs=True)
        with ps.Session(graph, config=config) as session:
            answers.append(session.run("y:0", {"x:0": x}, options, metadata))
        left = {node.op for part in metadata.partition_graphs for node in part.node}
    wanted, given = answers
    assert given.dtype == wanted.dtype
    assert given.shape == wanted.shape
    np.testing.assert_allclose(given, wanted, rtol=2e-5, atol=2e-5)
    assert "_OnnxRegion" in left
    return left - OPS_OF_REGIONS


@pytest.mark.parametrize("name", OF_IMAGES)
def test_images(name: str) -> None:
    """With channels first inside, and last outside, sizes known but for the batch's."""
    left = compared(lambda: OF_IMAGES[name](image()), 2 * numbers(2, 5, 6, 3))

    assert left == set()


@pytest.mark.parametrize("name", OF_MATRICES)
def test_matrices(name: str) -> None:
    """In TensorFlow's layout."""
    left = compared(lambda: OF_MATRICES[name](matrix()), 2 * numbers(8, 3))

    assert left == set()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_left_to_numpy(name: str) -> None:
    """Where ONNX has nothing that means the same, the op stays; the answers are numpy's."""
    assert compared(lambda: REFUSED[name](image()), numbers(2, 5, 6, 3))


def operators(make: Callable[[Any], Any]) -> set[str]:
    """The operators of ONNX that some work on an image is written with."""
    with ps.Graph().as_default() as graph:
        ps.identity(make(image()), name="y")
    config, metadata = ps.Config(limits=ps.Limits(region_products=0)), ps.RunMetadata()
    with ps.Session(graph, config=config) as session:
        options = ps.RunOptions(output_partition_graphs=True)
        session.run("y:0", {"x:0": numbers(2, 5, 6, 3)}, options, metadata)
    nodes = [node for part in metadata.partition_graphs for node in part.node]
    (model,) = [node.attr["model"].s for node in nodes if node.op == "_OnnxRegion"]
    return {node.op_type for node in cast("Any", ModelProto).FromString(model).graph.node}


def test_what_is_scaled_and_moved_by_channel_is_one_operator() -> None:
    """ONNX Runtime has that in its own layout of images; no product is left that nobody reads."""
    found = operators(lambda x: ops.relu(x) * numbers(3) + numbers(1, 1, 1, 3))

    assert "BatchNormalization" in found
    assert "Mul" not in found


@pytest.mark.parametrize("name", ["hard_swish", "hard_swish_by_product"])
def test_a_hard_swish_is_two_operators(name: str) -> None:
    """Neither the sum nor its limits are left."""
    found = operators(OF_IMAGES[name])

    assert found >= {"HardSigmoid", "Mul"}
    assert not found & {"Add", "Clip", "Div"}


@pytest.mark.parametrize(
    "make",
    [
        lambda x: ops.relu6(x + 3.0) / np.float32(6),
        lambda x: ops.relu6(x + 3.0) / np.float32(6) * ops.exp(x),
        lambda x: ops.relu6(x + 3.0) / np.float32(5) * x,
        lambda x: ops.relu6(x + 2.0) / np.float32(6) * x,
        lambda x: np.float32(6) / ops.relu6(x + 3.0) * x,
    ],
)
def test_others_are_as_they_are(make: Callable[[Any], Any]) -> None:
    """Where digits near -3 count, or a number is another one."""
    assert "HardSigmoid" not in operators(make)


def test_what_is_scaled_by_place_is_not() -> None:
    """There is no operator for that."""
    assert "Mul" in operators(lambda x: ops.relu(x) * numbers(6, 3) + numbers(3))


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("size", [7, 8])
def test_images_of_any_size(padding: str, size: int) -> None:
    """Borders are found in the step where sizes are known there only; holes have to know them."""

    def network(**more: Any) -> Any:
        x = ps.placeholder("float32", [None, None, None, 3], name="x")
        y = conv(x, (3, 2, 3, 4), (2, 2), padding)
        pooled = ops.max_pool(y, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding=padding)
        return conv(pooled, (2, 2, 4, 2), padding=padding, **more)

    x = numbers(1, size, size + 1, 3)
    assert compared(network, x) == set()
    if padding == "SAME":
        assert compared(lambda: network(dilations=[1, 2, 1, 1]), x)


def test_volumes() -> None:
    """Convolutions in three dimensions."""

    def network() -> Any:
        x = ps.placeholder("float32", [1, 4, 5, 6, 2], name="x")
        y = ops.conv3_d(x, numbers(3, 2, 1, 2, 3), strides=[1, 2, 1, 1, 1], padding="SAME")
        return ops.mean(ops.relu(y), [1, 2, 3])

    assert compared(network, numbers(1, 4, 5, 6, 2)) == set()
