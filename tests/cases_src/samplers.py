"""Generators kept in variables, candidates for sampled losses, random parts of images."""

from __future__ import annotations

from typing import Any

from cases_src.casebook import f32, graph, i32, i64, op, steps, u8, u64

_TRUE = i64([[1, 2], [3, 0]])
_SEEDS = {"seed": 3, "seed2": 4}
_BOXES = f32([[[0.1, 0.2, 0.6, 0.7], [0.5, 0.5, 0.9, 1.0]]])


def _generator(tf: Any, state: Any) -> Any:
    handle = tf.raw_ops.VarHandleOp(dtype="int64", shape=[3], shared_name="g")
    return handle, tf.raw_ops.AssignVariableOp(resource=handle, value=i64(state))


def generator(tf: Any, op_name: str, dtype: str) -> Any:
    """Numbers twice, and where the generator is then."""
    raw = tf.raw_ops
    handle, start = _generator(tf, [5, -1, 7])
    limits = {}
    if op_name == "StatefulUniformInt":
        limits = {key: tf.constant(v, dtype) for key, v in (("minval", -5), ("maxval", 90))}
    kind = {} if limits else {"dtype": dtype}
    drawn = getattr(raw, op_name)(
        resource=handle, algorithm=i64(1), shape=i64([2, 3]), **limits, **kind
    )
    state = raw.ReadVariableOp(resource=handle, dtype="int64")
    skip = raw.RngSkip(resource=handle, algorithm=i64(1), delta=i64(4))
    return steps([start], [drawn], [state], [skip], [drawn], [state])


def read_and_skip(tf: Any) -> Any:
    """The state before and after."""
    raw = tf.raw_ops
    handle, start = _generator(tf, [-2, 3, 7])
    read = raw.RngReadAndSkip(resource=handle, alg=i32(1), delta=u64(5))
    return steps([start], [read], [read])


def wrong_algorithm(tf: Any) -> Any:
    """Philox is the only one."""
    handle, start = _generator(tf, [1, 2, 3])
    skip = tf.raw_ops.RngSkip(resource=handle, algorithm=i64(9), delta=i64(1))
    return steps([start], [skip])


CASES = [
    *(
        graph(generator, name, dtype)
        for name in ("StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal")
        for dtype in ("float32", "float64", "float16")
    ),
    *(
        graph(generator, "StatefulUniformFullInt", d)
        for d in ("int32", "int64", "uint32", "uint64")
    ),
    *(graph(generator, "StatefulUniformInt", dtype) for dtype in ("int32", "int64")),
    graph(read_and_skip),
    graph(wrong_algorithm, says="algorithm"),
    *(
        op(
            name,
            true_classes=_TRUE,
            num_true=2,
            num_sampled=count,
            unique=unique,
            range_max=10,
            runs=3,
            **_SEEDS,
        )
        for name in ("UniformCandidateSampler", "LogUniformCandidateSampler")
        for count, unique in [(4, False), (4, True), (10, True), (25, False)]
    ),
    op(
        "LogUniformCandidateSampler",
        true_classes=_TRUE,
        num_true=2,
        num_sampled=4,
        unique=True,
        range_max=3,
        says="Sampler's range is too small",
    ),
    op(
        "LogUniformCandidateSampler",
        true_classes=_TRUE,
        num_true=1,
        num_sampled=4,
        unique=True,
        range_max=9,
        says="num_true columns",
    ),
    op("AllCandidateSampler", true_classes=_TRUE, num_true=2, num_sampled=4, unique=True),
    op(
        "ComputeAccidentalHits",
        true_classes=i64([[1, 2], [3, 1]]),
        sampled_candidates=i64([1, 5, 3]),
        num_true=2,
    ),
    op(
        "ComputeAccidentalHits",
        true_classes=i64([[1], [3]]),
        sampled_candidates=i64([7]),
        num_true=1,
    ),
    *(
        op(
            "SampleDistortedBoundingBoxV2",
            image_size=i32([h, w, 3]),
            bounding_boxes=_BOXES,
            min_object_covered=f32(covered),
            runs=4,
            **_SEEDS,
        )
        for h, w, covered in [(40, 60, 0.1), (300, 200, 0.5), (7, 9, 0.0), (100, 30, 0.9)]
    ),
    op(
        "SampleDistortedBoundingBox",
        image_size=i64([50, 40, 3]),
        bounding_boxes=_BOXES,
        min_object_covered=0.3,
        aspect_ratio_range=[0.5, 2.0],
        area_range=[0.2, 0.6],
        max_attempts=10,
        runs=3,
        **_SEEDS,
    ),
    op(
        "SampleDistortedBoundingBox",
        image_size=u8([50, 40, 3]),
        bounding_boxes=_BOXES[:, :0],
        use_image_if_no_bounding_boxes=True,
        runs=2,
        **_SEEDS,
    ),
    op(
        "SampleDistortedBoundingBox",
        image_size=i32([50, 40, 3]),
        bounding_boxes=_BOXES[:, :0],
        says="No bounding boxes provided as input",
    ),
    op(
        "SampleDistortedBoundingBox",
        image_size=i32([50, 40]),
        bounding_boxes=_BOXES,
        says="image_size must contain 3 elements",
    ),
    op(
        "SampleDistortedBoundingBox",
        image_size=i32([50, 40, 3]),
        bounding_boxes=_BOXES + f32(1),
        says="must be in [0.0, 1.0]",
    ),
    *(
        op(
            "StatelessSampleDistortedBoundingBox",
            image_size=i32([50, 40, 3]),
            bounding_boxes=_BOXES,
            min_object_covered=f32(0.2),
            seed=i64([n, 2]),
        )
        for n in range(4)
    ),
]
