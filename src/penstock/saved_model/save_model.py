"""``save``: a graph, its variables and its files as a SavedModel.

In:   signatures on a graph, or functions that build what they offer; a session with values.
Out:  a folder that Penstock and TensorFlow load.
Not:  writes no objects: the model is one of TensorFlow 1's kind, which every version reads.

The folder gets its name when all is in it, so who looks finds the whole model, or none.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

from penstock.builder import (
    Graph,
    Tensor,
    constant,
    control_dependencies,
    default_graph,
    group,
    identity,
    name_scope,
    ops,
)
from penstock.builder import placeholder as new_placeholder
from penstock.builder.variable import global_variables_initializer
from penstock.checkpoint import save as save_checkpoint
from penstock.core.files import FileSystem
from penstock.core.names import parse_endpoint
from penstock.core.values import Value
from penstock.defs.schema import MetaGraphDef, SavedModel
from penstock.defs.tensors import shape_to_proto, to_proto
from penstock.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError
from penstock.formats.place import BINARY
from penstock.formats.saved_model import ASSETS, VARIABLES_FOLDER
from penstock.formats.stored_model import PREDICT
from penstock.graph.initializers import VARIABLES
from penstock.saved_model.graph_model import GraphVariables
from penstock.saved_model.structured import TensorSpec
from penstock.session import Session

_FILES: Final = FileSystem()
_HANDLE: Final = "VarHandleOp"
#: ``SaverDef``'s number of the format of checkpoints.
_FORMAT: Final = 2

#: A signature: inputs and outputs by name, each a Tensor or its name; or specifications of inputs,
#: and a function that takes placeholders by name and returns a Tensor, or Tensors by name.
Given = tuple[Mapping[str, Any], Mapping[str, Any] | Callable[..., Any]]


def save(
    path: str | os.PathLike[str],
    signatures: Mapping[str, Given],
    *,
    graph: Graph | None = None,
    session: Session | None = None,
    tags: Iterable[str] = ("serve",),
    init: Any = None,
    assets: Mapping[Any, str | os.PathLike[str]] | None = None,
) -> str:
    """Write a SavedModel.

    Args:
        path: its folder, which must not be there yet, or be empty.
        signatures: by name, pairs of inputs and outputs.  Inputs are Tensors, or their names, by
            the names that callers will use; outputs likewise.  Where the second is a function,
            inputs are ``TensorSpec``, and the function is given a placeholder for each, by name;
            it returns a Tensor, which is then called ``output``, or a dictionary of them.
        graph: what the tensors belong to; that of the session, or the default graph, if none is
            given.
        session: where variables have their values.  Without, they are initialized anew.
        tags: the tags of the model.
        init: an operation, or its name, that is run when the model is loaded: it fills tables.
        assets: paths of files by the constants, or their names, that name these files in the graph;
            the files are copied.

    Returns:
        The absolute path of the folder.

    Raises:
        AlreadyExistsError: something is there.
        InvalidArgumentError: a name means nothing in the graph.
        FailedPreconditionError: a variable has no value.
        OpError: the file system refuses.

    """
    target = _FILES.absolute(os.fsdecode(path))
    if _FILES.exists(target) and not (_FILES.is_folder(target) and not _FILES.names(target)):
        raise AlreadyExistsError(
            f"{target} is there already", next_step="remove it first, or save elsewhere"
        )
    used = graph if graph is not None else session.graph if session else default_graph()
    offered = {name: _endpoints(used, name, given) for name, given in signatures.items()}
    values = _values(used, session)
    writer = _Writer(used, values)
    meta_graph = writer.meta_graph(offered, sorted(tags), _name(init))
    with _draft(target) as folder:
        names = writer.name_assets(meta_graph, assets or {})
        for name, source in names.items():
            _FILES.write(os.path.join(folder, ASSETS, name), _FILES.read(os.fsdecode(source)))
        if values:
            save_checkpoint(os.path.join(folder, VARIABLES_FOLDER, VARIABLES_FOLDER), values)
        model = SavedModel(saved_model_schema_version=1, meta_graphs=[meta_graph])
        _FILES.write(os.path.join(folder, BINARY), model.SerializeToString())
    return target


@contextmanager
def _draft(target: str) -> Any:
    """A folder that becomes ``target`` when the block ends; if that fails, nothing is left."""
    folder = f"{target}.tempstate{secrets.token_hex(8)}"
    with ExitStack() as stack:
        stack.callback(_remove, folder)
        _FILES.make_folders(folder)
        yield folder
        _FILES.move(folder, target)


def _remove(path: str) -> None:
    """Remove a folder, if it is there, with all that is in it."""
    if not _FILES.is_folder(path):
        return
    for name in _FILES.names(path):
        inner = os.path.join(path, name)
        if _FILES.is_folder(inner):
            _remove(inner)
        else:
            _FILES.remove(inner)
    with suppress(OSError):
        _FILES.remove_empty_folder(path)


# -- what is saved -------------------------------------------------------------------------------


def _endpoints(graph: Graph, name: str, given: Given) -> tuple[dict[str, Tensor], ...]:
    """The tensors of a signature, inputs and outputs by name; builds them if a function does."""
    inputs, outputs = given
    if not callable(outputs):
        return _tensors(graph, inputs), _tensors(graph, outputs)
    with graph.as_default(), name_scope(name):
        fed = {key: _placeholder(key, spec) for key, spec in inputs.items()}
        made = outputs(**fed)
        named = made if isinstance(made, Mapping) else {"output": made}
        return fed, {key: identity(value, name=f"{key}_out") for key, value in named.items()}


def _placeholder(name: str, spec: TensorSpec) -> Tensor:
    if not isinstance(spec, TensorSpec):
        raise InvalidArgumentError(
            f"the input {name!r} must be a TensorSpec, since a function is to be given it"
        )
    return new_placeholder(spec.dtype, spec.shape, name=name)


def _tensors(graph: Graph, given: Mapping[str, Any]) -> dict[str, Tensor]:
    return {key: graph.tensor(_endpoint(value)) for key, value in given.items()}


def _endpoint(given: Any) -> str:
    """The full name of a tensor."""
    node, slot = parse_endpoint(_name(given))
    return f"{node}:{max(slot, 0)}"


def _name(given: Any) -> str:
    if given is None or isinstance(given, str):
        return given or ""
    name = getattr(given, "name", None)
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{given!r} is neither a tensor nor the name of one")
    return name


def _values(graph: Graph, session: Session | None) -> dict[str, Value]:
    """The values of all variables, by the names of their nodes."""
    if not any(node.op.name in VARIABLES for node in graph):
        return {}
    if session is not None:
        return dict(GraphVariables(session, graph))
    with graph.as_default(), Session(graph) as opened:
        if not graph.variables:
            raise FailedPreconditionError(
                "the graph has variables, and nothing gives them values",
                next_step="give the session in which they have values: save(…, session=session)",
            )
        opened.run(global_variables_initializer())
        return dict(GraphVariables(opened, graph))


class _Writer:
    """The messages of a model: its graph with nodes that save and restore, and what it offers."""

    def __init__(self, graph: Graph, values: Mapping[str, Value]) -> None:
        self._graph: Final = Graph()
        self._graph.import_graph_def(graph.as_graph_def(), name="")
        self._values: Final = values

    def meta_graph(self, offered: Mapping[str, Any], tags: list[str], init: str) -> Any:
        """The MetaGraphDef, as yet without assets."""
        found = MetaGraphDef()
        found.meta_info_def.tags.extend(tags)
        if self._values:
            self._add_saver(found.saver_def)
        if init:
            found.collection_def["saved_model_main_op"].node_list.value.append(
                self._graph.node(parse_endpoint(init).node).name
            )
        for name, (inputs, outputs) in offered.items():
            signature = found.signature_def[name]
            signature.method_name = PREDICT
            for which, tensors in ((signature.inputs, inputs), (signature.outputs, outputs)):
                for key, tensor in tensors.items():
                    which[key].name = _endpoint(tensor)
                    which[key].dtype = tensor.dtype.number
                    shape_to_proto(tensor.shape, which[key].tensor_shape)
        found.graph_def.CopyFrom(self._graph.as_graph_def())
        return found

    def name_assets(self, meta_graph: Any, assets: Mapping[Any, Any]) -> dict[str, Any]:
        """Note the assets in the model; returns the files to copy by the names that they get."""
        names: dict[str, Any] = {}
        nodes = {node.name: node for node in meta_graph.graph_def.node}
        for given, source in assets.items():
            endpoint, number = _endpoint(given), 0
            base = name = os.path.basename(os.fsdecode(source))
            while names.get(name, source) != source:
                number += 1
                name = f"{number}_{base}"
            names[name] = source
            meta_graph.asset_file_def.add(filename=name).tensor_info.name = endpoint
            node = nodes.get(parse_endpoint(endpoint).node)
            if node is None or node.op != "Const":
                raise InvalidArgumentError(f"{endpoint} is no constant that could name an asset")
            node.attr["value"].tensor.CopyFrom(to_proto(name.encode()))
        return names

    def _add_saver(self, saver: Any) -> None:
        """Nodes that save and restore the variables, as TensorFlow's Saver has them."""
        names = sorted(self._values)
        nodes = [self._graph.node(name) for name in names]
        with self._graph.as_default(), name_scope("save"):
            prefix = ops.placeholder_with_default(constant("model"), [], name="filename")
            keys = constant([name.encode() for name in names], name="names")
            parts = constant([b""] * len(names), name="parts")
            types = [node.attrs["dtype"] for node in nodes]
            given = [Tensor(self._graph, node, 0) for node in nodes]
            pairs = list(zip(nodes, given, types, strict=True))
            read = [
                ops.read_variable_op(t, dtype) if n.op.name == _HANDLE else t
                for n, t, dtype in pairs
            ]
            saved = ops.save_v2(prefix, keys, parts, read)
            values = ops.restore_v2(prefix, keys, parts, dtypes=types)
            assigned = [
                ops.assign_variable_op(t, v) if n.op.name == _HANDLE else ops.assign(t, v)
                for (n, t, _), v in zip(pairs, values, strict=True)
            ]
            restore = group(*assigned, name="restore_all")
            with control_dependencies([saved]):
                done = identity(prefix, name="control_dependency")
        saver.filename_tensor_name = str(prefix)
        saver.save_tensor_name = str(done)
        saver.restore_op_name = restore.name
        saver.version = _FORMAT
