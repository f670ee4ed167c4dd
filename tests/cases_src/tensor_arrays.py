"""TensorArrays of the first two generations, and tables and queues of reference handles."""

from __future__ import annotations

from typing import Any

from cases_src.casebook import Steps, f32, f64, graph, i32, i64, s, steps

_ROWS = f32([[1, 2], [3, 4], [5, 6]])


def first_generation(tf: Any, dtype: str) -> Any:
    """TensorArray: handles are references to strings, and flow orders the ops."""
    raw = tf.raw_ops
    value = tf.cast(_ROWS, dtype)
    array = raw.TensorArray(size=3, dtype=dtype, dynamic_size=True, clear_after_read=False)
    flow = raw.TensorArrayWrite(handle=array, index=3, value=value[0], flow_in=0.0)
    flow = raw.TensorArrayScatter(handle=array, indices=[2, 0, 1], value=value, flow_in=flow)
    return [
        raw.TensorArrayRead(handle=array, index=3, flow_in=flow, dtype=dtype),
        raw.TensorArraySize(handle=array, flow_in=flow),
        raw.TensorArrayGather(handle=array, indices=[1, 1, 3], flow_in=flow, dtype=dtype),
        *raw.TensorArrayConcat(handle=array, flow_in=flow, dtype=dtype),
        raw.TensorArrayPack(handle=array, flow_in=flow, dtype=dtype),
    ]


def first_generation_split(tf: Any) -> Any:
    """Split, unpack, and the gradient's array, which adds up."""
    raw = tf.raw_ops
    array = raw.TensorArray(size=3, dtype="float32", clear_after_read=False)
    flow = raw.TensorArraySplit(
        handle=array, value=f32([1, 2, 3, 4, 5, 6]), lengths=i64([1, 3, 2]), flow_in=0.0
    )
    grads = raw.TensorArrayGrad(handle=tf.identity(array), flow_in=flow, source="g")
    grad_flow = raw.TensorArrayWrite(handle=grads, index=1, value=f32([1, 1, 1]), flow_in=flow)
    again = raw.TensorArrayWrite(handle=grads, index=1, value=f32([2, 3, 4]), flow_in=grad_flow)
    other = raw.TensorArray(size=2, dtype="int32")
    unpacked = raw.TensorArrayUnpack(handle=other, value=i32([[1], [2]]), flow_in=0.0)
    read = raw.TensorArrayRead(handle=grads, index=1, flow_in=again, dtype="float32")
    concat = raw.TensorArrayConcat(handle=array, flow_in=flow, dtype="float32")
    with tf.control_dependencies([read]):
        close = raw.TensorArrayClose(handle=grads)
    return [
        read,
        *concat,
        raw.TensorArrayRead(handle=other, index=1, flow_in=unpacked, dtype="int32"),
        close,
    ]


def second_generation(tf: Any) -> Any:
    """TensorArrayV2: handles are strings."""
    raw = tf.raw_ops
    array = raw.TensorArrayV2(size=2, dtype="float64", clear_after_read=False)
    flow = raw.TensorArrayWriteV2(handle=array, index=1, value=f64([1, 2]), flow_in=0.0)
    flow = raw.TensorArrayWriteV2(handle=array, index=0, value=f64([3, 4]), flow_in=flow)
    grads = raw.TensorArrayGradV2(handle=array, flow_in=flow, source="g")
    back = raw.TensorArrayScatterV2(
        handle=grads, indices=[0, 1], value=f64([[1, 2], [3, 4]]), flow_in=flow
    )
    gathered = raw.TensorArrayGatherV2(handle=grads, indices=[1], flow_in=back, dtype="float64")
    with tf.control_dependencies([gathered]):
        close = raw.TensorArrayCloseV2(handle=grads)
    return [gathered, raw.TensorArraySizeV2(handle=array, flow_in=flow), close]


def grad_with_shape(tf: Any) -> Any:
    """The gradient's array may have elements of a larger shape."""
    raw = tf.raw_ops
    array = raw.TensorArrayV3(size=2, dtype="float32", element_shape=[2], clear_after_read=False)
    flow = raw.TensorArrayWriteV3(
        handle=array.handle, index=0, value=f32([1, 2]), flow_in=array.flow
    )
    grads = raw.TensorArrayGradWithShape(
        handle=array.handle, flow_in=flow, shape_to_prepend=i32([3]), source="g"
    )
    return [
        raw.TensorArraySizeV3(handle=grads.grad_handle, flow_in=grads.flow_out),
        raw.TensorArrayReadV3(
            handle=grads.grad_handle, index=1, flow_in=grads.flow_out, dtype="float32"
        ),
    ]


