"""Functions as text, for graphs that call them.

Cube(x: T) -> (y: T) [T: type]      a row as in the op table
square = Mul[T=$T](x, x)            nodes as in ``support.graphs``; $T is the function's own T
cube = Mul[T=$T](square:z, x)
return y = cube:z                   one line for each result
control done = square               nodes that must run
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from penstock.catalogue.op_def import ArgDef, AttrDef, OpDef, parse_row
from penstock.defs import attrs as attr_codec
from penstock.defs.schema import FunctionDef, FunctionDefLibrary, Message
from penstock.graph.functions import FunctionLibrary
from penstock.session import Session
from support.graphs import graph_def


def function(text: str, ops: Mapping[str, OpDef] | None = None) -> Message:
    """A FunctionDef from text; ``ops`` are the signatures of functions that it calls."""
    row, *lines = filter(None, map(str.strip, text.splitlines()))
    proto = FunctionDef()
    _set_signature(proto.signature, parse_row(row))
    nodes = []
    for line in lines:
        word, _, rest = line.partition(" ")
        name, _, source = rest.partition(" = ")
        if word == "return":
            proto.ret[name] = source
        elif word == "control":
            proto.control_ret[name] = source
            proto.signature.control_output.append(name)
        else:
            nodes.append(line)
    proto.node_def.extend(graph_def("\n".join(nodes), ops=ops).node)
    return proto


def _parts(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def _signatures(text: str) -> dict[str, OpDef]:
    rows = [parse_row(part.splitlines()[0].strip()) for part in _parts(text)]
    return {op.name: op for op in rows}


def functions(text: str) -> list[Message]:
    """Several functions, with empty lines between them."""
    signatures = _signatures(text)
    return [function(part, signatures) for part in _parts(text)]


def library(*protos: Message) -> FunctionLibrary:
    """A library of FunctionDefs."""
    made = FunctionLibrary()
    made.add_library(FunctionDefLibrary(function=protos))
    return made


def graph_def_with(text: str, functions_text: str) -> Message:
    """A GraphDef from the text of its nodes and of its functions."""
    proto = graph_def(text, ops=_signatures(functions_text))
    proto.library.function.extend(functions(functions_text))
    return proto


def session_with(text: str, functions_text: str, **options: Any) -> Session:
    """A session of a graph with functions."""
    return Session(graph_def_with(text, functions_text), **options)


def _set_signature(proto: Any, op: OpDef) -> None:
    proto.name = op.name
    proto.is_stateful = op.is_stateful
    for arg in op.inputs:
        _set_arg(proto.input_arg.add(), arg)
    for arg in op.outputs:
        _set_arg(proto.output_arg.add(), arg)
    for attr in op.attrs.values():
        _set_attr(proto.attr.add(), attr)


def _set_arg(proto: Any, arg: ArgDef) -> None:
    proto.name = arg.name
    proto.type = arg.dtype.number if arg.dtype else 0
    proto.type_attr = arg.type_attr
    proto.number_attr = arg.number_attr
    proto.type_list_attr = arg.list_attr
    proto.is_ref = arg.is_ref


def _set_attr(proto: Any, attr: AttrDef) -> None:
    proto.name, proto.type = attr.name, attr.kind
    if attr.default is not None:
        proto.default_value.CopyFrom(attr_codec.to_proto(attr.kind, attr.default))
    if attr.minimum is not None:
        proto.has_minimum, proto.minimum = True, attr.minimum
    if attr.allowed is not None:
        kind = f"list({attr.kind})"
        allowed = sorted(attr.allowed, key=str)
        proto.allowed_values.CopyFrom(attr_codec.to_proto(kind, allowed))
