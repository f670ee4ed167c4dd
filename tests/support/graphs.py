"""Graphs as text, so that tests read as before and after.

x = Placeholder                      a node; type attributes are float32 unless given
y = Neg(x) @/device:CPU:1            inputs, and the device that is asked for
z = Add[T=int32](a, b:1, ^x)         attributes in brackets, control inputs last
c = Const[value=1|2; dtype=int32]    a tensor; `|` separates the items of a list
b = Barrier[shapes=()|2]             shapes: `()` is a scalar's
p = PartitionedCall[f=F{T=int32}](a) a function with its attributes; T=$T is a placeholder
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.catalogue.op_def import OpDef
from penstock.catalogue.registry import find_op
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import freeze
from penstock.defs import attrs as attr_codec
from penstock.defs.attrs import FuncAttr, PlaceholderAttr, TensorAttr
from penstock.defs.schema import GraphDef, Message
from penstock.graph.graph import Graph
from penstock.graph.import_graph_def import graph_from_def

_LINE = re.compile(r"(\S+) = (\w+)(?:\[(.*?)\])?(?:\((.*?)\))?(?: @(\S+))?$")
_REQUIRED: dict[str, Any] = {
    "type": dtypes.float32,
    "int": 2,
    "tensor": TensorAttr(value=np.float32(0)),
    "shape": TensorShape(None),
    "string": b"",
    "float": 0.0,
    "bool": False,
    "list(type)": (dtypes.float32,),
    "list(shape)": (TensorShape(()),),
}


def graph_def(text: str, producer: int = 2000, ops: Mapping[str, OpDef] | None = None) -> Message:
    """A GraphDef from text; ``ops`` are signatures that the catalogue does not have."""
    proto = GraphDef()
    proto.versions.producer = producer
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _LINE.match(line)
        assert match is not None, f"not a node: {line}"
        name, op, attrs, inputs, device = match.groups()
        node = proto.node.add(name=name, op=op, device=device or "")
        node.input.extend(part.strip() for part in (inputs or "").split(",") if part.strip())
        _set_attrs(node, (ops or {}).get(op) or find_op(op), attrs or "")
    return proto


def graph(text: str, *, allow_internal_names: bool = False) -> Graph:
    """A graph from text."""
    return graph_from_def(graph_def(text), allow_internal_names=allow_internal_names)


def lines(graph: Graph, devices: dict[int, str] | None = None) -> list[str]:
    """A graph as text, without attributes; with devices if they are given."""
    shown = []
    for node in graph:
        inputs = [
            ("?" if e is None else f"{e.src.name}:{e.src_slot}" if e.src_slot else e.src.name)
            for e in node.inputs
        ]
        inputs += [f"^{edge.src.name}" for edge in node.control_inputs]
        line = f"{node.name} = {node.op.name}" + (f"({', '.join(inputs)})" if inputs else "")
        if devices is not None:
            line += f" @{devices[node.id].rpartition('/device:')[2]}"
        shown.append(line)
    return shown


def _set_attrs(node: Any, op: OpDef | None, text: str) -> None:
    given = dict(part.split("=", 1) for part in re.split(r";\s*|,\s*(?=\w+=)", text) if part)
    declared = dict(op.attrs) if op else {}
    dtype = dtypes.as_dtype(given["dtype"]) if node.op == "Const" and "dtype" in given else None
    for name, attr in declared.items():
        if name in given:
            value = _parse(attr.kind, given.pop(name), dtype)
        elif attr.default is None:
            value = _REQUIRED[attr.kind]
        else:
            continue
        node.attr[name].CopyFrom(attr_codec.to_proto(attr.kind, value))
    for name, value in given.items():
        items = tuple(part.encode() for part in value.split("|"))
        node.attr[name].CopyFrom(attr_codec.to_proto("list(string)", items))


def _parse(kind: str, text: str, dtype: DType | None = None) -> Any:  # noqa: C901  (a table)
    if text.startswith("$"):
        return PlaceholderAttr(text[1:])
    if kind.startswith("list("):
        return tuple(_parse(kind[5:-1], part) for part in text.split("|") if part)
    match kind:
        case "type":
            return dtypes.as_dtype(text)
        case "int":
            return int(text)
        case "bool":
            return text == "true"
        case "string":
            return text.encode()
        case "float":
            return float(text)
        case "tensor":
            return TensorAttr(value=_tensor(text, dtype or dtypes.float32))
        case "shape":
            return TensorShape.of([int(size) for size in text.strip("()").split("|") if size])
        case "func":
            return _func(text)
        case _:
            raise AssertionError(f"no text form for attributes of kind {kind}")


def _tensor(text: str, dtype: DType) -> Any:
    items = [_item(part, dtype) for part in text.split("|")]
    return freeze(np.array(items, dtype.numpy)) if "|" in text else items[0]


def _item(text: str, dtype: DType) -> Any:
    if dtype is dtypes.string:
        return text.encode()
    return dtype.numpy.type(ast.literal_eval(text))


def _func(text: str) -> FuncAttr:
    """``F``, or ``F{T=int32 g=G}`` with attributes: types, numbers, functions."""
    name, _, listed = text.removesuffix("}").partition("{")
    pairs = (part.split("=", 1) for part in listed.split())
    return FuncAttr(name, {key: _func_attr(value) for key, value in pairs})


def _func_attr(text: str) -> Any:
    if text.startswith("$"):
        return PlaceholderAttr(text[1:])
    if text.isdigit():
        return int(text)
    # By name: numpy would take a function called F for complex64.
    dtype = getattr(dtypes, text, None)
    return dtype if isinstance(dtype, DType) else FuncAttr(text, {})
