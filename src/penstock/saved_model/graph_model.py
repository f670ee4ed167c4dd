"""A model of TensorFlow 1: one graph, which restores and initializes itself.

In:   a MetaGraphDef without objects; the stored model that it is of.
Out:  a session whose variables and tables have their values; signatures; variables by name.
Not:  guesses nothing: what restores and initializes, and what is fed and fetched, is written down.

The order is TensorFlow's: variables are restored, then the first of these is run that there is:
the signature ``__saved_model_init_op``, the collection ``saved_model_main_op``, the collection
``legacy_init_op``, or else, of what is no SavedModel, the nodes of ``table_initializer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from penstock.config import Config
from penstock.core import dtypes
from penstock.core.names import parse_endpoint
from penstock.core.values import Value, copied
from penstock.defs.schema import GraphDef, Message
from penstock.defs.tensors import from_proto, to_proto
from penstock.errors import FailedPreconditionError, NotFoundError
from penstock.formats.stored_model import INIT_SIGNATURE, StoredModel, signature_names
from penstock.graph.graph import Graph, Node
from penstock.graph.import_graph_def import graph_from_def
from penstock.graph.initializers import VARIABLES
from penstock.kernels.state.variables import REFERENCE_VARIABLE, RESOURCE_VARIABLE
from penstock.saved_model.assets import assets_of
from penstock.saved_model.inferred_outputs import with_inferred_shapes
from penstock.saved_model.restore import restore, restore_op, table_initializers
from penstock.saved_model.signatures import Endpoints, Offer
from penstock.saved_model.tensor_info import read_tensor_info
from penstock.session import Session
from penstock.session.missing import check_nodes, has_unknown_ops, needed_nodes

_MAIN_OPS: Final = ("saved_model_main_op", "legacy_init_op")


def open_graph(
    meta_graph: Message, stored: StoredModel, checkpoint: str, config: Config
) -> tuple[Session, Graph]:
    """The model's graph, and a session on it, restored and initialized.

    Args:
        meta_graph: one of the model's.
        stored: the model.
        checkpoint: the prefix of the values of its variables; empty to leave them without.
        config: the session's.

    Raises:
        UnimplementedError: what is needed for that has ops without kernels; all are listed.
        OpError: the graph or the checkpoint is damaged.

    """
    assets = {
        a.tensor_info.name: stored.companions.asset(a.filename) for a in assets_of(meta_graph)
    }
    fed = _with_assets(meta_graph, assets)
    graph_def = _known_part(meta_graph)
    inits = init_ops(meta_graph, by_collection=stored.fills_by_collection)
    check_nodes(graph_def, [*filter(None, [checkpoint and restore_op(meta_graph)]), *inits])
    graph = graph_from_def(graph_def)
    session = Session(graph, config=config)
    try:
        if checkpoint:
            restore(session, graph, meta_graph, checkpoint)
        if inits:
            session.run(inits, fed)
    except BaseException:
        session.close()
        raise
    return session, graph


def init_ops(meta_graph: Any, *, by_collection: bool) -> list[str]:
    """The nodes that initialize tables and the like.

    Args:
        meta_graph: the graph.
        by_collection: whether those of a collection do it, where no node does all of it.

    """
    one = _init_op(meta_graph)
    if one:
        return [one]
    return table_initializers(meta_graph) if by_collection else []


def _init_op(meta_graph: Any) -> str:
    if INIT_SIGNATURE in meta_graph.signature_def:
        outputs = meta_graph.signature_def[INIT_SIGNATURE].outputs
        if INIT_SIGNATURE in outputs:
            return parse_endpoint(outputs[INIT_SIGNATURE].name).node
    for key in _MAIN_OPS:
        if key in meta_graph.collection_def and meta_graph.collection_def[key].node_list.value:
            return parse_endpoint(meta_graph.collection_def[key].node_list.value[0]).node
    return ""


def _known_part(meta_graph: Any) -> Message:
    """The graph; if it has ops that nobody knows, what signatures and initializers need of it."""
    graph_def = meta_graph.graph_def
    if not (signature_names(meta_graph) and has_unknown_ops(graph_def)):
        return graph_def
    names = [name for offer in _endpoints(meta_graph) for name in offer]
    names += filter(None, [restore_op(meta_graph), _init_op(meta_graph)])
    check_nodes(graph_def, names)
    part = GraphDef(versions=graph_def.versions, library=graph_def.library)
    part.node.extend(needed_nodes(graph_def, names))
    return part


def _endpoints(meta_graph: Any) -> Iterator[list[str]]:
    """The tensors of each signature."""
    for name in signature_names(meta_graph):
        proto = meta_graph.signature_def[name]
        infos = [*proto.inputs.values(), *proto.outputs.values()]
        yield [endpoint for info in infos for endpoint in read_tensor_info(info)[1]]


# -- assets --------------------------------------------------------------------------------------


def _with_assets(meta_graph: Any, assets: Mapping[str, str]) -> dict[str, str]:
    """Have constants that name assets hold their paths; returns what must be fed instead."""
    constants = {node.name: node for node in meta_graph.graph_def.node if node.op == "Const"}
    fed = {}
    for endpoint, path in assets.items():
        node = constants.get(parse_endpoint(endpoint).node)
        if node is None:
            fed[endpoint] = path
        elif node.attr["dtype"].type == dtypes.string.number:
            node.attr["value"].tensor.CopyFrom(to_proto(path.encode(), dtypes.string))
    return fed


# -- signatures ----------------------------------------------------------------------------------


def offers_of_graph(meta_graph: Any, session: Session) -> dict[str, Offer]:
    """The signatures of a model; raises DataLossError if one is damaged."""
    return {
        name: _offer(meta_graph.signature_def[name], meta_graph.graph_def, session)
        for name in signature_names(meta_graph)
    }


def _offer(proto: Any, graph_def: Message, session: Session) -> Offer:
    inputs = {name: read_tensor_info(proto.inputs[name]) for name in sorted(proto.inputs)}
    outputs = {name: read_tensor_info(proto.outputs[name]) for name in sorted(proto.outputs)}
    fed = [endpoint for _, endpoints in inputs.values() for endpoint in endpoints]
    fetched = [endpoint for _, endpoints in outputs.values() for endpoint in endpoints]
    return Offer(
        inputs={name: spec for name, (spec, _) in inputs.items()},
        outputs={name: spec for name, (spec, _) in outputs.items()},
        inferred=lambda: with_inferred_shapes(session.graph, outputs),
        prepare=lambda: _prepared(graph_def, session, fetched, fed),
        endpoints=lambda: Endpoints(fetched, fed),
        defaults={name: from_proto(value) for name, value in proto.defaults.items()},
        method=proto.method_name,
    )


def _prepared(
    graph_def: Message, session: Session, fetches: Sequence[str], feeds: Sequence[str]
) -> Callable[..., Sequence[Value]]:
    check_nodes(graph_def, fetches, feeds)
    run: Callable[..., Sequence[Value]] = session.make_callable(list(fetches), feeds)
    return run


# -- variables -----------------------------------------------------------------------------------


class GraphVariables(Mapping[str, Value]):
    """Values by the names of variables, as they are now; an array that is given is a copy."""

    def __init__(self, session: Session, graph: Graph) -> None:
        self._resources_of: Final = session.resources_of
        self._nodes: Final[Mapping[str, Node]] = {
            node.name: node for node in graph if node.op.name in VARIABLES
        }

    def __getitem__(self, name: str) -> Value:
        """The value of a variable.

        Raises:
            NotFoundError: there is none of the name; it is a KeyError as well.
            FailedPreconditionError: it has no value.

        """
        node = self._nodes.get(name)
        if node is None:
            raise NoSuchGraphVariableError(
                f"The model has no variable {name!r}",
                next_step=f"it has {', '.join(list(self)[:10]) or 'none'}",
            )
        kind = RESOURCE_VARIABLE if node.op.name == "VarHandleOp" else REFERENCE_VARIABLE
        container, shared = (_text(node, key) for key in ("container", "shared_name"))
        ref = self._resources_of(node).find(container, shared or node.name, kind)
        if ref is None or ref.value is None:
            raise FailedPreconditionError(f"The variable {name} has no value")
        return copied(ref.value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __repr__(self) -> str:
        return f"<{len(self)} variables: {', '.join(list(self)[:5])}{', …' * (len(self) > 5)}>"


def _text(node: Node, key: str) -> str:
    value = node.attrs.get(key, b"")
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


class NoSuchGraphVariableError(NotFoundError, KeyError):
    """A graph has no variable of a name."""
