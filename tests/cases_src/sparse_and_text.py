"""Sparse tensors, sets, accumulators, readers, tables: the forms that few graphs use."""

from __future__ import annotations

from typing import Any

from cases_src.casebook import f32, graph, i32, i64, normal, op, s, steps

_A = {"indices": i64([[0, 0], [1, 1], [1, 2]]), "shape": i64([2, 3])}
_SEGMENTS = {"indices": i32([0, 2, 2, 1]), "segment_ids": i32([0, 0, 1, 2])}


def set_operation(tf: Any, op_name: str, kind: str) -> Any:
    """Sets row by row: both sparse, or the first dense."""
    second = {"set2_indices": i64([[0, 0], [0, 1], [1, 0]]), "set2_values": i32([5, 1, 7]),
              "set2_shape": i64([2, 2])}  # fmt: skip
    first: dict[str, Any] = {"set1": i32([[1, 1], [7, 2]])}
    if op_name == "SparseToSparseSetOperation":
        first = {"set1_indices": i64([[0, 0], [1, 0], [1, 1]]), "set1_values": i32([1, 2, 7]),
                 "set1_shape": i64([2, 2])}  # fmt: skip
    return getattr(tf.raw_ops, op_name)(set_operation=kind, **first, **second)


def crossed(tf: Any, hashed: bool) -> Any:
    """Crosses of a sparse and a dense feature."""
    return tf.raw_ops.SparseCross(
        indices=[i64([[0, 0], [1, 0], [1, 1]])], values=[s([b"a", b"b", b"c"])],
        shapes=[i64([2, 2])], dense_inputs=[s([[b"x", b"y"], [b"z", b"w"]])],
        hashed_output=hashed, num_buckets=97 if hashed else 0, hash_key=956888297470,
        out_type="int64" if hashed else "string", internal_type="string",
    )  # fmt: skip


def crossed_hashed(tf: Any, strong: bool) -> Any:
    """Crosses as numbers, with a salt."""
    return tf.raw_ops.SparseCrossHashed(
        indices=[i64([[0, 0], [1, 0], [1, 1]])], values=[i64([4, 5, 6])], shapes=[i64([2, 2])],
        dense_inputs=[s([[b"x", b"y"], [b"z", b"w"]])], num_buckets=i64(1000),
        strong_hash=strong, salt=i64([7, 9]),
    )  # fmt: skip


def crossed_v2(tf: Any) -> Any:
    """Crosses as text with a separator."""
    return tf.raw_ops.SparseCrossV2(
        indices=[i64([[0, 0], [1, 0], [1, 1]])], values=[i64([4, 5, 6])], shapes=[i64([2, 2])],
        dense_inputs=[s([[b"x", b"y"], [b"z", b"w"]])], sep=s(b"__"),
    )  # fmt: skip


def stored_sparse(tf: Any) -> Any:
    """Sparse tensors under numbers, and several of them as one."""
    raw, shared = tf.raw_ops, {"shared_name": "m", "container": ""}
    added = [
        raw.AddSparseToTensorsMap(
            sparse_indices=i64([[0], [n]]), sparse_values=f32([n, 2 * n]),
            sparse_shape=i64([3 + n]), **shared,
        )
        for n in (1, 2)
    ]  # fmt: skip
    taken = raw.TakeManySparseFromTensorsMap(
        sparse_handles=tf.stack(added), dtype="float32", **shared
    )
    return list(taken)


def accumulated(tf: Any, reduction: str) -> Any:
    """Dense gradients add up until there are enough."""
    raw = tf.raw_ops
    handle = raw.ConditionalAccumulator(
        dtype="float32", shape=[2], shared_name="a", reduction_type=reduction
    )
    give = [
        raw.AccumulatorApplyGradient(handle=handle, local_step=i64(n), gradient=f32([n, 3]))
        for n in range(3)
    ]
    count = raw.AccumulatorNumAccumulated(handle=handle)
    take = raw.AccumulatorTakeGradient(handle=handle, num_required=i32(2), dtype="float32")
    step = raw.AccumulatorSetGlobalStep(handle=handle, new_global_step=i64(2))
    return steps([give[0]], [give[1]], [count], [take], [count], [step], [give[1]], [count],
                 [give[2]], [count])  # fmt: skip


