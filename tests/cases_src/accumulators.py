"""Conditional accumulators of sparse and of dense gradients: means, sums, shapes and mistakes.

A gradient is (rows, values, sizes) or, for dense ones, an array; gradients are applied one after
the other, and then as many as wanted are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from cases_src.casebook import Case, graph, steps


def _fed(tf: Any, value: Any, dtype: Any) -> Any:
    """A value of whose shape TensorFlow's front end knows nothing."""
    return tf.placeholder_with_default(np.asarray(value, dtype), None)


def _chained(tf: Any, calls: Sequence[Any]) -> list[Any]:
    """What each call makes, each after the one before it."""
    made: list[Any] = []
    for call in calls:
        with tf.control_dependencies([getattr(item, "op", item) for item in made[-1:]]):
            result = call()
        made += list(result) if isinstance(result, tuple) else [result]
    return made


def sparse(tf: Any, gradients: Sequence[Any], options: dict[str, Any]) -> Any:
    raw, dtype = tf.raw_ops, options.get("dtype", "float32")
    handle = raw.SparseConditionalAccumulator(
        dtype=dtype, shape=options.get("shape", [None]), container="",
        shared_name="", reduction_type=options.get("reduction", "MEAN"),
    )  # fmt: skip
    at_step = options.get("at_step", [0] * len(gradients))

    def apply(number: int) -> Any:
        rows, values, sizes = gradients[number]
        return raw.SparseAccumulatorApplyGradient(
            handle=handle, local_step=_fed(tf, at_step[number], np.int64),
            gradient_indices=_fed(tf, rows, np.int64), gradient_values=_fed(tf, values, dtype),
            gradient_shape=_fed(tf, sizes, np.int64),
            has_known_shape=options.get("has_known_shape", True),
        )  # fmt: skip

    def take() -> Any:
        required = _fed(tf, options.get("required", 1), np.int32)
        return raw.SparseAccumulatorTakeGradient(handle=handle, num_required=required, dtype=dtype)

    def count() -> Any:
        return raw.AccumulatorNumAccumulated(handle=handle)

    applied = [lambda at=at: apply(at) for at in range(len(gradients))]
    return _chained(tf, [*applied, count, *[take] * options.get("takes", 1), count])


def dense(tf: Any, kind: str, gradients: Sequence[Any], options: dict[str, Any]) -> Any:
    raw, dtype = tf.raw_ops, options.get("dtype", "float32")
    handle = getattr(raw, f"{kind}ConditionalAccumulator")(
        dtype=dtype, shape=options.get("shape"), container="", shared_name="",
        reduction_type=options.get("reduction", "MEAN"),
    )  # fmt: skip
    at_step = options.get("at_step", [0] * len(gradients))

    def apply(number: int) -> Any:
        return getattr(raw, f"{kind}AccumulatorApplyGradient")(
            handle=handle, local_step=_fed(tf, at_step[number], np.int64),
            gradient=_fed(tf, gradients[number], dtype),
        )  # fmt: skip

    def take() -> Any:
        return getattr(raw, f"{kind}AccumulatorTakeGradient")(
            handle=handle, num_required=options.get("required", 1), dtype=dtype
        )

    applied = [lambda at=at: apply(at) for at in range(len(gradients))]
    return _chained(tf, [*applied, *[take] * options.get("takes", 1)])


def late_gradients(tf: Any) -> Any:
    """What comes too late is dropped, whatever it is."""
    raw = tf.raw_ops
    handle = raw.SparseConditionalAccumulator(dtype=tf.float32, shape=[3])
    count = raw.AccumulatorNumAccumulated(handle=handle)

    def apply(step: int, values: Any) -> Any:
        return raw.SparseAccumulatorApplyGradient(
            handle=handle, local_step=_fed(tf, step, np.int64),
            gradient_indices=_fed(tf, [1], np.int64),
            gradient_values=_fed(tf, values, np.float32),
            gradient_shape=_fed(tf, [3], np.int64), has_known_shape=True,
        )  # fmt: skip

    later = raw.AccumulatorSetGlobalStep(handle=handle, new_global_step=_fed(tf, 5, np.int64))
    earlier = raw.AccumulatorSetGlobalStep(handle=handle, new_global_step=_fed(tf, 2, np.int64))
    odd, good, three = apply(4, [[[1.0]]]), apply(5, [1.0]), apply(3, [1.0])
    return steps([later], [odd], [good], [count], [three], [count], [earlier], [three], [count])


