"""Ops of old graphs, of clustering, and such as only compilers and optimisers make."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import c64, f16, f32, f64, graph, i8, i32, i64, inf, nan, normal, op, steps

_ROWS = f32([[1, 2], [3, 4], [5, 6]])
_IMAGE = i32(np.arange(5 * 6 * 2)).reshape(5, 6, 2)


def segments(tf: Any, op_name: str, data: Any, ids: Any, count: int) -> Any:
    """One op inside a function that XLA compiles; nothing else has a kernel for it."""

    def compute(data: Any, ids: Any) -> Any:
        made = getattr(tf.raw_ops, op_name)
        return made(data=data, segment_ids=ids, num_segments=tf.constant(count))

    function = tf.function(compute, jit_compile=True, autograph=False)
    return function(tf.constant(data), tf.constant(ids))


def compiled(tf: Any, op_name: str, *inputs: Any) -> Any:
    """One of XLA's own ops inside a function that it compiles."""
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    def compute(*arrays: Any) -> Any:
        if op_name == "xla_set_dynamic_dimension_size":
            _, axis, size = inputs
            return gen_xla_ops.xla_set_dynamic_dimension_size(arrays[0], tf.constant(axis), size)
        s, u, v = gen_xla_ops.xla_svd(arrays[0], max_iter=100, epsilon=1e-6, precision_config=b"")
        width = min(inputs[0].shape[-2:])
        again = tf.matmul(u[..., :width] * s[..., None, :], v[..., :width], adjoint_b=True)
        return [s, tf.abs(u[..., :width]), tf.abs(v[..., :width]), again, tf.shape(u), tf.shape(v)]

    return tf.nest.flatten(
        tf.function(compute, jit_compile=True, autograph=False)(tf.constant(inputs[0]))
    )


def composition(tf: Any, names: str, x: Any) -> Any:
    """A node that Python cannot make: several functions of one number."""
    proto = tf.GraphDef()
    made = tf.make_tensor_proto(x)
    const = proto.node.add(name="x", op="Const")
    const.attr["dtype"].type = made.dtype
    const.attr["value"].tensor.CopyFrom(made)
    node = proto.node.add(name="node", op="_UnaryOpsComposition", input=["x"])
    node.attr["T"].type = made.dtype
    node.attr["op_names"].list.s.extend(name.encode() for name in names.split())
    node.attr["op_names"].list.SetInParent()
    return tf.import_graph_def(proto, return_elements=["node:0"], name="")


def rows_in_place(tf: Any, places: list[int], update: Any) -> Any:
    """What ``ParallelConcat`` becomes while TensorFlow prepares a graph."""
    proto = tf.GraphDef()
    start = proto.node.add(name="start", op="_ParallelConcatStart")
    start.attr["shape"].shape.CopyFrom(tf.TensorShape([3, 2]).as_proto())
    start.attr["dtype"].type = tf.as_dtype(update.dtype).as_datatype_enum
    const = proto.node.add(name="update", op="Const")
    made = tf.make_tensor_proto(update)
    const.attr["dtype"].type = made.dtype
    const.attr["value"].tensor.CopyFrom(made)
    last = "start"
    for place in places:
        node = proto.node.add(
            name=f"row{place % 100}", op="_ParallelConcatUpdate", input=[last, "update"]
        )
        node.attr["T"].type = made.dtype
        node.attr["loc"].i = place
        last = node.name
    return tf.import_graph_def(proto, return_elements=[f"{last}:0"], name="")


def batched(tf: Any, what: str, feeds: list[Any], attrs: dict[str, Any]) -> Any:
    """A function of a batch; nobody else asks, so it is a batch of one request."""
    specs = [tf.TensorSpec(None, feed.dtype) for feed in feeds]
    function = tf.function(lambda *xs: _OF_BATCHES[what](tf, *xs), autograph=False)
    made = function.get_concrete_function(*specs, tf.TensorSpec([], "float32"))
    made.add_to_graph()
    holders = [tf.placeholder(feed.dtype) for feed in feeds]
    outputs = tf.raw_ops.BatchFunction(
        in_tensors=holders,
        captured_tensors=[tf.constant(f32(100))],
        f=made,
        num_batch_threads=1,
        batch_timeout_micros=1000,
        Tout=[output.dtype for output in made.outputs],
        **attrs,
    )
    return steps((dict(zip(holders, feeds, strict=True)), outputs))


