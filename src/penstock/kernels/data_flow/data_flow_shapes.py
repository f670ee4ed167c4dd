"""Shapes of queues, stacks, arrays of tensors, and what is taken out of them.

In:   nodes of this folder's ops.
Out:  shape rules; the handles of arrays of tensors point to an element.
Not:  knows no length.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import SCALAR, UNKNOWN, TensorShape
from penstock.kernels.api.partial_shapes import concat, dim, merge, part_of, shape
from penstock.kernels.api.shape_context import Held, ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures({
    """
    AccumulatorNumAccumulated BarrierIncompleteSize BarrierReadySize FIFOQueueV2
    MapIncompleteSize MapSize MutexLock MutexV2 OrderedMapIncompleteSize OrderedMapSize
    PaddingFIFOQueueV2 PriorityQueueV2 QueueIsClosed QueueIsClosedV2 QueueSize QueueSizeV2
    RandomShuffleQueueV2 ResourceAccumulatorNumAccumulated StageSize TensorArraySize
    TensorArraySizeV2 TensorArraySizeV3 GetSessionHandle GetSessionHandleV2
    """: "-> []",
    """
    TensorArrayScatter TensorArrayScatterV2 TensorArrayScatterV3 TensorArraySplit TensorArraySplitV2
    TensorArraySplitV3 TensorArrayUnpack TensorArrayWrite TensorArrayWriteV2 TensorArrayWriteV3
    """: "-> []",
    """
    Barrier ConditionalAccumulator FIFOQueue PaddingFIFOQueue PriorityQueue RandomShuffleQueue
    ResourceConditionalAccumulator SparseConditionalAccumulator Stack StackV2 TensorArray
    """: "-> [2]",
    "StackPush StackPushV2": "*, s -> s",
})  # fmt: skip


@shape_rule("TensorArrayV2", "TensorArrayV3")
def tensor_array(node: ShapeContext) -> Sequence[TensorShape]:
    """A handle; it points to elements, if they must all have one shape."""
    element = node.attrs.shape("element_shape")
    has_flow = node.attrs.op.name == "TensorArrayV3"
    is_one = has_flow and node.attrs.bool("identical_element_shapes")
    if is_one or element.is_fully_defined:
        node.holds[0] = Held(element, node.attrs.dtype("dtype"))
    return (shape(2), SCALAR) if has_flow else (shape(2),)


@shape_rule("TensorArrayGrad", "TensorArrayGradV2", "TensorArrayGradV3", "TensorArrayGradWithShape")
def tensor_array_grad(node: ShapeContext) -> Sequence[TensorShape]:
    """A handle of an array whose elements are like the other one's."""
    held, name = node.held(0), node.attrs.op.name
    if held is not None:
        front = node.sizes(2) if name == "TensorArrayGradWithShape" else SCALAR
        node.holds[0] = Held(concat(front, held.shape), held.dtype)
    return (shape(2), SCALAR)[: len(node.attrs.output_types)]


def _element(node: ShapeContext) -> TensorShape:
    held = node.held(0)
    return UNKNOWN if held is None else held.shape


@shape_rule("TensorArrayRead", "TensorArrayReadV2", "TensorArrayReadV3")
def tensor_array_read(node: ShapeContext) -> TensorShape:
    """One element."""
    return _element(node)


@shape_rule("TensorArrayGather", "TensorArrayGatherV2", "TensorArrayGatherV3", "TensorArrayPack")
def tensor_array_gather(node: ShapeContext) -> TensorShape:
    """As many elements as there are indices, which are alike."""
    element = merge(_element(node), node.attrs.shape("element_shape"))
    has_indices = node.attrs.op.name != "TensorArrayPack"
    return concat(shape(dim(node.input(1), 0) if has_indices else None), element)


@shape_rule("TensorArrayConcat", "TensorArrayConcatV2", "TensorArrayConcatV3")
def tensor_array_concat(node: ShapeContext) -> Sequence[TensorShape]:
    """Nobody knows how long the elements are together, nor how many they are."""
    rest = merge(node.attrs.shape("element_shape_except0"), part_of(_element(node), 1))
    return concat(shape(None), rest), shape(None)


@shape_rule("Batch")
def batch(node: ShapeContext) -> Sequence[TensorShape]:
    """As many rows as came together; where each came from; the batch's number."""
    rows = [concat(shape(None), part_of(one, 1)) for one in node.inputs]
    return [*rows, shape(None, 3), SCALAR]


@shape_rule("Unbatch", "UnbatchGrad")
def unbatch(node: ShapeContext) -> TensorShape:
    """Some of the rows."""
    given = node.input(0)
    return UNKNOWN if given.dims is None else concat(shape(None), part_of(given, 1))


@shape_rule(
    "CollectiveReduce", "CollectiveReduceV2", "CollectiveAllToAllV2", "CollectiveBcastSendV2"
)
def collective_like_input(node: ShapeContext) -> TensorShape:
    """The input's."""
    return node.input(0)


@shape_rule("CollectiveGather", "CollectiveGatherV2")
def collective_gather(node: ShapeContext) -> TensorShape:
    """The rows of all members, which have equally many."""
    given, attrs = node.input(0), node.attrs
    if given.dims is None:
        return UNKNOWN
    rows = dim(given, 0)
    is_known = rows is not None and "group_size" in attrs.values
    count = rows * attrs.int("group_size") if rows is not None and is_known else None
    return concat(shape(count), part_of(given, 1))


@shape_rule("CollectiveBcastSend", "CollectiveBcastRecv")
def collective_broadcast(node: ShapeContext) -> TensorShape:
    """What the node says."""
    return node.attrs.shape("shape")


@shape_rule("CollectiveBcastRecvV2")
def collective_bcast_recv(node: ShapeContext) -> TensorShape:
    """The sizes that are the last input."""
    return node.sizes(3)


shape_signatures({"CollectiveAssignGroupV2": "-> [], []"})
