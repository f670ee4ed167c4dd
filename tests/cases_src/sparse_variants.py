"""Sparse tensors as strings and as variants, there and back, single ones and batches."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from cases_src.casebook import graph
from cases_src.constants import constant, tensor_proto

#: Places and sizes.
_PLACES: dict[str, Any] = {
    "matrix": ([[0, 1], [1, 0], [1, 2]], [2, 3]),
    "nothing": (np.zeros((0, 2)), [2, 3]),
    "no_rows": (np.zeros((0, 2)), [0, 3]),
    "vector": ([[0], [3]], [4]),
    "cube": ([[0, 0, 1], [1, 0, 0], [1, 1, 2]], [2, 3, 4]),
}
_VALUES: dict[str, Any] = {
    "float32": [1.5, 2.5, 3.5],
    "string": [b"a", b"", b"cd"],
    "bool": [True, False, True],
    "complex64": [1j, 2, 3],
}
_PACKINGS = ("string", "variant")


def _arguments(tf: Any, places: str, dtype: str) -> dict[str, Any]:
    indices, shape = _PLACES[places]
    return {
        "sparse_indices": tf.constant(np.array(indices, np.int64)),
        "sparse_values": tf.constant(_VALUES[dtype][: len(indices)], dtype),
        "sparse_shape": tf.constant(shape, tf.int64),
    }


def single(tf: Any, places: str, dtype: str, packing: str) -> Any:
    raw = tf.raw_ops
    packed = raw.SerializeSparse(out_type=packing, **_arguments(tf, places, dtype))
    batches = (packed, tf.stack([packed] * 2), tf.stack([tf.stack([packed] * 2)] * 2))
    back = [raw.DeserializeSparse(serialized_sparse=batch, dtype=dtype) for batch in batches]
    return [raw.SerializeTensor(tensor=packed), *(part for parts in back for part in parts)]


def many(tf: Any, places: str, dtype: str, packing: str) -> Any:
    raw = tf.raw_ops
    packed = raw.SerializeManySparse(out_type=packing, **_arguments(tf, places, dtype))
    back = raw.DeserializeSparse(serialized_sparse=packed, dtype=dtype)
    return [raw.SerializeTensor(tensor=packed), *back]


def _fed(tf: Any, value: Any) -> Any:
    """A value of whose shape TensorFlow's front end knows nothing."""
    return tf.placeholder_with_default(value, None)


_UNPACKABLE: dict[str, Any] = {
    "vector_of_places": {"sparse_indices": [0, 1]},
    "matrix_of_values": {"sparse_values": [[1.0, 2.0, 3.0]]},
    "matrix_of_sizes": {"sparse_shape": [[2, 3]]},
    "too_few_values": {"sparse_values": [1.0, 2.0]},
    "too_many_sizes": {"sparse_shape": [2, 3, 4]},
    "negative_size": {"sparse_shape": [-2, 3]},
}
_TYPES = {"sparse_indices": np.int64, "sparse_values": np.float32, "sparse_shape": np.int64}


def unpackable(tf: Any, which: str, packing: str) -> Any:
    """A batch whose parts do not fit together."""
    given: dict[str, Any] = {
        "sparse_indices": [[0, 1], [1, 0], [1, 2]], "sparse_values": [1.0, 2.0, 3.0],
        "sparse_shape": [2, 3], **_UNPACKABLE[which],
    }  # fmt: skip
    parts = {name: _fed(tf, np.array(value, _TYPES[name])) for name, value in given.items()}
    return tf.shape(tf.raw_ops.SerializeManySparse(out_type=packing, **parts))


def _packed(tf: Any, array: Any, packing: str) -> Any:
    """A tensor as a string, or as a variant that holds it."""
    value = tf.constant(array)
    if packing == "string":
        return tf.raw_ops.SerializeTensor(tensor=value)
    proto = tensor_proto(tf, "variant", ())
    held = proto.variant_val.add(type_name="tensorflow::Tensor")
    held.tensors.add().CopyFrom(tf.make_tensor_proto(array))
    return constant(tf, "variant", proto)


