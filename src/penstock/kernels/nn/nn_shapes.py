"""Shapes of activations, normalisation, losses, recurrent cells and candidates.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  what slides over an image, window_shapes has that.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.partial_shapes import (
    Dim,
    at_least_rank,
    broadcast,
    dim,
    merge_dims,
    replaced,
    shape,
    with_rank,
)
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

_SAMPLER = "[b,?] -> [$num_sampled], [b,$num_true], [$num_sampled]"

shape_signatures({
    "Elu LeakyRelu Relu Relu6 Selu Softplus Softsign": "s -> s",
    """
    EluGrad LeakyReluGrad Relu6Grad ReluGrad SeluGrad SoftplusGrad SoftsignGrad
    """: "s, s -> s",
    "InvGrad ReciprocalGrad RsqrtGrad SigmoidGrad SqrtGrad TanhGrad": "s, * -> s",
    """
    AllCandidateSampler LogUniformCandidateSampler UniformCandidateSampler
    """: _SAMPLER,
    "BatchNormWithGlobalNormalization": "[a,b,c,n], [n], [n], [n], [n] -> [a,b,c,n]",
    "BatchNormWithGlobalNormalizationGrad":
        "[a,b,c,n], [n], [n], [n], [a,b,c,n] -> [a,b,c,n], [n], [n], [n], [n]",
    "CTCBeamSearchDecoder": "[?,b,?], [b] -> [?,2], [?], [2], [b,$top_paths]",
    "CTCGreedyDecoder": "[?,b,?], [b] -> [?,2], [?], [2], [b,1]",
    "CTCLoss": "[t,b,c], [n,?], [n], [b] -> [b], [t,b,c]",
    "ComputeAccidentalHits": "[?,?], [?] -> [n], [n], [n]",
    "GRUBlockCell": "[b,?], [b,c], *, *, *, * -> [b,c], [b,c], [b,c], [b,c]",
    "GRUBlockCellGrad":
        "[b,i], [b,c], *, *, [d], *, *, *, *, * -> [b,i], [b,c], [b,c], [b,d]",
    "InTopK": "[n,?], [n] -> [n]",
    "InTopKV2": "[n,?], [n], [] -> [n]",
    "IsotonicRegression": "[b,n] -> [b,n], [b,n]",
    "LRN": "[a,b,c,d] -> [a,b,c,d]",
    "LRNGrad": "s, s, s -> s",
    "LSTMBlockCell": "[b,?], [b,c], *, *, *, *, *, * -> "
                     "[b,c], [b,c], [b,c], [b,c], [b,c], [b,c], [b,c]",
    "LogSoftmax Softmax _ScaledSoftmax": "[...,n] -> [...,n]",
    "NthElement": "[...,?], [] -> [...]",
    "SparseSoftmaxCrossEntropyWithLogits": "[n,c], [n] -> [n], [n,c]",
    "TopK": "[...,?] -> [...,$k], [...,$k]",
    "TopKV2": "[...,?], * -> [...,#1], [...,#1]",
})  # fmt: skip


def _channel_axis(node: ShapeContext) -> int:
    """Where the channels are."""
    return 1 if node.attrs.str("data_format").startswith("NC") else -1


@shape_rule("BiasAdd", "BiasAddV1")
def bias_add(node: ShapeContext) -> TensorShape:
    """The values' own; the bias says how many channels there are."""
    given, bias = at_least_rank(node.input(0), 2), with_rank(node.input(1), 1)
    axis = _channel_axis(node) if node.attrs.has("data_format") else -1
    channels = merge_dims(dim(given, axis), dim(bias, 0))
    return replaced(given, axis, channels)


@shape_rule("BiasAddGrad")
def bias_add_grad(node: ShapeContext) -> TensorShape:
    """One number per channel."""
    return shape(dim(at_least_rank(node.input(0), 2), _channel_axis(node)))


