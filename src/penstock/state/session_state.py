"""Tensors that stay in the session between runs, under handles.

In:   values that GetSessionHandle nodes put up, and the names of what was fetched.
Out:  the values whose handle was fetched, by handle.
Not:  a handle that nobody fetched keeps nothing alive.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from penstock.core import trees
from penstock.core.names import parse_endpoint
from penstock.core.trees import Tree
from penstock.core.values import Value, keep
from penstock.errors import InvalidArgumentError


class SessionState:
    """Values by handle (``name;id;device``); lives as long as the session."""

    def __init__(self) -> None:
        #: Guards what follows.  Innermost.
        self.lock = Lock()
        #: Read-only values by handle.
        self._tensors: dict[str, Value] = {}
        #: All smaller ids are given out.
        self._next_id = 0

    def new_id(self) -> int:
        """A number that no other handle of this session has."""
        with self.lock:
            self._next_id += 1
            return self._next_id - 1

    def state(self) -> Tree:
        """The values by handle, and the next number."""
        with self.lock:
            return tuple(self._tensors.items()), self._next_id

    def restore(self, state: Tree) -> None:
        """Keep what another session kept; raises ValueError if that makes no sense."""
        rows, following = trees.parts(state, 2)
        pairs = [trees.parts(row, 2) for row in trees.listed(rows)]
        kept = {trees.text(handle): trees.any_value(value) for handle, value in pairs}
        number = trees.number(following)
        with self.lock:
            self._tensors, self._next_id = kept, number

    def add(self, handle: str, value: Value) -> None:
        """Keep a value; raises InvalidArgumentError if there is one under the handle."""
        with self.lock:
            if handle not in self._tensors:
                self._tensors[handle] = keep(value)
                return
        raise InvalidArgumentError(
            f"Failed to add a tensor with handle '{handle}' to the session store."
        )

    def get(self, handle: str) -> Value:
        """The value; raises InvalidArgumentError if there is none."""
        with self.lock:
            if handle in self._tensors:
                return self._tensors[handle]
        raise InvalidArgumentError(
            f"The tensor with handle '{handle}' is not in the session store.",
            next_step="fetch the handle in the run that makes it, and do not delete it before",
        )

    def delete(self, handle: str) -> None:
        """Give a value up; raises InvalidArgumentError if there is none."""
        with self.lock:
            if self._tensors.pop(handle, None) is not None:
                return
        raise InvalidArgumentError(
            f"Failed to delete a tensor with handle '{handle}' in the session store."
        )


class TensorStore:
    """Values that one step put up; those whose handle is fetched move to the session."""

    def __init__(self) -> None:
        #: Guards ``_tensors``; taken before a SessionState's lock.
        self._lock = Lock()
        #: (handle, value) by the name of the node that made the handle.
        self._tensors: dict[str, tuple[str, Value]] = {}

    def add(self, node_name: str, handle: str, value: Value) -> None:
        """Put a value up; raises InvalidArgumentError if the node did so before (in a loop)."""
        with self._lock:
            if node_name not in self._tensors:
                self._tensors[node_name] = (handle, value)
                return
        raise InvalidArgumentError(
            f"Failed to add a tensor with name '{node_name}' to the tensor store."
        )

    def save_tensors(self, fetches: Iterable[str], session_state: SessionState) -> None:
        """Keep the values of nodes that have an output among ``fetches``."""
        if not self._tensors:
            return
        fetched = {parse_endpoint(name).node for name in fetches}
        with self._lock:
            for node_name, (handle, value) in self._tensors.items():
                if node_name in fetched:
                    session_state.add(handle, value)