def shared(tf: Any, kind: str, others: dict[str, Any]) -> Any:
    """Of two accumulators of one name, the second is the first, whatever it asks for."""
    raw = tf.raw_ops
    common = {"dtype": tf.float32, "shape": [3], "shared_name": "both"}
    first = raw.SparseConditionalAccumulator(**common)
    second = getattr(raw, f"{kind}ConditionalAccumulator")(**{**common, **others})
    return steps([first.op], [second], [raw.AccumulatorNumAccumulated(handle=second)])


def other_kind(tf: Any, is_sparse: bool) -> Any:
    raw = tf.raw_ops
    step = _fed(tf, 0, np.int64)
    if is_sparse:
        handle = raw.ConditionalAccumulator(dtype=tf.float32, shape=[3])
        return raw.SparseAccumulatorApplyGradient(
            handle=handle, local_step=step, gradient_indices=_fed(tf, [0], np.int64),
            gradient_values=_fed(tf, [1], np.float32), gradient_shape=_fed(tf, [3], np.int64),
            has_known_shape=True,
        )  # fmt: skip
    handle = raw.SparseConditionalAccumulator(dtype=tf.float32, shape=[3])
    return raw.AccumulatorApplyGradient(handle=handle, local_step=step, gradient=[1.0, 2.0, 3.0])


def no_accumulator(tf: Any) -> Any:
    queue = tf.raw_ops.FIFOQueue(component_types=[tf.float32], shared_name="q")
    return steps([queue.op], [tf.raw_ops.AccumulatorNumAccumulated(handle=queue)])


def global_steps(tf: Any) -> Any:
    handle = tf.raw_ops.SparseConditionalAccumulator(dtype=tf.float32, shape=[3])
    return tf.raw_ops.AccumulatorSetGlobalStep(
        handle=handle, new_global_step=_fed(tf, [5], np.int64)
    )


_A, _B = ([0, 2], [1.0, 2.0], [3]), ([1, 2], [3.0, 5.0], [3])
_A2, _B2 = ([0, 2], [[1.0, 2], [3, 4]], [3, 2]), ([2, 1], [[1.0, 2], [3, 4]], [3, 2])
_NONE, _NONE2 = ([], [], [3]), ([], np.zeros((0, 2)), [3, 2])
_WIDE = ([0], [[1.0, 2, 3]], [3, 3])


def _sparse(*gradients: Any, says: str = "", **options: Any) -> Case:
    return graph(sparse, gradients, options, says=says)


def _dense(*gradients: Any, says: str = "", kind: str = "", **options: Any) -> Case:
    return graph(dense, kind, gradients, options, says=says)


