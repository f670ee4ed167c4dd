"""Variants as messages: constants, zeros and sums of them, and how they are written and printed.

In:   objects of each class that can stand in a message, and damaged ones.
Out:  graphs that fetch the objects serialized, or as text, since variants cannot be fetched.
Not:  asks for no map of several keys, whose order TensorFlow leaves open.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from cases_src.casebook import f32, graph, i32, i64, s
from cases_src.constants import constant, tensor_proto

_BROKEN = "Cannot parse tensor from proto"
_ANY = b"\xff" * 9 + b"\x01"  # -1, as a varint of 64 bits
_VECTORS = b"\x12\x02\x08\x02"  # a message of the shape [2]
_UNKNOWN = b"\x18\x01"  # a message of an unknown shape
_LIST, _MAP, _OPTIONAL, _RAGGED, _CSR, _TENSOR = (
    "tensorflow::TensorList", "tensorflow::TensorMap", "tensorflow::data::Optional",
    "RaggedTensorVariant", "tensorflow::CSRSparseMatrix", "tensorflow::Tensor",
)  # fmt: skip
_FLOATS = [f32([1, 2]), f32([3, 4])]
_INNER: Any = (_LIST, b"\0\x03\x05" + _UNKNOWN, [i32([1, 2]), i32(3)])
_SPLIT = [i64([0, 2, 3]), i32([1, 2, 3])]
_MATRIX = [i64([2, 3]), i32([0, 1]), i32([0, 1, 1]), i32([1]), f32([1])]
_IS_FLOAT = struct.pack("<?3xi", True, 1)
#: Name of the class, metadata, and tensors; a tuple among these is an object once more.
_OBJECTS: dict[str, Any] = {
    "int": ("int", struct.pack("<i", 7), []),
    "float": ("float", struct.pack("<f", 2.5), []),
    "double": ("double", struct.pack("<d", -1e300), []),
    "true": ("bool", b"\1", []),
    "tensor": (_TENSOR, b"", [i32([[1, 2], [3, 4]])]),
    "list": (_LIST, b"\0\1" + _ANY + _VECTORS, _FLOATS),
    "list_with_gaps": (_LIST, b"\2\0\2\1\5" + _VECTORS, _FLOATS),
    "list_of_strings": (_LIST, b"\0\7" + _ANY, [s(b"a"), s(b"bc")]),
    "list_of_lists": (_LIST, b"\1\1\x15" + _ANY + _UNKNOWN, [_INNER]),
    "list_of_ints": (_LIST, b"\0\x15" + _ANY + _UNKNOWN, [("int", b"\7\0\0\0", [])]),
    "map": (_MAP, b"", [s(b"a"), f32(1.5)]),
    "no_map": (_MAP, b"", []),
    "optional": (_OPTIONAL, b"\1", [i32(1), f32([2.5, 1])]),
    "optional_of_list": (_OPTIONAL, b"\1", [_INNER]),
    "optional_strings": (_OPTIONAL, b"\1", [s(b"x")]),
    "no_optional": (_OPTIONAL, b"\0", []),
    "ragged": (_RAGGED, b"", _SPLIT),
    "flat": (_RAGGED, b"", [f32([1, 2])]),
    "matrix": (_CSR, _IS_FLOAT, _MATRIX),
    "nothing": ("", b"", []),
}
_DAMAGED: dict[str, Any] = {
    "unknown": ("nobody::Knows", b"x", []),
    "dataset": ("tensorflow::DatasetVariantWrapper", b"", []),
    "long": ("long", bytes(8), []),
    "short_int": ("int", b"\1", []),
    "long_int": ("int", bytes(9), []),
    "nothing_with_metadata": ("", b"x", []),
    "list_cut_off": (_LIST, b"\5\1", []),
    "map_of_a_key": (_MAP, b"", [s(b"a")]),
    "optional_without_metadata": (_OPTIONAL, b"", []),
    "ragged_without_values": (_RAGGED, b"", []),
    "matrix_without_values": (_CSR, _IS_FLOAT, _MATRIX[:1]),
}


def _message(tf: Any, made: Any, described: Any) -> Any:
    """Fill a VariantTensorDataProto."""
    made.type_name, made.metadata, tensors = described[0].encode(), described[1], described[2]
    for tensor in tensors:
        if isinstance(tensor, tuple):
            inner = made.tensors.add(dtype=tf.variant.as_datatype_enum)
            inner.tensor_shape.SetInParent()
            _message(tf, inner.variant_val.add(), tensor)
        else:
            made.tensors.add().CopyFrom(tf.make_tensor_proto(tensor))
    return made


def _objects(tf: Any, names: Sequence[str], shape: Sequence[int], form: str = "list") -> Any:
    """A constant of objects, in a list or as content bytes."""
    proto, scratch = tensor_proto(tf, "variant", shape), tensor_proto(tf, "variant", ())
    every = _OBJECTS | _DAMAGED
    messages = [_message(tf, scratch.variant_val.add(), every[name]) for name in names]
    if form == "list":
        proto.variant_val.extend(messages)
    else:
        texts = [message.SerializeToString() for message in messages]
        proto.tensor_content = b"".join([*(bytes([len(text)]) for text in texts), *texts])
    return constant(tf, "variant", proto)


def _seen(tf: Any, variant: Any) -> list[Any]:
    raw = tf.raw_ops
    text = raw.StringFormat(inputs=[variant], template="%s", placeholder="%s", summarize=2)
    return [raw.SerializeTensor(tensor=variant), text, raw.AsString(input=variant)]


def written(tf: Any, name: str) -> Any:
    return _seen(tf, _objects(tf, [name], ()))


def zeros_like(tf: Any, name: str) -> Any:
    return _seen(tf, tf.raw_ops.ZerosLike(x=_objects(tf, [name], ())))


def sum_of(tf: Any, *names: str) -> Any:
    return _seen(tf, tf.raw_ops.AddN(inputs=[_objects(tf, [name], ()) for name in names]))


def several(tf: Any, form: str, names: Sequence[str], shape: Sequence[int]) -> Any:
    return _seen(tf, _objects(tf, names, shape, form))


def zeros_of_several(tf: Any) -> Any:
    return tf.raw_ops.ZerosLike(x=_objects(tf, ["int"], (2,)))


def sum_of_several(tf: Any) -> Any:
    return tf.raw_ops.AddN(inputs=[_objects(tf, ["int"], (2,))] * 2)


def used(tf: Any) -> Any:
    """Lists, maps, optionals and ragged tensors that come from constants are as good as any."""
    raw = tf.raw_ops
    handle, inner = _objects(tf, ["list_with_gaps"], ()), _objects(tf, ["list_of_lists"], ())
    first = raw.TensorListGetItem(
        input_handle=inner, index=0, element_shape=tf.constant([], tf.int32),
        element_dtype=tf.variant,
    )  # fmt: skip
    return [
        raw.TensorListStack(input_handle=handle, element_shape=[2], element_dtype=tf.float32),
        raw.TensorListLength(input_handle=inner),
        raw.TensorListLength(input_handle=first),
        raw.TensorMapLookup(
            input_handle=_objects(tf, ["map"], ()), key=tf.constant("a"), value_dtype=tf.float32
        ),
        *raw.OptionalGetValue(
            optional=_objects(tf, ["optional"], ()), output_types=[tf.int32, tf.float32],
            output_shapes=[[], [2]],
        ),
        *raw.RaggedTensorFromVariant(
            encoded_ragged=_objects(tf, ["ragged"], ()), input_ragged_rank=1,
            output_ragged_rank=1, Tvalues=tf.int32, Tsplits=tf.int64,
        ),
    ]  # fmt: skip


def made_by_ops(tf: Any) -> Any:
    """What ops put on variant edges, written as messages and as text."""
    raw = tf.raw_ops
    scalar = tf.constant([], tf.int32)
    pushed = raw.TensorListFromTensor(tensor=tf.constant([[1.0, 2.0]]), element_shape=[2])
    reserved = raw.TensorListReserve(
        element_shape=[-1, 3], num_elements=2, element_dtype=tf.float16
    )
    unset = raw.TensorListReserve(element_shape=scalar, num_elements=2, element_dtype=tf.variant)
    args = {"input_handle": unset, "element_shape": scalar, "element_dtype": tf.variant}
    ragged = {"rt_nested_splits": [i64([0, 2, 3])], "rt_dense_values": i32([1, 2, 3])}
    variants = [
        pushed,
        raw.EmptyTensorList(element_shape=-1, max_num_elements=5, element_dtype=tf.int64),
        reserved,
        raw.TensorListGetItem(index=1, **args),
        raw.TensorListStack(**args),
        raw.ZerosLike(x=unset),
        raw.AddN(inputs=[unset, unset]),
        raw.TensorListSetItem(input_handle=unset, index=1, item=pushed),
        raw.TensorMapInsert(input_handle=raw.EmptyTensorMap(), key=i32([1]), value=s([b"x"])),
        raw.OptionalNone(),
        raw.OptionalFromValue(components=[tf.constant([True, False]), pushed]),
        raw.RaggedTensorToVariant(batched_input=False, **ragged),
        raw.RaggedTensorToVariant(batched_input=True, **ragged),
        tf.stack([pushed, raw.OptionalNone()]),
    ]
    return [seen for variant in variants for seen in _seen(tf, variant)]


_ELEMENTS = {
    "half": np.array([1.5, -2], np.float16), "bool": np.array([True, False]),
    "uint64": np.array([1, 2**63], np.uint64), "complex": np.array([1 + 2j], np.complex64),
    "bytes": np.array([255, 0], np.uint8), "none": np.zeros((0, 2), np.float64),
}  # fmt: skip


def element(tf: Any, name: str) -> Any:
    """Elements of a variant stand in the list of their type."""
    value = tf.constant(_ELEMENTS[name])
    return _seen(tf, tf.raw_ops.OptionalFromValue(components=[value]))


def parsed(tf: Any, name: str) -> Any:
    """A variant that was serialized can be read again."""
    text = tf.raw_ops.SerializeTensor(tensor=_objects(tf, [name], ()))
    return _seen(tf, tf.raw_ops.ParseTensor(serialized=text, out_type=tf.variant))


def shown(tf: Any, dtype: str) -> Any:
    """Elements of some types are printed as if they stood in one row."""
    value = tf.constant([[1.0, 2], [3, 4]])
    if dtype == "complex64":
        made = tf.cast(value, tf.complex64)
    else:
        made = tf.raw_ops.QuantizeV2(input=value, min_range=0, max_range=4, T=dtype)[0]
    return [
        tf.raw_ops.StringFormat(inputs=[made], template="%s", placeholder="%s", summarize=count)
        for count in (1, 3, -1, 0)
    ]


def printed(tf: Any) -> Any:
    three = _objects(tf, ["list", "int", "nothing"], (3,))
    return tf.raw_ops.Assert(condition=False, data=[_objects(tf, ["true"], ()), three], summarize=2)


_NO_ZEROS = ("tensor", "matrix", "nothing")
_TEXTS = ("list_of_strings", "optional_strings")
CASES = [
    *(graph(written, name) for name in _OBJECTS),
    *(graph(written, name, says=_BROKEN) for name in _DAMAGED),
    *(graph(zeros_like, name) for name in _OBJECTS if name not in _NO_ZEROS + _TEXTS),
    *(graph(zeros_like, name, says="function found for op ZEROS_LIKE") for name in _NO_ZEROS),
    *(graph(zeros_like, name, says="zeros_like for unsupported dtype string") for name in _TEXTS),
    *(graph(sum_of, name, name, name) for name in _OBJECTS if name not in _NO_ZEROS + _TEXTS),
    *(graph(sum_of, name, name, says="binary_op function found for op ADD") for name in _NO_ZEROS),
    *(graph(sum_of, name, name, says="add unsupported dtype 7") for name in _TEXTS),
    *(graph(sum_of, name) for name in (*_NO_ZEROS, *_TEXTS)),
    graph(sum_of, "int", "float", says="different type ids.  Type names: 'int' vs. 'float'"),
    graph(sum_of, "list", "map", says="different type ids"),
    graph(zeros_of_several, says="ZerosLike non-scalar Tensor with dtype=DT_VARIANT"),
    graph(sum_of_several, says="AddN of non-scalar Tensor with dtype=DT_VARIANT"),
    *(graph(several, form, ["int", "list"], (2,)) for form in ("list", "content")),
    graph(several, "list", ["int", "list"], (2, 2)),
    graph(several, "list", [], ()),
    graph(several, "list", ["int"], (0,)),
    graph(several, "list", ["int", "list"], ()),
    graph(several, "content", ["int", "list"], (3,), says=_BROKEN),
    graph(used),
    graph(made_by_ops),
    *(graph(shown, dtype) for dtype in ("complex64", "qint32", "quint8")),
    *(graph(element, name) for name in _ELEMENTS),
    *(graph(parsed, name) for name in _OBJECTS),
    graph(printed, says="assertion failed: [<1>] [<TensorList> <7>...]"),
]
