"""Small graphs as text, and executors for them.

A row is ``name = Op(inputs) attr=value``.  Inputs are written as in a GraphDef and may stand
further down.  Types follow from the inputs that stand above; ``float32`` if none does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from penstock.catalogue.op_def import OpDef
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.names import CONTROL_SLOT, parse_endpoint
from penstock.core.shapes import TensorShape
from penstock.core.values import freeze
from penstock.defs.attrs import FuncAttr, TensorAttr
from penstock.graph.functions import FunctionLibrary
from penstock.graph.graph import Graph
from penstock.runtime import Executor, KernelBinder, LocalExecutorParams
from penstock.runtime.executor.executor import new_local_executor

CPU: Final = "/job:localhost/replica:0/task:0/device:CPU:0"
_ROW: Final = re.compile(r"(\S+) = (\w+)\(([^)]*)\)(.*)")
_ATTR: Final = re.compile(r"(\w+)=(\"[^\"]*\"|'[^']*'|\[[^=]*\]|\([^=]*\)|\S+)")


def sketch(text: str, library: FunctionLibrary | None = None) -> Graph:
    """A graph from rows; nothing is checked, so that it may also be a bad one."""
    graph = Graph(library)
    inputs: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _ROW.fullmatch(line)
        assert match is not None, line
        name, op_name, listed, attr_text = match.groups()
        inputs[name] = [part.strip() for part in listed.split(",") if part.strip()]
        op = graph.op_def(op_name)
        given = dict(_ATTR.findall(attr_text))
        device = ast.literal_eval(given.pop("device", "''"))
        attrs = _attrs(graph, op, inputs[name], given)
        graph.add_node(name, op, attrs, device=device)
    for name, sources in inputs.items():
        slot = 0
        for source in map(parse_endpoint, sources):
            if source.slot == CONTROL_SLOT:
                graph.add_control_edge(graph.node(source.node), graph.node(name))
            else:
                graph.add_edge(graph.node(source.node), source.slot, graph.node(name), slot)
                slot += 1
    return graph


def _attrs(graph: Graph, op: OpDef, inputs: list[str], given: Mapping[str, str]) -> dict[str, Any]:
    attrs = {name: attr.default for name, attr in op.attrs.items() if attr.default is not None}
    data = [endpoint for endpoint in map(parse_endpoint, inputs) if endpoint.slot != CONTROL_SLOT]
    types = [
        node.output_types[endpoint.slot].base if (node := graph.find(endpoint.node)) else None
        for endpoint in data
    ]
    start = 0
    for arg in op.inputs:
        # The only list of an op takes what the other inputs leave.
        count = len(data) - len(op.inputs) + 1 if arg.is_list else 1
        mine = types[start : start + count]
        start += count
        if arg.number_attr:
            attrs[arg.number_attr] = count
        if arg.type_attr:
            attrs.setdefault(arg.type_attr, next(filter(None, mine), dtypes.float32))
        if arg.list_attr:
            attrs[arg.list_attr] = tuple(t or dtypes.float32 for t in mine)
    attrs |= {name: _value(op.attrs[name].kind, text) for name, text in given.items()}
    if op.name == "Const":
        attrs["dtype"] = attrs["value"].dtype
    for name, attr in op.attrs.items():
        if attr.kind == "type":
            attrs.setdefault(name, dtypes.float32)
    return attrs


def _value(kind: str, text: str) -> Any:
    if kind == "type":
        return dtypes.as_dtype(text)
    if kind == "func":
        return FuncAttr(text, {})
    literal = ast.literal_eval(text)
    if kind == "list(type)":
        return tuple(map(dtypes.as_dtype, literal))
    if kind == "tensor":
        return TensorAttr(value=value_of(literal))
    if kind == "shape":
        return TensorShape.of(literal)
    if kind == "list(shape)":
        return tuple(map(TensorShape.of, literal))
    return literal.encode() if isinstance(literal, str) else literal


def value_of(literal: Any, dtype: DType | None = None) -> Any:
    """A Python literal as a value: int32, float32, bool or string."""
    array = np.asarray(literal)
    if array.dtype.kind == "U":
        array = np.asarray(np.char.encode(array), object)
    kind = {"f": np.float32, "i": np.int32}.get(array.dtype.kind)
    array = array if kind is None else array.astype(kind)
    if dtype is not None:
        array = array.astype(dtype.numpy)
    return freeze(array) if array.ndim else array[()]


def executor_of(graph: Graph | str, **params: Any) -> Executor:
    """An executor of a graph or of its text, without a session."""
    if isinstance(graph, str):
        graph = sketch(graph)
    binder = KernelBinder(CPU)
    return new_local_executor(
        LocalExecutorParams(device=CPU, make_kernel=binder.bind, **params), graph
    )