def old_write_twice(tf: Any) -> Any:
    """A place is written once."""
    raw = tf.raw_ops
    array = raw.TensorArray(size=1, dtype="float32")
    flow = raw.TensorArrayWrite(handle=array, index=0, value=1.0, flow_in=0.0)
    return raw.TensorArrayWrite(handle=array, index=0, value=1.0, flow_in=flow)


def old_table(tf: Any, op: str) -> Any:
    """Tables whose handles are references."""
    raw, args = tf.raw_ops, {"key_dtype": "int64", "value_dtype": "float32"}
    shape: list[int] = []
    if op == "MutableHashTableOfTensors":
        shape = [2]
        args["value_shape"] = shape
    table = getattr(raw, op)(shared_name="t", **args)
    default = f32([-1.0, -2.0] if shape else -1.0)
    values = f32([[1, 2], [3, 4]] if shape else [1, 3])
    insert = raw.LookupTableInsert(table_handle=table, keys=i64([5, 7]), values=values)
    find = raw.LookupTableFind(table_handle=table, keys=i64([7, 9]), default_value=default)
    size = raw.LookupTableSize(table_handle=table)
    exported = raw.LookupTableExport(table_handle=table, Tkeys="int64", Tvalues="float32")
    order = tf.argsort(exported.keys)
    return steps([insert], [find, size, tf.gather(exported.keys, order)])


def old_queue(tf: Any, op: str) -> Any:
    """Queues whose handles are references."""
    raw = tf.raw_ops
    args: dict[str, Any] = {"shapes": [[1]]}
    if op == "PaddingFIFOQueue":
        args = {"shapes": [tf.TensorShape([None])]}
    if op == "RandomShuffleQueue":
        args |= {"seed": 3, "seed2": 4}
    types = [] if op == "PriorityQueue" else ["float32"]
    queue = getattr(raw, op)(component_types=types or ["float32"], shared_name="q", **args)
    first = [i64(2), f32([1])] if op == "PriorityQueue" else [f32([1])]
    second = [i64(1), f32([2])] if op == "PriorityQueue" else [f32([2])]
    if op == "PaddingFIFOQueue":
        second = [f32([2, 3])]
    declared = ["int64", "float32"] if op == "PriorityQueue" else ["float32"]
    return steps(
        [raw.QueueEnqueue(handle=queue, components=first)],
        [raw.QueueEnqueue(handle=queue, components=second)],
        [raw.QueueSize(handle=queue), raw.QueueIsClosed(handle=queue)],
        raw.QueueDequeueMany(handle=queue, n=2, component_types=declared),
        [raw.QueueClose(handle=queue)],
        [raw.QueueIsClosed(handle=queue)],
        raw.QueueDequeue(handle=queue, component_types=declared),
    )


def closed_queue(tf: Any) -> Any:
    """Whether a queue of resources is closed."""
    raw = tf.raw_ops
    queue = raw.FIFOQueueV2(component_types=["int32"], shared_name="q")
    return steps(
        [raw.QueueIsClosedV2(handle=queue)],
        [raw.QueueCloseV2(handle=queue)],
        [raw.QueueIsClosedV2(handle=queue)],
        [raw.QueueEnqueueV2(handle=queue, components=[1])],
    )


def session_tensors(tf: Any, op: str) -> Any:
    """A tensor stays in the session under its handle; a handle must be fetched to be kept."""
    handle = getattr(tf.raw_ops, op)(value=f32([1, 2]))
    return Steps((({}, [tf.raw_ops.Shape(input=tf.identity(handle))]),))


def no_session_tensor(tf: Any) -> Any:
    """A handle that nobody made."""
    return tf.raw_ops.GetSessionTensor(handle=s(b"x;0;/cpu"), dtype="float32")


def no_session_tensor_to_delete(tf: Any) -> Any:
    """A handle that nobody made cannot be given up."""
    return tf.raw_ops.DeleteSessionTensor(handle=s(b"x;0;/cpu"))