CASES = [
    *(_sparse(*gradients, reduction=reduction, dtype=dtype)
      for reduction, dtype, gradients in product(
          ("MEAN", "SUM"), ("float32", "float64", "float16"), ((_A, _B), (_A2, _B2)))),
    *(_sparse(_A, dtype=dtype, says="No OpKernel was registered to support Op")
      for dtype in ("int32", "bfloat16", "complex64")),
    _sparse(_A, _A, _A, required=2),
    _sparse(_A, _B, _A, at_step=[0, 0, 5]),
    _sparse(_A, _B, at_step=[-1, 0]),
    *(_sparse(_A, required=count, says=f"num_required must be positive, but was {count}")
      for count in (0, -1)),
    # Places: repeated, out of order, negative, beyond the end.
    *(_sparse(*gradients) for gradients in (
        [([0, 0], [1.0, 2.0], [3])], [_A, ([0, 0], [1.0, 2.0], [3])],
        [([2, 0], [1.0, 2.0], [3])], [_A, ([2, 0], [1.0, 2.0], [3])], [([-1], [1.0], [3])],
        [([5], [1.0], [3])])),
    *(_sparse(*gradients, shape=[3], has_known_shape=is_known, says="index is 5 exceeded 3")
      for gradients, is_known in product(
          ([([5], [1.0], [3])], [_A, ([0, 5], [1.0, 1.0], [3])]), (True, False))),
    # Shapes of accumulators, which may say more or less than the gradients do.
    *(_sparse(gradient, shape=shape, has_known_shape=is_known)
      for shape, gradient, is_known in product((None, [None], [3], []), (_A, _A2), (True, False))),
    *(_sparse(_A2, shape=shape, has_known_shape=False)
      for shape in ([4, None], [None, 2], [4, 2])),
    *(_sparse(*gradients, shape=shape) for gradients, shape in (
        ([_NONE], [3]), ([_NONE2, _A2], [3, 2]), ([_A2, _NONE2], [3, 2]), ([_NONE, _A], [3]),
        ([_NONE2], None))),
    _sparse(_A, shape=[4], says="expected shape dim 0 to be 4, got 3"),
    _sparse(_A2, shape=[3, 3], says="expected shape dim 1 to be 3, got 2"),
    _sparse(_A, shape=[None, None], says="expected shape rank at least 2, got 1"),
    _sparse(_A, shape=[None, None], has_known_shape=False, says="values rank at least 2, got 1"),
    _sparse(_A2, shape=[3, 3], has_known_shape=False, says="values dim 1 to be 3, got 2"),
    _sparse(_A, _A2, shape=None, says="expected values rank 1, got 2"),
    _sparse(_A2, _A, shape=None, says="expected values rank 2, got 1"),
    _sparse(_A2, _WIDE, shape=None, says="expected values dim 1 to be 2, got 3"),
    _sparse(([0], [1.0], 3), shape=[3]),
    _sparse(([0], [1.0], [[3]]), shape=[3]),
    _sparse(([0], [1.0], []), shape=[3], says="expected shape rank at least 1, got 0"),
    _sparse(([0], [1.0], [-3]), shape=[3], says="expected shape dim 0 to be 3, got -3"),
    # Parts that do not fit together.
    _sparse(([0], [1.0, 2.0], [3]), says="Expected 1 non-empty input values, got 2"),
    _sparse(([0, 1], [1.0], [3]), says="Expected 2 non-empty input values, got 1"),
    _sparse(([[0]], [1.0], [3]), says="Input indices should be vector but received shape: [1,1]"),
    _sparse((0, [1.0], [3]), says="Input indices should be vector but received shape: []"),
    _sparse(([0], 1.0, [3]), says="Values cannot be 0-dimensional."),
    *(_dense([1.0, 2], [3, 5], kind=kind, reduction=reduction, dtype=dtype)
      for kind, reduction, dtype in product(
          ("", "Resource"), ("MEAN", "SUM"), ("float32", "float64", "float16"))),
    *(_dense([1.0, 2], [3, 5], kind=kind, shape=shape)
      for kind, shape in product(("", "Resource"), ([2], [None]))),
    *(_dense([1.0, 2], kind=kind, shape=shape, says="Shape mismatch: expected")
      for kind, shape in product(("", "Resource"), ([], [3], [None, None]))),
    *(_dense([1.0, 2], [1.0, 2, 3], kind=kind, says="Shape mismatch: expected [2], got [3]")
      for kind in ("", "Resource")),
    *(_dense([1.0], kind=kind, required=0, says="must be positive, but was 0")
      for kind in ("", "Resource")),
    _dense([1.0], at_step=[[0]], says="Argument local_step must be scalar, but had bad shape [1]"),
    *(_dense([1.0], dtype=dtype, says="No OpKernel was registered")
      for dtype in ("int32", "bfloat16")),
    graph(late_gradients),
    *(graph(shared, kind, others) for kind, others in (
        ("Sparse", {"dtype": "float64"}), ("Sparse", {"shape": [4]}),
        ("Sparse", {"reduction_type": "SUM"}), ("", {}), ("", {"shape": None}))),
    graph(other_kind, True, says="Unknown input name: gradient"),
    graph(other_kind, False, says="No attr named 'has_known_shape' in NodeDef"),
    graph(no_accumulator, says="does not exist"),
    graph(global_steps, says="Argument num_required must be scalar, but had bad shape [1]"),
]  # fmt: skip