def accumulated_sparse(tf: Any, reduction: str) -> Any:
    """Sparse gradients add up by row."""
    raw = tf.raw_ops
    handle = raw.SparseConditionalAccumulator(
        dtype="float32", shape=[4, 2], shared_name="a", reduction_type=reduction
    )
    give = [
        raw.SparseAccumulatorApplyGradient(
            handle=handle, local_step=i64(0), gradient_indices=i64(rows),
            gradient_values=normal(len(rows), 2, seed=n), gradient_shape=i64([4, 2]),
            has_known_shape=True,
        )
        for n, rows in enumerate(([0, 2], [2, 3]))
    ]  # fmt: skip
    take = raw.SparseAccumulatorTakeGradient(handle=handle, num_required=i32(2), dtype="float32")
    return steps([give[0]], [give[1]], list(take))


def identity_reader(tf: Any) -> Any:
    """A reader whose values are its queue's."""
    raw = tf.raw_ops
    reader = raw.IdentityReaderV2(shared_name="r")
    queue = raw.FIFOQueueV2(component_types=["string"], shared_name="q")
    fill = raw.QueueEnqueueManyV2(handle=queue, components=[s([b"a", b"b", b"c"])])
    read = raw.ReaderReadV2(reader_handle=reader, queue_handle=queue)
    upto = raw.ReaderReadUpToV2(reader_handle=reader, queue_handle=queue, num_records=i64(2))
    produced = raw.ReaderNumRecordsProducedV2(reader_handle=reader)
    reset = raw.ReaderResetV2(reader_handle=reader)
    return steps([fill], list(read), [produced], list(upto), [reset], [produced])


def no_file(tf: Any, op_name: str, **attrs: Any) -> Any:
    """A reader says which file is not there."""
    raw = tf.raw_ops
    reader = getattr(raw, op_name)(shared_name="r", **attrs)
    queue = raw.FIFOQueueV2(component_types=["string"], shared_name="q")
    fill = raw.QueueEnqueueV2(handle=queue, components=[s(b"/nowhere/at/all")])
    read = raw.ReaderReadV2(reader_handle=reader, queue_handle=queue)
    return steps([fill], list(read))


def record_reader(tf: Any) -> Any:
    """A reader of records, by the only argument it must have."""
    return no_file(tf, "FixedLengthRecordReaderV2", record_bytes=4)


def no_vocabulary(tf: Any) -> Any:
    """A table says which file is not there."""
    raw = tf.raw_ops
    table = raw.HashTable(key_dtype="string", value_dtype="int64", shared_name="t")
    return raw.InitializeTableFromTextFile(
        table_handle=table, filename=s(b"/nowhere/at/all"), key_index=-2, value_index=-1
    )


