"""Constants in every form that a message may give them: contents, lists, too few and too many.

In:   element types with three elements each, in the list of their type.
Out:  graphs with one Const each.
Not:  fetches no variant; these are in ``variants``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from cases_src.casebook import Case, graph

#: Three elements of each type: the field, its numbers, and how many of them make an element.
_LISTS: Any = {
    "float32": ("float_val", [1.5, 2.5, 3.5], 1),
    "float64": ("double_val", [1.5, 2.5, 3.5], 1),
    "int32": ("int_val", [1, -2, 3], 1),
    "int8": ("int_val", [300, -2, 70000], 1),
    "uint16": ("int_val", [1, -2, 70000], 1),
    "string": ("string_val", [b"a", b"b", b"c"], 1),
    "complex64": ("scomplex_val", [1, 2, 3, 4, 5, 6], 2),
    "complex128": ("dcomplex_val", [1, 2, 3, 4, 5, 6], 2),
    "int64": ("int64_val", [1, -2, 3], 1),
    "bool": ("bool_val", [True, False, True], 1),
    "qint8": ("int_val", [1, -2, 300], 1),
    "bfloat16": ("half_val", [0x3F80, 0x4000, 0x14040], 1),
    "float16": ("half_val", [0x3C00, 0x4000, 0x14200], 1),
    "uint32": ("uint32_val", [1, 2, 3], 1),
    "uint64": ("uint64_val", [1, 2, 3], 1),
}
_SHAPES = ((), (3, 0), (2,), (2, 3))
_BROKEN = "Cannot parse tensor from proto"


def tensor_proto(tf: Any, dtype: Any, shape: Sequence[int], **fields: Any) -> Any:
    """A TensorProto with the given fields; lists are added to."""
    proto = type(tf.make_tensor_proto(0))(dtype=tf.as_dtype(dtype).as_datatype_enum)
    proto.tensor_shape.SetInParent()
    for size in shape:
        proto.tensor_shape.dim.add(size=size)
    for name, value in fields.items():
        if isinstance(value, bytes):
            setattr(proto, name, value)
        else:
            getattr(proto, name).extend(value)
    return proto


def constant(tf: Any, dtype: Any, proto: Any) -> Any:
    """A Const of just this message, at which TensorFlow's front end does not look."""
    graph_def = tf.GraphDef()
    node = graph_def.node.add(name="c", op="Const")
    node.attr["dtype"].type = tf.as_dtype(dtype).as_datatype_enum
    node.attr["value"].tensor.CopyFrom(proto)
    return tf.import_graph_def(graph_def, name="", return_elements=["c:0"])[0]


def const(tf: Any, dtype: str, shape: Sequence[int], fields: Any) -> Any:
    return constant(tf, dtype, tensor_proto(tf, dtype, shape, **fields))


def mistyped(tf: Any) -> Any:
    return constant(tf, "float32", tensor_proto(tf, "int32", ()))


def of_references(tf: Any) -> Any:
    proto = tensor_proto(tf, "float32", (), float_val=[1])
    proto.dtype += 100
    return constant(tf, "float32", proto)


def _lists(dtype: str) -> list[Case]:
    field, items, width = _LISTS[dtype]
    return [
        graph(const, dtype, shape, {field: items[: count * width]})
        for shape, count in product(_SHAPES, (0, 1, 3))
    ]


CASES = [
    *(case for dtype in _LISTS for case in _lists(dtype)),
    *(graph(const, kind, (3,), {field: [1.0] * count})
      for kind, field in (("complex64", "scomplex_val"), ("complex128", "dcomplex_val"))
      for count in (1, 3, 5)),
    *(graph(const, "float32", (0, 2), {"tensor_content": bytes(count)}) for count in (0, 3, 4)),
    graph(const, "string", (0,), {"string_val": [b"a"]}),
    *(graph(const, "float32", (2,), {"tensor_content": bytes(count)}, says=_BROKEN)
      for count in (1, 4, 7, 9, 12)),
    graph(const, "float32", (1,), {"tensor_content": b"\0\0\x80?", "float_val": [7]}),
    graph(const, "bool", (2,), {"tensor_content": b"\0\1"}),
    graph(const, "bool", (3,), {"tensor_content": b"\0\2\xff"}, says=_BROKEN),
    graph(const, "string", (2,), {"tensor_content": b"\1\2abb"}),
    graph(const, "string", (2,), {"tensor_content": b"\0\0", "string_val": [b"q"]}),
    graph(const, "string", (), {"tensor_content": b"\3abc"}),
    graph(const, "string", (0,), {"tensor_content": b"\3abc"}),
    *(graph(const, "string", (2,), {"tensor_content": content}, says=_BROKEN)
      for content in (b"\1", b"\1\5abb", b"\1\1abb", b"\1\xff", b"\0\0\0")),
    graph(mistyped, says="Type mismatch between value (int32) and dtype (float)"),
    graph(of_references, says=_BROKEN),
]  # fmt: skip
