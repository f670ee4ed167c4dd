"""A model of TensorFlow 1: one graph, which restores and initializes itself.

In:   a MetaGraphDef without objects; the folder it comes from.
Out:  a session whose variables and tables have their values; signatures; variables by name.
Not:  guesses nothing: what restores and initializes, and what is fed and fetched, is written down.

The order is TensorFlow's: variables are restored, then the first of these is run that there is:
the signature ``__saved_model_init_op``, the collection ``saved_model_main_op``, the collection
``legacy_init_op``.  A module of TensorFlow 1 Hub has no nodes for either; see ``hub_module``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from penstock.checkpoint import load as open_checkpoint
from penstock.config import Config
from penstock.core import dtypes
from penstock.core.names import parse_endpoint
from penstock.core.values import Value, copied
from penstock.defs.schema import GraphDef, Message
from penstock.defs.tensors import from_proto, to_proto
from penstock.errors import FailedPreconditionError, NotFoundError
from penstock.graph.graph import Graph, Node
from penstock.graph.import_graph_def import graph_from_def
from penstock.graph.initializers import VARIABLES
from penstock.kernels.state.variables import REFERENCE_VARIABLE, RESOURCE_VARIABLE
from penstock.saved_model.assets import assets_of
from penstock.saved_model.direct_restore import planned, restore_all
from penstock.saved_model.folder import ModelFolder
from penstock.saved_model.hub_module import restore_by_name, table_initializers
from penstock.saved_model.meta_graph import INIT_SIGNATURE, TRAIN_SIGNATURE
from penstock.saved_model.signatures import Offer
from penstock.saved_model.tensor_info import read_tensor_info
from penstock.session import Session
from penstock.session.missing import check_nodes, has_unknown_ops, needed_nodes

_MAIN_OPS: Final = ("saved_model_main_op", "legacy_init_op")
_INNER: Final = frozenset({INIT_SIGNATURE, TRAIN_SIGNATURE})


def open_graph(meta_graph: Message, folder: ModelFolder, config: Config) -> tuple[Session, Graph]:
    """The model's graph, and a session on it, restored and initialized.

    Raises:
        UnimplementedError: what is needed for that has ops without kernels; all are listed.
        OpError: the graph or the checkpoint is damaged.

    """
    assets = {a.tensor_info.name: folder.asset(a.filename) for a in assets_of(meta_graph)}
    fed = _with_assets(meta_graph, assets)
    graph_def = _known_part(meta_graph)
    saver, init = meta_graph.saver_def, init_op(meta_graph)
    firsts = [saver.restore_op_name] * (folder.has_checkpoint and bool(saver.restore_op_name))
    inits = [init] if init else table_initializers(meta_graph) if folder.is_hub_module else []
    check_nodes(graph_def, [*firsts, *inits])
    graph = graph_from_def(graph_def)
    session = Session(graph, config=config)
    try:
        if firsts:
            _restore(graph, session, saver, folder.checkpoint_prefix)
        elif folder.has_checkpoint:
            restore_by_name(session, graph, meta_graph, folder.checkpoint_prefix)
        if inits:
            session.run(inits, fed)
    except BaseException:
        session.close()
        raise
    return session, graph


def _restore(graph: Graph, session: Session, saver: Any, prefix: str) -> None:
    """Give variables the checkpoint's values: directly if that is all that there is to do."""
    filename = parse_endpoint(saver.filename_tensor_name).node
    plan = planned(graph, parse_endpoint(saver.restore_op_name).node, filename)
    if plan is None:
        session.run(saver.restore_op_name, {saver.filename_tensor_name: prefix})
    else:
        restore_all(plan, open_checkpoint(prefix), session.resources)


def init_op(meta_graph: Any) -> str:
    """The node that initializes tables and the like; empty if there is none."""
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
    if not has_unknown_ops(graph_def):
        return graph_def
    names = [name for offer in _endpoints(meta_graph) for name in offer]
    names += filter(None, [meta_graph.saver_def.restore_op_name, init_op(meta_graph)])
    check_nodes(graph_def, names)
    part = GraphDef(versions=graph_def.versions, library=graph_def.library)
    part.node.extend(needed_nodes(graph_def, names))
    return part


def _endpoints(meta_graph: Any) -> Iterator[list[str]]:
    """The tensors of each signature."""
    for name, proto in meta_graph.signature_def.items():
        if name not in _INNER:
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
        name: _offer(proto, meta_graph.graph_def, session)
        for name, proto in sorted(meta_graph.signature_def.items())
        if name not in _INNER
    }


def _offer(proto: Any, graph_def: Message, session: Session) -> Offer:
    inputs = {name: read_tensor_info(proto.inputs[name]) for name in sorted(proto.inputs)}
    outputs = {name: read_tensor_info(proto.outputs[name]) for name in sorted(proto.outputs)}
    fed = [endpoint for _, endpoints in inputs.values() for endpoint in endpoints]
    fetched = [endpoint for _, endpoints in outputs.values() for endpoint in endpoints]
    return Offer(
        inputs={name: spec for name, (spec, _) in inputs.items()},
        outputs={name: spec for name, (spec, _) in outputs.items()},
        prepare=lambda: _prepared(graph_def, session, fetched, fed),
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
        self._resources: Final = session.resources
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
        ref = self._resources.find(container, shared or node.name, kind)
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