def pushed_batches(tf: Any) -> Any:
    """Each list of a batch gets a row of its own."""
    raw = tf.raw_ops
    lists = [
        raw.TensorListFromTensor(tensor=f32(rows), element_shape=i32([2]))
        for rows in ([[1, 2]], [[3, 4]])
    ]
    pushed = raw.TensorListPushBackBatch(
        input_handles=tf.stack(lists), tensor=f32([[5, 6], [7, 8]])
    )
    return [
        raw.TensorListStack(input_handle=pushed[n], element_shape=i32([2]), element_dtype="float32")
        for n in range(2)
    ]


def map_keys(tf: Any) -> Any:
    """The keys of a map as one tensor."""
    raw = tf.raw_ops
    made = raw.EmptyTensorMap()
    for key in (3, 1):
        made = raw.TensorMapInsert(input_handle=made, key=i32(key), value=f32(key))
    keys = raw.TensorMapStackKeys(input_handle=made, key_dtype="int32")
    return [tf.sort(keys), raw.TensorMapSize(input_handle=made)]


def optional(tf: Any) -> Any:
    """Whether an optional holds anything."""
    raw = tf.raw_ops
    some = raw.OptionalFromValue(components=[f32([1, 2]), i32(3)])
    none = raw.OptionalNone()
    got = raw.OptionalGetValue(
        optional=some, output_types=["float32", "int32"], output_shapes=[[2], []]
    )
    return [raw.OptionalHasValue(optional=some), raw.OptionalHasValue(optional=none), *got]


def staged_map(tf: Any, op: str) -> Any:
    """A staging area by key."""
    raw, kind = tf.raw_ops, op
    common = {"dtypes": ["float32"], "shared_name": "m"}
    stage = [
        getattr(raw, f"{kind}Stage")(key=i64(k), indices=i32([0]), values=[f32(v)], **common)
        for k, v in ((7, 1.0), (2, 2.0))
    ]
    size = getattr(raw, f"{kind}Size")(**common)
    unstage = getattr(raw, f"{kind}UnstageNoKey")(indices=i32([0]), **common)
    peek = getattr(raw, f"{kind}Peek")(key=i64(7), indices=i32([0]), **common)
    clear = getattr(raw, f"{kind}Clear")(**common)
    unstaged = [unstage.key, *unstage.values] if kind == "OrderedMap" else [size]
    return steps([stage[0]], [stage[1]], [size], peek, unstaged, [size], [clear], [size])


def fake_param(tf: Any) -> Any:
    """What stands for a result that nobody reads has a shape."""
    return tf.shape(tf.raw_ops.FakeParam(dtype="float32", shape=[2, 3]))


def strided_assign(tf: Any) -> Any:
    """Part of a variable is replaced."""
    raw = tf.raw_ops
    ref = raw.VariableV2(dtype="float32", shape=[3, 3], shared_name="v")
    start = raw.Assign(ref=ref, value=tf.zeros([3, 3]))
    part = raw.StridedSliceAssign(
        ref=ref, begin=i32([1, 0]), end=i32([3, 3]), strides=i32([1, 2]), value=_ROWS[:2]
    )
    single = raw.StridedSliceAssign(
        ref=ref, begin=i32([0]), end=i32([1]), strides=i32([1]), value=f32([7, 8, 9]),
        shrink_axis_mask=1,
    )  # fmt: skip
    return steps([start], [tf.identity(part)], [tf.identity(single)], [raw.Identity(input=ref)])


CASES = [
    graph(first_generation, "float32", producer=15),
    graph(first_generation, "int32", producer=15),
    graph(first_generation_split, producer=15),
    graph(second_generation, producer=20),
    graph(grad_with_shape),
    graph(old_write_twice, producer=15, says="has already been written"),
    *(graph(old_table, op) for op in ("MutableHashTable", "MutableHashTableOfTensors")),
    *(
        graph(old_queue, op, says="closed and has insufficient elements")
        for op in ("FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue")
    ),
    graph(closed_queue, says="is closed"),
    graph(session_tensors, "GetSessionHandle"),
    graph(session_tensors, "GetSessionHandleV2"),
    graph(no_session_tensor, says="is not in the session store"),
    graph(no_session_tensor_to_delete, says="in the session store"),
    graph(pushed_batches),
    graph(map_keys),
    graph(optional),
    graph(staged_map, "Map"),
    graph(staged_map, "OrderedMap"),
    graph(fake_param),
    graph(strided_assign),
]
