"""Sequence examples, by the ops whose keys are attributes and by the one of single examples."""

from __future__ import annotations

from typing import Any

from cases_src.casebook import f32, graph, i64, s


def _example(tf: Any, context: Any, lists: Any) -> bytes:
    """A serialized SequenceExample; ``lists`` has a list of values for each step."""
    message = tf.train.SequenceExample()
    for key, values in context.items():
        _fill(message.context.feature[key], values)
    for key, steps in lists.items():
        found = message.feature_lists.feature_list[key]
        for values in steps:
            _fill(found.feature.add(), values)
    text: bytes = message.SerializeToString(deterministic=True)
    return text


def _fill(feature: Any, values: Any) -> None:
    kinds = {int: "int64_list", float: "float_list", bytes: "bytes_list"}
    if values:
        getattr(feature, kinds[type(values[0])]).value.extend(values)


def _three(tf: Any) -> list[bytes]:
    return [
        _example(
            tf,
            {"id": [7], "tags": [b"a", b"b"], "pair": [0.5, 1.5]},
            {"words": [[1, 2], [3], []], "frames": [[0.5, 1.0], [1.5, 2.0]], "names": [[b"x"]]},
        ),
        _example(tf, {"id": [8]}, {"words": [], "frames": [[3.0, 4.0]]}),
        _example(tf, {"tags": [b"c"]}, {"words": [[4, 5, 6]], "frames": []}),
    ]


def batch(tf: Any) -> Any:
    """Dense and sparse features of three examples; defaults and missing lists."""
    return tf.raw_ops.ParseSequenceExample(
        serialized=s(_three(tf)),
        debug_name=s([b"one", b"two", b"three"]),
        context_dense_defaults=[i64([-1]), f32([9, 9])],
        feature_list_dense_missing_assumed_empty=["names"],
        context_sparse_keys=["tags"],
        context_dense_keys=["id", "pair"],
        feature_list_sparse_keys=["words"],
        feature_list_dense_keys=["frames", "names"],
        Ncontext_sparse=1,
        Ncontext_dense=2,
        Nfeature_list_sparse=1,
        Nfeature_list_dense=2,
        context_sparse_types=["string"],
        feature_list_dense_types=["float32", "string"],
        context_dense_shapes=[[1], [2]],
        feature_list_sparse_types=["int64"],
        feature_list_dense_shapes=[[2], [1]],
    )


def without_list(tf: Any) -> Any:
    """A list that is required and not there."""
    return tf.raw_ops.ParseSequenceExample(
        serialized=s(_three(tf)),
        debug_name=tf.constant([], "string"),
        context_dense_defaults=[],
        feature_list_dense_missing_assumed_empty=[],
        context_sparse_keys=[],
        context_dense_keys=[],
        feature_list_sparse_keys=[],
        feature_list_dense_keys=["names"],
        Nfeature_list_dense=1,
        feature_list_dense_types=["string"],
        feature_list_dense_shapes=[[1]],
    )


def single(tf: Any, which: int) -> Any:
    """The features of one example; no lengths."""
    return tf.raw_ops.ParseSingleSequenceExample(
        serialized=_three(tf)[which],
        feature_list_dense_missing_assumed_empty=s([b"names"]),
        context_sparse_keys=[b"tags"],
        context_dense_keys=[b"id", b"pair"],
        feature_list_sparse_keys=[b"words"],
        feature_list_dense_keys=[b"frames", b"names"],
        context_dense_defaults=[i64([-1]), f32([9, 9])],
        debug_name=b"it",
        context_sparse_types=["string"],
        feature_list_dense_types=["float32", "string"],
        context_dense_shapes=[[1], [2]],
        feature_list_sparse_types=["int64"],
        feature_list_dense_shapes=[[2], [1]],
    )


CASES = [
    graph(batch),
    graph(without_list, says="Feature list 'names' is required but could not be found"),
    *(graph(single, which) for which in range(3)),
]
