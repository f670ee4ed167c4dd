"""The objects of a SavedModel of TensorFlow 2: what they are, and how they are reached.

In:   a SavedObjectGraph message.
Out:  kinds, children by the names of edges, paths.
Not:  opens no checkpoint, and makes nothing of what the objects describe.

The program that saved the model had an object with attributes, whose values had attributes in
their turn.  Node 0 is that object; an edge has the name of an attribute, or of a place in a list.
A path is such names with dots between them: ``encoder.layers.0.kernel``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from penstock.defs.schema import Message
from penstock.errors import DataLossError, NotFoundError

#: The kinds of objects that a function may be given as a captured input, and others.
ASSET: Final = "asset"
CAPTURED_TENSOR: Final = "captured_tensor"
CONCRETE_FUNCTION: Final = "bare_concrete_function"
CONSTANT: Final = "constant"
FUNCTION: Final = "function"
RESOURCE: Final = "resource"
VARIABLE: Final = "variable"
#: What can be called.
CALLABLE: Final = frozenset({FUNCTION, CONCRETE_FUNCTION})
#: The child of the root that has the signatures.
SIGNATURES: Final = "signatures"


class SavedObjects:
    """The objects of one model by their numbers; 0 is the root."""

    def __init__(self, proto: Message) -> None:
        """Take a SavedObjectGraph.

        Raises:
            DataLossError: an edge, a slot or a capture leads to an object that is not there.

        """
        self.nodes: Final = list(proto.nodes)
        #: Captures and structures of concrete functions by the names of these.
        self.functions: Final[dict[str, Any]] = dict(proto.concrete_functions)
        for number, node in enumerate(self.nodes):
            slots = node.slot_variables
            self._check(number, [child.node_id for child in node.children])
            self._check(number, [child.node_id for child in node.dependencies])
            self._check(number, [slot.slot_variable_node_id for slot in slots])
            self._check(number, [slot.original_variable_node_id for slot in slots])
        for name, function in self.functions.items():
            self._check(name, function.bound_inputs)
        self._paths: dict[int, str] | None = None

    def _check(self, what: object, ends: Any) -> None:
        for end in ends:
            if not 0 <= end < len(self.nodes):
                raise DataLossError(
                    f"the SavedModel is damaged: {what} leads to object {end}, and there are "
                    f"{len(self.nodes)}"
                )

    def kind(self, number: int) -> str:
        """What an object is, such as ``variable``; empty if it does not say."""
        return self.nodes[number].WhichOneof("kind") or ""

    def facts(self, number: int) -> Any:
        """The message about an object of its kind."""
        return getattr(self.nodes[number], self.kind(number))

    def children(self, number: int) -> Iterator[tuple[str, int]]:
        """Names of edges, and where they lead."""
        node = self.nodes[number]
        for child in (*node.children, *node.dependencies):
            yield child.local_name, child.node_id

    def child(self, number: int, name: str) -> int | None:
        """Where an edge leads; None if there is none of the name."""
        return next((end for edge, end in self.children(number) if edge == name), None)

    def find(self, path: str) -> int:
        """The object at the end of a path; "" is the root.

        Raises:
            NotFoundError: there is none; the error says how far the path goes.

        """
        found, rest, walked = 0, path, ""
        while rest:
            # An edge may have a dot in its name, so the longest that fits is taken.
            fitting = [
                (len(edge), end)
                for edge, end in self.children(found)
                if rest == edge or rest.startswith(f"{edge}.")
            ]
            if not fitting:
                raise self._no_object(path, found, walked)
            length, found = max(fitting)
            walked = path[: len(path) - len(rest) + length]
            rest = rest[length + 1 :]
        return found

    def _no_object(self, path: str, number: int, walked: str) -> NotFoundError:
        here = f"{walked!r} has" if walked else "the model has"
        names = ", ".join(sorted({edge for edge, _ in self.children(number)}))
        return NotFoundError(f"There is no object {path!r}: {here} {names or 'no attributes'}")

    @property
    def paths(self) -> dict[int, str]:
        """The shortest path to each object that can be reached, nearest first."""
        if self._paths is None:
            self._paths = dict(self._walk())
        return self._paths

    def _walk(self) -> Iterator[tuple[int, str]]:
        seen, waiting = {0}, deque([(0, "")])
        while waiting:
            number, path = waiting.popleft()
            yield number, path
            for edge, end in self.children(number):
                if end not in seen:
                    seen.add(end)
                    waiting.append((end, f"{path}.{edge}" if path else edge))

    def reached(self, *kinds: str) -> dict[str, int]:
        """The objects of some kinds by their shortest paths."""
        return {path: number for number, path in self.paths.items() if self.kind(number) in kinds}

    def shown(self, number: int) -> str:
        """What to call an object in errors: its path, or its number if it has none."""
        return self.paths.get(number) or f"object {number}"