@shape_rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "_FusedBatchNormEx")
def fused_batch_norm(node: ShapeContext) -> Sequence[TensorShape]:
    """The values' own, and numbers per channel."""
    given, axis = at_least_rank(node.input(0), 4), _channel_axis(node)
    channels = dim(given, axis)
    is_training = node.attrs.bool("is_training")
    for slot in range(1, 3 if is_training else 5):
        channels = merge_dims(channels, dim(with_rank(node.input(slot), 1), 0))
    outputs = [replaced(given, axis, channels), *[shape(channels)] * 4]
    # What is kept for the gradient besides has a shape that depends on the kernel.
    return outputs + [UNKNOWN] * (len(node.attrs.output_types) - len(outputs))


@shape_rule("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(node: ShapeContext) -> Sequence[TensorShape]:
    """The values' own, numbers per channel, and twice nothing."""
    given, axis = at_least_rank(node.input(0), 4), _channel_axis(node)
    channels = merge_dims(dim(given, axis), dim(node.input(1), axis))
    channels = merge_dims(channels, dim(with_rank(node.input(2), 1), 0))
    numbers = shape(channels)
    return replaced(given, axis, channels), numbers, numbers, shape(0), shape(0)


@shape_rule("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(node: ShapeContext) -> Sequence[TensorShape]:
    """One loss per row of what both are broadcast to."""
    both = broadcast(*node.inputs)
    if both.dims is None:
        both = shape(None, None)
    rows = with_rank(both, 2)
    return shape(dim(rows, 0)), rows


@shape_rule("BlockLSTM", "BlockLSTMV2")
def block_lstm(node: ShapeContext) -> Sequence[TensorShape]:
    """All gates and states, in each step, of each example."""
    values, bias = with_rank(node.input(1), 3), dim(with_rank(node.input(8), 1), 0)
    made = shape(dim(values, 0), dim(values, 1), _divided(bias, 4))
    return [made] * 7


@shape_rule("BlockLSTMGrad", "BlockLSTMGradV2")
def block_lstm_grad(node: ShapeContext) -> Sequence[TensorShape]:
    """The gradients of inputs have their shapes."""
    return [with_rank(node.input(1), 3), *node.inputs[2:9]]


@shape_rule("LSTMBlockCellGrad")
def lstm_block_cell_grad(node: ShapeContext) -> Sequence[TensorShape]:
    """The gradients of the state, of the four gates, and of the peepholes."""
    state, width = with_rank(node.input(1), 2), dim(node.input(1), 1)
    gates = shape(dim(node.input(0), 0), None if width is None else 4 * width)
    return [state, gates, *[shape(width)] * 3]


@shape_rule("_FusedGates")
def fused_gates(node: ShapeContext) -> Sequence[TensorShape]:
    """As many equal parts of a product as there are gates."""
    count = node.attrs.int("num_split")
    width = _divided(dim(node.input(-1), 0), count)
    return [shape(dim(node.input(0), 0), width)] * count


@shape_rule("_LayerNorm")
def layer_norm(node: ShapeContext) -> TensorShape:
    """That of the terms, the scale and the offset, as they are broadcast."""
    terms = node.attrs.int("N")
    return broadcast(*node.inputs[:terms], *node.inputs[terms + 1 :])


@shape_rule("ApproxTopK")
def approx_top_k(node: ShapeContext) -> Sequence[TensorShape]:
    """One axis becomes k long, if what was found is put together."""
    given, axis = node.input(0), node.attrs.int("reduction_dimension")
    is_whole = node.attrs.bool("aggregate_to_topk")
    found = replaced(given, axis, node.attrs.int("k") if is_whole else None)
    return found, found


def _divided(size: Dim, by: int) -> Dim:
    if size is None:
        return None
    if size % by:
        raise InvalidArgumentError(f"Dimension size must be evenly divisible by {by} but is {size}")
    return size // by
