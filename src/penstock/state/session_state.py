"""Tensors that stay in the session between runs, under handles.

In:   values that GetSessionHandle nodes put up, and the names of what was fetched.
Out:  the values whose handle was fetched, by handle.
Not:  a handle that nobody fetched keeps nothing alive.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from threading import Lock

from penstock.core.names import parse_endpoint
from penstock.core.values import Value, freeze
from penstock.errors import InvalidArgumentError


class SessionState:
    """Values by handle; lives as long as the session."""

    def __init__(self) -> None:
        #: Guards ``_tensors``.  Innermost.
        self._lock = Lock()
        self._tensors: dict[str, Value] = {}
        self._ids = itertools.count()

    def new_id(self) -> int:
        """A number that no other handle of this session has."""
        return next(self._ids)

    def add(self, handle: str, value: Value) -> None:
        """Keep a value."""
        with self._lock:
            self._tensors[handle] = freeze(value)

    def get(self, handle: str) -> Value:
        """The value; raises InvalidArgumentError if there is none."""
        with self._lock:
            if handle not in self._tensors:
                raise InvalidArgumentError(
                    f"The tensor with handle '{handle}' is not in the session store."
                )
            return self._tensors[handle]

    def delete(self, handle: str) -> None:
        """Give a value up; raises InvalidArgumentError if there is none."""
        with self._lock:
            if self._tensors.pop(handle, None) is None:
                raise InvalidArgumentError(
                    f"Failed to delete a tensor with handle '{handle}' in the session store."
                )


class TensorStore:
    """Values that one step put up; those whose handle is fetched move to the session."""

    def __init__(self) -> None:
        #: Guards ``_tensors``.  Innermost.
        self._lock = Lock()
        #: (handle, value) by the name of the node that made the handle.
        self._tensors: dict[str, tuple[str, Value]] = {}

    def add(self, node_name: str, handle: str, value: Value) -> None:
        """Put a value up."""
        with self._lock:
            self._tensors[node_name] = (handle, value)

    def save_tensors(self, fetches: Iterable[str], session_state: SessionState) -> None:
        """Keep the values whose handle is among ``fetches``."""
        if not self._tensors:
            return
        with self._lock:
            fetched = {parse_endpoint(name).node for name in fetches}
            for node_name, (handle, value) in self._tensors.items():
                if node_name in fetched:
                    session_state.add(handle, value)