CASES = [
    *(
        graph(set_operation, name, kind)
        for name in ("DenseToSparseSetOperation", "SparseToSparseSetOperation")
        for kind in ("union", "intersection", "a-b", "b-a")
    ),
    graph(crossed, False),
    graph(crossed, True),
    graph(crossed_hashed, False),
    graph(crossed_hashed, True),
    graph(crossed_v2),
    graph(stored_sparse),
    graph(accumulated, "MEAN"),
    graph(accumulated, "SUM"),
    graph(accumulated_sparse, "MEAN"),
    graph(accumulated_sparse, "SUM"),
    graph(identity_reader),
    graph(no_file, "TFRecordReaderV2", says="/nowhere/at/all"),
    graph(no_file, "WholeFileReaderV2", says="/nowhere/at/all"),
    graph(no_file, "TextLineReaderV2", says="/nowhere/at/all"),
    graph(record_reader, says="/nowhere/at/all"),
    graph(no_vocabulary, says="/nowhere/at/all"),
    op(
        "SparseDenseCwiseAdd",
        sp_indices=_A["indices"],
        sp_values=f32([1, 2, 3]),
        sp_shape=_A["shape"],
        dense=f32([[1, 2, 3], [4, 5, 6]]),
    ),
    op(
        "SparseDenseCwiseMul",
        sp_indices=_A["indices"],
        sp_values=f32([1, 2, 3]),
        sp_shape=_A["shape"],
        dense=f32([10, 20, 30]),
    ),
    op(
        "SparseDenseCwiseDiv",
        sp_indices=_A["indices"],
        sp_values=i32([10, 20, 33]),
        sp_shape=_A["shape"],
        dense=i32(10),
    ),
    op(
        "SparseDenseCwiseAdd",
        sp_indices=_A["indices"],
        sp_values=f32([1, 2, 3]),
        sp_shape=_A["shape"],
        dense=f32([[1, 2]]),
        says="incompatible shapes",
    ),
    op("SparseFillEmptyRowsGrad", reverse_index_map=i64([2, 0]), grad_values=f32([1, 2, 4])),
    op("SparseFillEmptyRowsGrad", reverse_index_map=i64([]), grad_values=f32([1, 2])),
    op(
        "SparseFillEmptyRowsGrad",
        reverse_index_map=i64([5]),
        grad_values=f32([1, 2]),
        says="Elements in reverse index must be in",
    ),
    *(
        op(f"SparseSegment{kind}Grad", grad=normal(3, 2), output_dim0=i32(4), **_SEGMENTS)
        for kind in ("Sum", "Mean", "SqrtN")
    ),
    *(
        op(f"SparseSegment{kind}GradV2", grad=normal(3, 2), dense_output_dim0=i32(4), **_SEGMENTS)
        for kind in ("Sum", "Mean", "SqrtN")
    ),
    op(
        "SparseSliceGrad",
        backprop_val_grad=f32([5, 6]),
        input_indices=_A["indices"],
        input_start=i64([1, 0]),
        output_indices=i64([[0, 1], [0, 2]]),
    ),
    op(
        "SparseSlice",
        indices=_A["indices"],
        values=f32([1, 2, 3]),
        shape=_A["shape"],
        start=i64([1, 0]),
        size=i64([1, 2]),
    ),
    op(
        "SparseReorder",
        input_indices=i64([[1, 2], [0, 0], [1, 1]]),
        input_values=s([b"a", b"b", b"c"]),
        input_shape=_A["shape"],
    ),
    op(
        "SparseReorder",
        input_indices=i64([]).reshape(0, 2),
        input_values=f32([]),
        input_shape=_A["shape"],
    ),
    op(
        "SparseTensorDenseMatMul",
        a_indices=_A["indices"],
        a_values=f32([1, 2, 3]),
        a_shape=_A["shape"],
        b=normal(3, 2),
    ),
    op(
        "SparseTensorDenseMatMul",
        a_indices=_A["indices"],
        a_values=f32([1, 2, 3]),
        a_shape=_A["shape"],
        b=normal(2, 2),
        adjoint_a=True,
    ),
    op(
        "SparseTensorDenseMatMul",
        a_indices=i64([[0, 7]]),
        a_values=f32([1]),
        a_shape=_A["shape"],
        b=normal(3, 2),
        says="out of bounds",
    ),
    op(
        "SparseToDense",
        sparse_indices=i64([[0, 1], [1, 2]]),
        output_shape=i64([2, 3]),
        sparse_values=f32([5, 6]),
        default_value=f32(-1),
    ),
    op(
        "SparseToDense",
        sparse_indices=i32(2),
        output_shape=i32([4]),
        sparse_values=f32(5),
        default_value=f32(0),
    ),
    op(
        "SparseToDense",
        sparse_indices=i64([[1, 2], [0, 1]]),
        output_shape=i64([2, 3]),
        sparse_values=f32([5, 6]),
        default_value=f32(0),
        says="out of order",
    ),
    op(
        "SparseToDense",
        sparse_indices=i64([[0, 9]]),
        output_shape=i64([2, 3]),
        sparse_values=f32([5]),
        default_value=f32(0),
        says="out of bounds",
    ),
    op(
        "SparseReshape",
        input_indices=_A["indices"],
        input_shape=_A["shape"],
        new_shape=i64([3, -1]),
    ),
    op(
        "SparseReshape",
        input_indices=_A["indices"],
        input_shape=_A["shape"],
        new_shape=i64([4]),
        says="but the requested shape has 4",
    ),
    op(
        "SparseConcat",
        indices=[_A["indices"], i64([[0, 0]])],
        values=[f32([1, 2, 3]), f32([9])],
        shapes=[_A["shape"], i64([2, 1])],
        concat_dim=-1,
    ),
    op(
        "SparseSplit",
        split_dim=i64(1),
        indices=_A["indices"],
        values=f32([1, 2, 3]),
        shape=_A["shape"],
        num_split=2,
    ),
]