def batch_of_one(tf: Any, feeds: list[Any], attrs: dict[str, Any]) -> Any:
    """A batch, a caller's part of it, and its gradient; numbers of callers are drawn."""
    raw = tf.raw_ops
    batch = raw.Batch(
        in_tensors=[tf.constant(feed) for feed in feeds],
        num_batch_threads=1,
        batch_timeout_micros=1000,
        grad_timeout_micros=1000,
        **attrs,
    )
    where = {"batch_index": batch.batch_index, "id": batch.id}
    part = raw.Unbatch(batched_tensor=batch.batched_tensors[0], timeout_micros=1000, **where)
    grad = raw.UnbatchGrad(original_input=batch.batched_tensors[0], grad=part * 3.0, **where)
    return [*batch.batched_tensors, batch.batch_index[:, 1:], part, grad]


def _unbatch(index: Any, number: int, says: str = "") -> Any:
    return op(
        "Unbatch",
        batched_tensor=_ROWS,
        batch_index=i64(index),
        id=i64(number),
        timeout_micros=1000,
        says=says,
    )


_OF_BATCHES: dict[str, Any] = {
    "plus": lambda _, x, c: x + c,
    "and_sum": lambda tf, x, _: x + tf.reduce_sum(x),
    "and_size": lambda tf, x, _: x + tf.cast(tf.shape(x)[0], tf.float32),
    "both": lambda _, x, y, c: (x + y[:, None], y * c),
    "only_sum": lambda tf, x, _: tf.reduce_sum(x),
    "first": lambda _tf, x, _: x[:1],
    "wrong": lambda tf, x, _: tf.debugging.check_numerics(x / 0.0, "bad numbers"),
}


def _batched(what: str, *feeds: Any, says: str = "", **attrs: Any) -> Any:
    return graph(batched, what, list(feeds), {"max_batch_size": 10, **attrs}, says=says)


def _crop(size: Any, image: Any = _IMAGE, says: str = "") -> Any:
    return op("RandomCrop", image=image, size=size, seed=3, seed2=4, runs=3, producer=7, says=says)


def _plus_plus(points: Any, count: int, seed: int, retries: int, says: str = "") -> Any:
    return op(
        "KmeansPlusPlusInitialization",
        points=points,
        num_to_sample=i64(count),
        seed=i64(seed),
        num_retries_per_sample=i64(retries),
        says=says,
    )


def _bounded(kind: Any, low: float, high: float, shape: list[int], **more: Any) -> Any:
    return op(
        "ParameterizedTruncatedNormal",
        shape=i32(shape),
        means=kind(5),
        stdevs=kind(2),
        minvals=kind(low),
        maxvals=kind(high),
        seed=1,
        seed2=2,
        **{"runs": 2, **more},
    )


def _bounded_by(shape: list[int], *parameters: Any, seed: Any = (1, 2), says: str = "") -> Any:
    names = ("means", "stddevs", "minvals", "maxvals")
    return op(
        "StatelessParameterizedTruncatedNormal",
        shape=i32(shape),
        seed=i64(seed),
        says=says,
        **{name: f64(value) for name, value in zip(names, parameters, strict=True)},
    )


_DOTS, _LINE = normal(60, 3, seed=1), f32(np.arange(50)).reshape(50, 1)
_NUMBERS = [-2, -0.5, 0, 0.5, 3, nan, inf]

