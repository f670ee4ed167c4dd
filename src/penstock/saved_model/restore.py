"""Giving a graph of TensorFlow 1 the values of a checkpoint.

In:   a MetaGraphDef without objects; its graph and session; the prefix of a checkpoint.
Out:  variables that have their values; the nodes that fill its tables.
Not:  knows no folder, and not which tables there are.

A graph that was saved by a Saver has the nodes that restore it.  The modules of TensorFlow 1 Hub
were noted before such nodes were put in: the collection ``variables`` says under which name each
variable was saved, and as which part of a larger one.  Where there is neither, a variable was saved
under its own name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.message import DecodeError

from penstock.checkpoint import Checkpoint
from penstock.checkpoint import load as open_checkpoint
from penstock.core.names import parse_endpoint
from penstock.core.values import Value
from penstock.defs.schema import Message, VariableDef
from penstock.errors import DataLossError
from penstock.graph.graph import Graph
from penstock.graph.initializers import VARIABLES, Restorer, restorer_of
from penstock.saved_model.direct_restore import Restored, planned, restore_all
from penstock.session import Session

_VARIABLES: Final = "variables"
_TABLES: Final = "table_initializer"


def restore(session: Session, graph: Graph, meta_graph: Any, prefix: str) -> None:
    """Give all variables their values.

    Raises:
        NotFoundError: the checkpoint lacks a variable.
        DataLossError: the checkpoint or the collection of variables is damaged, or they do not fit.
        OpError: what restores the graph fails.

    """
    restorer = _restorer(graph, meta_graph)
    if restorer is not None:
        _run(restorer, session, graph, prefix)
    elif meta_graph.collection_def[_VARIABLES].bytes_list.value:
        _initialize(session, graph, meta_graph, open_checkpoint(prefix))
    else:
        restore_all(_by_own_names(graph), open_checkpoint(prefix), session.resources_of)


def table_initializers(meta_graph: Any) -> list[str]:
    """The nodes that fill tables, as a collection names them."""
    names = meta_graph.collection_def[_TABLES].node_list.value
    return [parse_endpoint(name).node for name in names]


def restore_op(meta_graph: Any) -> str:
    """The node that the model says restores it; empty if it names none."""
    return str(meta_graph.saver_def.restore_op_name)


def _restorer(graph: Graph, meta_graph: Any) -> Restorer | None:
    saver = meta_graph.saver_def
    if saver.restore_op_name:
        return Restorer(saver.restore_op_name, saver.filename_tensor_name)
    variable = next((node for node in graph if node.op.name in VARIABLES), None)
    return None if variable is None else restorer_of(graph, variable.name)


def _run(restorer: Restorer, session: Session, graph: Graph, prefix: str) -> None:
    """Restore as the graph does it: directly if that is all that there is to do."""
    filename = parse_endpoint(restorer.prefix).node
    plan = planned(graph, parse_endpoint(restorer.node).node, filename)
    if plan is None:
        session.run(restorer.node, {restorer.prefix: prefix})
    else:
        restore_all(plan, open_checkpoint(prefix), session.resources_of)


def _by_own_names(graph: Graph) -> list[Restored]:
    variables = [node for node in graph if node.op.name in VARIABLES]
    return [
        Restored(node, node.attrs["shared_name"].decode() or node.name, "") for node in variables
    ]


# -- modules of TensorFlow 1 Hub -----------------------------------------------------------------


def _initialize(session: Session, graph: Graph, meta_graph: Any, checkpoint: Checkpoint) -> None:
    """Run the initializers of variables, with other values than their own."""
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