_MATRIX = {
    "places": np.array([[0, 1], [1, 0]], np.int64),
    "values": np.array([1, 2], np.float32),
    "sizes": np.array([2, 3], np.int64),
}
#: What stands in place of a part, and what is said of it.
_UNREADABLE: dict[str, tuple[dict[str, Any], str]] = {
    "matrix_of_values": (
        {"values": np.ones((1, 2), np.float32)},
        "Expected serialized_sparse[0, 1] to represent a values vector but received shape [1,2]",
    ),
    "vector_of_places": (
        {"places": np.zeros(2, np.int64)},
        "Expected serialized_sparse[0, 0] to represent an index matrix but received shape [2]",
    ),
    "scalar_size": ({"sizes": np.int64(2)}, "to be a shape vector but its shape is []"),
    "integer_values": (
        {"values": np.ones(2, np.int32)},
        "Requested SparseTensor of type float but SparseTensor[0].values.dtype() == int32",
    ),
    "too_many_values": (
        {"values": np.ones(3, np.float32)},
        "Expected row counts of SparseTensor[0].indices and SparseTensor[0].values to match "
        "but they do not: 2 vs. 3",
    ),
    "too_few_sizes": (
        {"sizes": np.array([2], np.int64)},
        "Expected column counts of SparseTensor[0].indices to match size of "
        "SparseTensor[0].shape but they do not: 2 vs. 1",
    ),
}


def unreadable(tf: Any, which: str, packing: str) -> Any:
    parts = {**_MATRIX, **_UNREADABLE[which][0]}
    packed = tf.stack([_packed(tf, part, packing) for part in parts.values()])
    return tf.raw_ops.DeserializeSparse(serialized_sparse=packed, dtype=tf.float32)


def integers_for_places(tf: Any) -> Any:
    parts = {**_MATRIX, "places": np.zeros((2, 2), np.int32)}
    packed = tf.stack([_packed(tf, part, "variant") for part in parts.values()])
    return tf.raw_ops.DeserializeSparse(serialized_sparse=packed, dtype=tf.float32)


def other_objects(tf: Any) -> Any:
    none = tf.stack([tf.raw_ops.OptionalNone()] * 3)
    return tf.raw_ops.DeserializeSparse(serialized_sparse=none, dtype=tf.float32)


def other_ranks(tf: Any, packing: str) -> Any:
    raw = tf.raw_ops
    both = [
        raw.SerializeSparse(out_type=packing, **_arguments(tf, places, "float32"))
        for places in ("matrix", "vector")
    ]
    return raw.DeserializeSparse(serialized_sparse=tf.stack(both), dtype=tf.float32)


def misshapen(tf: Any, which: str, packing: str) -> Any:
    packed = tf.stack([_packed(tf, part, packing) for part in _MATRIX.values()])
    shaped = {"pairs": packed[:2], "scalar": packed[0], "none": packed[None][:0]}[which]
    return tf.raw_ops.DeserializeSparse(serialized_sparse=_fed(tf, shaped), dtype=tf.float32)


_SAID = {
    "vector_of_places": "Input indices should be a matrix but received shape [2]",
    "matrix_of_values": "Input values should be a vector but received shape [1,3]",
    "matrix_of_sizes": "Input shape should be a vector but received shape [1,2]",
    "too_few_values": "rows (indexing dimension) must match. (indices = 3, values = 2)",
    "too_many_sizes": "Order length must be SparseTensor rank.",
    "negative_size": "Expected shape dimensions to be non-negative, got -2",
}
_SHAPES = {
    "pairs": "Serialized sparse should have 3 as the last dimension [2]",
    "scalar": "Serialized sparse should have non-zero rank []",
    "none": "Serialized sparse should have at least 1 serialized tensor",
}
CASES = [
    *(graph(single, *args) for args in product(_PLACES, ("float32", "string"), _PACKINGS)),
    *(graph(single, "matrix", dtype, packing)
      for dtype, packing in product(("bool", "complex64"), _PACKINGS)),
    *(graph(many, *args) for args in product(("matrix", "nothing", "cube"), _VALUES, _PACKINGS)),
    *(graph(many, "vector", "float32", packing, says="should be > 1, but saw rank: 1")
      for packing in _PACKINGS),
    *(graph(unpackable, which, packing, says=_SAID[which])
      for which, packing in product(_UNPACKABLE, _PACKINGS)),
    *(graph(unreadable, which, packing, says=_UNREADABLE[which][1])
      for which, packing in product(_UNREADABLE, _PACKINGS)
      if (which, packing) != ("scalar_size", "string")),
    graph(integers_for_places, says="to be a matrix of DT_INT64 but received dtype int32"),
    graph(other_objects, says="Could not get a tensor from"),
    *(graph(other_ranks, packing, says="rank prior to SparseTensor[1] was: 2")
      for packing in _PACKINGS),
    *(graph(misshapen, which, packing, says=_SHAPES[which])
      for which, packing in product(_SHAPES, _PACKINGS)),
]  # fmt: skip