CASES = [
    *(
        graph(segments, f"Segment{kind}V2", data, i32([0, 0, 2]), 4)
        for kind in ("Sum", "Prod", "Max", "Min")
        for data in (_ROWS, i32(_ROWS), f16(_ROWS), f64(_ROWS), i8(_ROWS * f32(20)))
    ),
    *(
        graph(segments, f"Segment{kind}V2", _ROWS, i64(ids), 3)
        for kind in ("Sum", "Prod", "Max", "Min")
        for ids in ([2, 0, 2], [-1, 0, 7])
    ),
    graph(segments, "SegmentSumV2", c64(_ROWS) * c64(1j), i32([0, 0, 1]), 2),
    graph(segments, "SegmentProdV2", c64(_ROWS) * c64(1j), i32([0, 0, 1]), 2),
    graph(segments, "SegmentSumV2", _ROWS[:0], i32([]), 2),
    graph(segments, "SegmentMaxV2", _ROWS[:0], i32([]), 2),
    graph(segments, "SegmentSumV2", _ROWS, i32([[0, 0], [0, 0], [1, 1]]), 2),
    graph(segments, "SegmentSumV2", f32(3), i32(1), 2),
    graph(segments, "SegmentSumV2", f32([1, nan, inf]), i32([0, 0, 1]), 2),
    graph(segments, "SegmentSumV2", _ROWS, i32([0, 0, 1]), 0, says="of size zero"),
    *(
        graph(compiled, "xla_set_dynamic_dimension_size", _ROWS, axis, size)
        for axis, size in [(0, 2), (1, 1), (0, 0), (1, 2)]
    ),
    graph(compiled, "xla_set_dynamic_dimension_size", _ROWS, 2, 1, says="out of bounds"),
    graph(compiled, "xla_set_dynamic_dimension_size", _ROWS, -1, 1, says="out of bounds"),
    *(
        graph(compiled, "xla_svd", matrix, tol=(1e-4, 1e-5))
        for matrix in (_ROWS, _ROWS.T, normal(2, 3, 3))
    ),
    *(_crop(i64(size)) for size in ([2, 3], [5, 6], [1, 1], [5, 1], [1, 6], [0, 2])),
    _crop(i32([1]).astype("i8"), says="two elements"),
    _crop(i64(3), says="1-dimensional"),
    _crop(i64([1, 1]), _IMAGE[0], says="3-dimensional"),
    _crop(i64([6, 3]), says="height must be >= target_height: height = 5, target_height = 6"),
    _crop(i64([3, 7]), says="width must be >= target_width: width = 6, target_width = 7"),
    *(_plus_plus(_DOTS, 12, seed, retries) for seed in range(4) for retries in (-1, 0, 2)),
    *(_plus_plus(_LINE, 5, seed, retries) for seed in (-5, 1 << 40) for retries in (0, 1)),
    _plus_plus(_DOTS[:5], 6, 1, 1, says="Expected num_to_sample <= points.rows(). 6 vs 5."),
    _plus_plus(_DOTS, 0, 1, 1, says="Expected num_to_sample > 0."),
    _plus_plus(_DOTS[:0], 1, 1, 1, says="Expected points.rows() > 0."),
    _plus_plus(_DOTS[0], 1, 1, 1, says="Input points should be a matrix."),
    *(
        op("KMC2ChainInitialization", distances=f32(distances), seed=i64(seed))
        for seed in (-3, 0, 5, 1 << 50)
        for distances in (
            np.random.default_rng(seed & 7).uniform(size=30) ** 8,
            [0.5],
            [0] * 5,
            [nan, 1, 2],
            [0, 0, 2, 0],
            [1, inf, 3, inf],
        )
    ),
    op("KMC2ChainInitialization", distances=f32([]), seed=i64(1), says="size() > 0"),
    op("KMC2ChainInitialization", distances=f32([[1]]), seed=i64(1), says="should be a vector"),
    op("KMC2ChainInitialization", distances=f32([1]), seed=i64([1]), says="should be a scalar"),
    *(
        graph(composition, names, np.array(_NUMBERS, kind), tol=tol)
        for kind, tol in [("float32", (1e-5, 1e-6)), ("float64", (1e-9, 0)), ("float16", (2e-3, 0))]
        for names in ("Tanh Relu", "Exp", "Neg Elu Square Sqrt", "Abs Inv Log1p Sigmoid Selu")
    ),
    graph(composition, "", f32([1]), says="at least one op"),
    graph(composition, "Relu Softplus", f32([1]), says="compute function registered for op: So"),
    graph(composition, "Cosh", f16([1]), says="compute function registered for op: Cosh"),
    *(graph(rows_in_place, places, f32([[1, 2]])) for places in ([0, 1, 2], [2, 0, 1])),
    graph(rows_in_place, [2, 1, 0], np.array([[True, False]])),
    graph(rows_in_place, [-1, 0, 1], i32([[7, 8]])),
    graph(rows_in_place, [7], f32([[1, 2]]), says="must be greater than loc_ = 7"),
    graph(rows_in_place, [0], f32([1, 2]), says="value and update shape doesn't match"),
    graph(rows_in_place, [0], f32([[1, 2, 3]]), says="value and update shape doesn't match"),
    graph(rows_in_place, [0], f32([[1, 2]] * 2), says="update shape doesn't match"),
    *(
        _bounded(kind, low, high, shape)
        for kind in (f32, f64)
        for low, high in [(-15, 25), (3, 7), (11, 25), (11, 11.2), (-15, -1), (6, 8.8), (-inf, 1)]
        for shape in ([23], [2, 130])
    ),
    op(
        "ParameterizedTruncatedNormal",
        shape=i64([3, 2, 5]),
        means=f64([0, 5, 9]),
        stdevs=f64([1]),
        minvals=f64([-1, 4, -20]),
        maxvals=f64([1, inf, 40]),
        seed=7,
        runs=2,
    ),
    _bounded(f32, 3, 7, [0], runs=1),
    _bounded(f32, 7, 3, [2], says="Invalid parameters"),
    _bounded(f32, -inf, inf, [2], says="Invalid parameters"),
    _bounded(f32, nan, 7, [2], says="Invalid parameters"),
    _bounded(f32, 3, 7, [], says="Shape tensor must not be empty"),
    *(
        _bounded_by(shape, *parameters)
        for parameters in [
            (0, 1, -1, 1),
            (0, 1, 3, inf),
            ([0, 5], 1, [-1, -1], [1, 9]),
            ([[0], [5], [9]], [1, 2], -1, 30),
        ]
        for shape in ([4, 3, 2], [0, 3, 2], [20, 3, 2])
    ),
    _bounded_by([2], 0, 1, -1, 1, seed=[1], says="seed must have shape [2]"),
    _bounded_by([2], [0, 1, 2], 1, -1, 1, says="must end with broadcasted shape"),
    _bounded_by([2], 0, -1, -1, 1, says="Invalid parameters"),
    _bounded_by([2], nan, 1, -1, 1, says="failed to accept a sample"),
    _batched("plus", _ROWS),
    _batched("plus", _ROWS[:0]),
    _batched("plus", _ROWS[:0], allowed_batch_sizes=[4, 10]),
    *(
        _batched(what, _ROWS, allowed_batch_sizes=sizes)
        for what in ("and_sum", "and_size")
        for sizes in ([], [4, 10], [3, 10])
    ),
    _batched("both", _ROWS, _ROWS[:, 0]),
    _batched("both", _ROWS, _ROWS[:, 0], allowed_batch_sizes=[5, 10]),
    *(
        _batched(
            what,
            f32(np.arange(14)).reshape(7, 2),
            allowed_batch_sizes=[1, 4],
            enable_large_batch_splitting=True,
        )
        for what in ("plus", "and_size")
    ),
    _batched("plus", _ROWS, max_batch_size=2, says="Task size 3 is larger than maximum input"),
    _batched("both", _ROWS, _ROWS[:2, 0], says="must have equal 0th-dimension size"),
    _batched("plus", f32(1), says="must have at least one dimension"),
    _batched("only_sum", _ROWS, says="Batched output tensor has 0 dimensions"),
    _batched("first", _ROWS, says="Batched output tensor's 0th dimension does not equal the sum"),
    _batched("wrong", _ROWS, says="bad numbers"),
    _batched("plus", _ROWS, allowed_batch_sizes=[4, 8], says="final entry"),
    _batched("plus", _ROWS, allowed_batch_sizes=[10, 10], says="monotonically increasing"),
    graph(batch_of_one, [_ROWS], {"max_batch_size": 10}),
    graph(
        batch_of_one,
        [_ROWS, i32([7, 8, 9])],
        {"max_batch_size": 10, "allowed_batch_sizes": [4, 10]},
    ),
    graph(batch_of_one, [_ROWS], {"max_batch_size": 2}, says="larger than maximum input batch"),
    graph(
        batch_of_one,
        [_ROWS, i32([1])],
        {"max_batch_size": 9},
        says="must have equal 0th-dimension size",
    ),
    _unbatch([[7, 0, 3]], 7),
    _unbatch([[7, 0, 1], [8, 1, 3]], 8),
    _unbatch([[7, 0, 2]], 7),
    _unbatch([[7, 0, 3]], 8, says="Batched data did not arrive within timeout window."),
    _unbatch([[7, 0, 9]], 7, says="Sum of split sizes must not exceed dim0-size of input tensor"),
]
