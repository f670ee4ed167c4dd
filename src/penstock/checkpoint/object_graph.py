"""The objects whose tensors a checkpoint holds, and the edges between them.

In:   a serialized TrackableObjectGraph, which checkpoints have under ``OBJECT_GRAPH_KEY``; paths.
Out:  ``ObjectGraph``: node number → children by edge name, and keys of tensors by attribute.
Not:  opens no checkpoint; knows no variables, and nothing of a SavedModel but how to walk beside
      its objects.

Programs of TensorFlow 2 save objects: a model has an attribute ``layer``, which has a list, whose
second element has a ``kernel``.  What identifies a variable is the way there from the root, edge
by edge; names of variables repeat.  Node 0 is the root, an object may be reached on several ways,
and there may be cycles.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final, TypeAlias

from google.protobuf.message import DecodeError

from penstock.dataclass import dataclass
from penstock.defs.schema import Message, TrackableObjectGraph
from penstock.errors import DataLossError, InvalidArgumentError, NotFoundError

#: The key of the tensor, a string, that says which objects there are.
OBJECT_GRAPH_KEY: Final = "_CHECKPOINTABLE_OBJECT_GRAPH"
#: The attribute of a variable that is its value.
VARIABLE_VALUE: Final = "VARIABLE_VALUE"
_ATTRIBUTES: Final = ".ATTRIBUTES"
#: No program has objects so far from its root; paths of what claims to would fill the memory.
_MAX_DEPTH: Final = 1_000

#: Edges as another graph of objects has them: a node's number → names and numbers of children.
Children: TypeAlias = Callable[[int], Iterable[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class SlotVariable:
    """A variable that an optimizer keeps for another one, say a momentum."""

    #: The node of the variable that is optimized.
    original: int
    #: What the optimizer calls it.
    name: str
    #: The node of the variable that it keeps.
    node: int


@dataclass(frozen=True, slots=True)
class ObjectNode:
    """One object."""

    #: Numbers of other nodes by the names of the edges that lead there.
    children: Mapping[str, int] = field(default_factory=dict)
    #: Keys of the checkpoint by the names of attributes; a variable has one, ``VARIABLE_VALUE``.
    keys: Mapping[str, str] = field(default_factory=dict)
    #: What the program called the variables; names of attributes as in ``keys``.
    full_names: Mapping[str, str] = field(default_factory=dict)
    slot_variables: tuple[SlotVariable, ...] = ()
    #: Who saved the object otherwise than by its attributes, and under which name; or empty.
    registered_saver: tuple[str, str] = ("", "")


class ObjectGraph(Sequence[ObjectNode]):
    """All objects of a checkpoint, by their numbers; 0 is the root."""

    def __init__(self, nodes: Iterable[ObjectNode]) -> None:
        """Take nodes, of which the first is the root.

        Raises:
            DataLossError: an edge leads to a node that is not there, or there is no root.

        """
        self._nodes: Final = tuple(nodes)
        if not self._nodes:
            raise DataLossError(f"{OBJECT_GRAPH_KEY}: there is no object in it")
        for number, node in enumerate(self._nodes):
            ends = [*node.children.values()]
            ends += [end for slot in node.slot_variables for end in (slot.original, slot.node)]
            for end in ends:
                if not 0 <= end < len(self._nodes):
                    raise DataLossError(
                        f"{OBJECT_GRAPH_KEY}: object {number} leads to object {end}, and there "
                        f"are {len(self._nodes)}"
                    )

    @classmethod
    def parse(cls, content: bytes) -> ObjectGraph:
        """The graph that a serialized TrackableObjectGraph means; raises DataLossError if none."""
        try:
            proto = TrackableObjectGraph.FromString(content)
        except (DecodeError, ValueError) as cause:  # bad UTF-8 may be either
            raise DataLossError(f"{OBJECT_GRAPH_KEY}: damaged: {cause}") from None
        return cls(map(_node, proto.nodes))

    @classmethod
    def of_paths(cls, paths: Iterable[str]) -> ObjectGraph:
        """The objects that variables with these paths need; edges are between slashes.

        Each node is an object of its own.  ``tf.train.Checkpoint`` finds them again if its own
        objects have attributes of these names; elements of lists are called by their numbers.

        Raises:
            InvalidArgumentError: a path has an empty edge.

        """
        tree: list[tuple[dict[str, int], dict[str, str]]] = [({}, {})]
        for path in paths:
            at, edges = 0, path.split("/")
            for edge in edges:
                if not edge:
                    raise InvalidArgumentError(f"{path!r} has an edge without a name")
                at = tree[at][0].setdefault(edge, len(tree))
                if at == len(tree):
                    tree.append(({}, {}))
            tree[at][1][VARIABLE_VALUE] = key_of(edges)
        return cls(ObjectNode(children, keys) for children, keys in tree)

    def serialized(self) -> bytes:
        """The graph as a checkpoint keeps it."""
        proto = TrackableObjectGraph()
        for node in self._nodes:
            _fill(proto.nodes.add(), node)
        return bytes(proto.SerializeToString())

    # -- as a sequence -----------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, number: int) -> ObjectNode:  # type: ignore[override]  # no slices
        return self._nodes[number]

    def __repr__(self) -> str:
        return f"<ObjectGraph of {len(self)} objects>"

    # -- walking -----------------------------------------------------------------------

    def find(self, path: str | Sequence[str], start: int = 0) -> int:
        """The number of the object at the end of a path.

        Args:
            path: names of edges, as a sequence or with slashes between them; none for ``start``.
            start: where the path begins.

        Raises:
            NotFoundError: there is no such edge; the error names those that there are.

        """
        edges = path.split("/") if isinstance(path, str) else list(path)
        at = start
        for place, edge in enumerate(filter(None, edges)):
            children = self._nodes[at].children
            if edge not in children:
                here = "/".join(edges[:place]) or "the root"
                raise NotFoundError(
                    f"{here} has no child {edge!r}; it has {', '.join(children) or 'none'}"
                )
            at = children[edge]
        return at

    def key(self, number: int, attribute: str = VARIABLE_VALUE) -> str:
        """The checkpoint's key of what an object keeps; raises NotFoundError if it keeps none."""
        keys = self._nodes[number].keys
        if attribute not in keys:
            raise NotFoundError(
                f"object {number} of the checkpoint has no {attribute}; "
                f"it has {', '.join(keys) or 'nothing that is saved'}"
            )
        return keys[attribute]

    def paths(self) -> dict[int, tuple[str, ...]]:
        """A shortest path to each object that can be reached, by its number; nearest first.

        Raises:
            DataLossError: one has more than 1,000 edges.

        """
        found: dict[int, tuple[str, ...]] = {0: ()}
        waiting = deque([0])
        while waiting:
            at = waiting.popleft()
            if len(found[at]) == _MAX_DEPTH:
                raise DataLossError(f"{OBJECT_GRAPH_KEY}: objects lie more than {_MAX_DEPTH} deep")
            for edge, child in self._nodes[at].children.items():
                if child not in found:
                    found[child] = (*found[at], edge)
                    waiting.append(child)
        return found

    def variables(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Paths of all objects that are variables, each with its checkpoint's key."""
        for number, path in self.paths().items():
            key = self._nodes[number].keys.get(VARIABLE_VALUE)
            if key is not None:
                yield path, key

    def beside(self, children: Children, root: int = 0) -> dict[int, int]:
        """Walk another graph of objects in step with this one, by the names of edges.

        Objects are told by how they are reached and not by what they are called.  The nearer way
        counts if several lead to an object; an edge that this graph lacks ends a way.

        Args:
            children: the edges of the other graph's nodes.
            root: where the other graph begins.

        Returns:
            The numbers of this graph's nodes by those of the other one's.

        """
        found = {root: 0}
        waiting = deque([root])
        while waiting:
            theirs = waiting.popleft()
            own = self._nodes[found[theirs]].children
            for edge, child in children(theirs):
                if child not in found and edge in own:
                    found[child] = own[edge]
                    waiting.append(child)
        return found


def key_of(path: Iterable[str], attribute: str = VARIABLE_VALUE) -> str:
    """The checkpoint's key of an object's attribute, by the object's path.

    Dots are doubled, and a slash in the name of an edge becomes ``.S``.
    """
    return "/".join((*(map(_escaped, path)), _ATTRIBUTES, attribute))


def _escaped(edge: str) -> str:
    return edge.replace(".", "..").replace("/", ".S")


def _node(proto: Message) -> ObjectNode:
    return ObjectNode(
        {child.local_name: child.node_id for child in proto.children},
        {attribute.name: attribute.checkpoint_key for attribute in proto.attributes},
        {attribute.name: attribute.full_name for attribute in proto.attributes},
        tuple(
            SlotVariable(slot.original_variable_node_id, slot.slot_name, slot.slot_variable_node_id)
            for slot in proto.slot_variables
        ),
        (proto.registered_saver.name, proto.registered_saver.object_name),
    )


def _fill(proto: Message, node: ObjectNode) -> None:
    for edge, child in node.children.items():
        proto.children.add(node_id=child, local_name=edge)
    for name, key in node.keys.items():
        full_name = node.full_names.get(name, "")
        proto.attributes.add(name=name, checkpoint_key=key, full_name=full_name)
    for slot in node.slot_variables:
        proto.slot_variables.add(
            original_variable_node_id=slot.original,
            slot_name=slot.name,
            slot_variable_node_id=slot.node,
        )
    saver, object_name = node.registered_saver
    if saver:
        proto.registered_saver.name, proto.registered_saver.object_name = saver, object_name
    proto.has_checkpoint_values.value = bool(node.keys or node.children)
