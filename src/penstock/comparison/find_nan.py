"""``find_nan``: the first node of a step that made something that is no number.

In:   a session or a graph, fetches and feeds; a folder, if the node is to be kept.
Out:  the node with its inputs; in the folder a graph of it alone, the inputs, and a program that
      runs it.
Not:  writes no text of the model into the program: names are in the graph's file only.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from penstock.comparison.as_run import AsRun, inputs_of
from penstock.comparison.collected import NodeValue, collect, session_of
from penstock.core.files import FileSystem, file_errors
from penstock.dataclass import dataclass
from penstock.defs.schema import GraphDef, Message
from penstock.errors import FailedPreconditionError
from penstock.graph.export import node_to_def
from penstock.graph.graph import INLINED_FROM, Graph, Node
from penstock.printable import printable

_GRAPH, _INPUTS, _PROGRAM = "node.pb", "inputs.npz", "reproduce.py"
#: What the node is called in a graph of its own.
_NAME: Final = "node"
#: The op of what brings a feed in.
_FED: Final = "_Arg"
_TEXT: Final = '''"""Run one node again, with the inputs for which its result was no number."""

from pathlib import Path

import numpy as np

import penstock as ps

folder = Path(__file__).parent
with np.load(folder / "inputs.npz") as file:
    inputs = {f"{name}:0": file[name] for name in file.files}
with ps.Session(folder / "node.pb") as session:
    results = session.run([f"node:{slot}" for slot in range(%d)], inputs)
for name, value in inputs.items():
    print(name, value.dtype, value.shape, "finite" if np.isfinite(value).all() else "not finite")
for slot, value in enumerate(results):
    print(f"result {slot}", value.dtype, value.shape)
    print(value)
'''


@dataclass(frozen=True, slots=True)
class NanFound:
    """A node that made something that is no number."""

    #: As ``NodeValue`` has it: with loop and iteration.
    key: str
    op: str
    value: Any
    #: What the node read, by position; None where that is no value, or nobody knows.
    inputs: tuple[Any, ...]
    #: How many elements are NaN, and how many infinite.
    nan_count: int
    inf_count: int

    def __str__(self) -> str:
        return printable(
            f"{self.key} ({self.op}) made {self.nan_count} NaN and {self.inf_count} infinite of "
            f"{np.size(self.value)} elements"
        )


def find_nan(
    graph: Any,
    fetches: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    allows_infinite: bool = False,
) -> NanFound | None:
    """Run a step node by node, and find the first node whose result is no number.

    Args:
        graph: a ``Session``, which has its own options and variables; or a graph in any form that
            one takes, which is run as it was written.
        fetches: like ``Session.run``'s.
        feed_dict: like ``Session.run``'s.
        folder: gets ``node.pb``, ``inputs.npz`` and ``reproduce.py``, which runs the node again;
            made if it is not there.
        allows_infinite: whether infinities are numbers.

    Returns:
        The node; None if all results are numbers.

    Raises:
        FailedPreconditionError: a folder is given, and the node cannot be kept: an input of it is
            no plain value.
        OpError: the step fails, or the file system refuses.

    """
    with session_of(graph) as session:
        values = collect(session, fetches, feed_dict)
        one = next((v for v in values if _is_bad(v.value, allows_infinite=allows_infinite)), None)
        if one is None:
            return None
        as_run = AsRun(session, fetches, feed_dict or {})
        node = as_run.find(one.node) if one.op != _FED else None
    found = NanFound(
        one.key, one.op, one.value, _inputs(node, one, values),
        int(np.isnan(one.value).sum()), int(np.isinf(one.value).sum()),
    )  # fmt: skip
    if folder is not None:
        _keep(found, node, as_run.graph, os.fspath(folder))
    return found


def _is_bad(value: Any, *, allows_infinite: bool) -> bool:
    if value is None or value.dtype.kind not in "fc":
        return False
    return bool(np.isnan(value).any() if allows_infinite else not np.isfinite(value).all())


def _inputs(node: Node | None, one: NodeValue, values: Sequence[NodeValue]) -> tuple[Any, ...]:
    """What a node read: in its own iteration, or from outside of all loops."""
    if node is None:
        return ()
    known = {value.key: value.value for value in values}
    where = one.key[len(f"{one.node}:{one.slot}") :]
    keys = [key for key, _ in inputs_of(node)]
    return tuple(known.get(f"{key}{where}", known.get(key)) for key in keys)


def _keep(found: NanFound, node: Node | None, graph: Graph, folder: str) -> None:
    """Write the files of a folder."""
    if node is None or any(value is None for value in found.inputs):
        raise FailedPreconditionError(
            f"{found.key} cannot be run by itself: it reads something that is no plain value",
            next_step="leave folder out, and look at what was found",
        )
    packed = io.BytesIO()
    np.savez(packed, **{f"input_{i}": value for i, value in enumerate(found.inputs)})
    contents = {
        _GRAPH: _alone(node, graph).SerializeToString(),
        _INPUTS: packed.getvalue(),
        _PROGRAM: (_TEXT % len(node.output_types)).encode(),
    }
    with file_errors(folder):
        FileSystem().make_folders(folder)
    for name, content in contents.items():
        FileSystem().write(os.path.join(folder, name), content)


def _alone(node: Node, graph: Graph) -> Message:
    """A graph of one node, whose inputs are placeholders."""
    made = GraphDef()
    if len(graph.library):
        made.library.CopyFrom(graph.library.to_proto())
    names = [f"input_{position}" for position in range(len(node.input_types))]
    for name, dtype in zip(names, node.input_types, strict=True):
        made.node.add(name=name, op="Placeholder").attr["dtype"].type = dtype.number
    own = node_to_def(node, "")
    own.name = _NAME
    for private in ("_class", INLINED_FROM):
        own.attr.pop(private, None)
    del own.input[:]
    own.input.extend(names)
    made.node.append(own)
    return made
