"""What the modules of TensorFlow 1 Hub leave to whoever loads them.

In:   a MetaGraphDef without nodes that restore; its session; its checkpoint.
Out:  variables that have their values; the nodes that fill its tables.
Not:  knows no folder; a module is a SavedModel with ``tfhub_module.pb`` beside it.

A module's graphs were noted before anything was put in that saves and restores: the collection
``variables`` says under which name each variable was saved, and as which part of a larger one;
tables are filled by the nodes of the collection ``table_initializer``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.message import DecodeError

from penstock.checkpoint import load
from penstock.core.names import parse_endpoint
from penstock.core.values import Value
from penstock.defs.schema import Message, VariableDef
from penstock.errors import DataLossError
from penstock.graph.graph import Graph
from penstock.session import Session

_VARIABLES: Final = "variables"
_TABLES: Final = "table_initializer"


def restore_by_name(session: Session, graph: Graph, meta_graph: Any, prefix: str) -> None:
    """Give variables their values: run their initializers, with other values than their own.

    Raises:
        DataLossError: the collection of variables or the checkpoint is damaged, or lacks one.
        NotFoundError: the checkpoint lacks a variable.

    """
    checkpoint = load(prefix)
    feeds: dict[str, Value] = {}
    targets = []
    for variable in _variables(meta_graph):
        initializer = parse_endpoint(variable.initializer_name).node
        node = graph.find(initializer)
        edge = node.inputs[1] if node is not None and len(node.inputs) > 1 else None
        if edge is None:
            raise DataLossError(f"The variable {variable.variable_name} has no initializer")
        targets.append(initializer)
        name, part = _saved_as(variable)
        feeds[f"{edge.src.name}:{edge.src_slot}"] = checkpoint.read(name, part)
    if targets:
        session.run(targets, feeds)


def table_initializers(meta_graph: Any) -> list[str]:
    """The nodes that fill tables."""
    names = meta_graph.collection_def[_TABLES].node_list.value
    return [parse_endpoint(name).node for name in names]


def _variables(meta_graph: Any) -> Iterator[Message]:
    for content in meta_graph.collection_def[_VARIABLES].bytes_list.value:
        try:
            yield VariableDef.FromString(content)
        except (DecodeError, ValueError) as cause:  # bad UTF-8 may be either
            raise DataLossError(f"The collection of variables is damaged: {cause}") from None


def _saved_as(variable: Any) -> tuple[str, tuple[slice, ...] | None]:
    """The name under which a variable was saved, and the part of it that it is."""
    info = variable.save_slice_info_def
    if info.full_name:
        pairs = zip(info.var_offset, info.var_shape, strict=True)
        return info.full_name, tuple(slice(start, start + size) for start, size in pairs)
    return parse_endpoint(variable.variable_name).node, None
