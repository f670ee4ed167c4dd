"""Where new nodes go: the graph, name scope, device and control flow around them.

In:   ``with`` statements of the graph's author.
Out:  ``Scope``, frozen; each ``with`` makes a changed copy current until it ends.
Not:  makes no nodes; knows of branches and loops only that they are a ``Context``.

The current scope is a context variable: every thread and every asyncio task has its own,
and a new thread starts without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.dataclass import dataclass

if TYPE_CHECKING:
    from penstock.builder.graph import Graph
    from penstock.builder.tensor import Tensor
    from penstock.graph.graph import Node


class Context(Protocol):
    """A branch, or one of the two parts of a loop."""

    @property
    def parent(self) -> Context | None:
        """The context around it, or None."""

    @property
    def pivot(self) -> Node:
        """Runs, alive, exactly when the nodes of this context are to run."""

    @property
    def members(self) -> list[Node]:
        """Nodes that were made in it or captured into it, in order."""

    def capture(self, tensor: Tensor) -> Tensor:
        """Bring in a tensor that is at home in ``parent``."""

    def __str__(self) -> str:
        """What it is, for error messages."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What the nodes of one ``control_dependencies`` block wait for."""

    sources: tuple[Node, ...]
    #: Ids of nodes made in the block, all of which wait for every source.  Only grows.
    waiting: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Scope:
    """Everything that a new node takes from its surroundings."""

    graph: Graph
    #: Put in front of names; ends in a slash unless it is empty.
    name: str = ""
    #: The device that was asked for, or "".
    device: str = ""
    #: Values of the ``_class`` attribute, such as ``loc:@x``.
    colocation: tuple[bytes, ...] = ()
    #: Blocks of control dependencies, the outermost first.
    dependencies: tuple[Dependencies, ...] = ()
    #: The branch or loop that is being built; None outside of all.
    context: Context | None = None


_current: Final[ContextVar[Scope | None]] = ContextVar("penstock_scope", default=None)


def current_scope() -> Scope | None:
    """The scope of this thread or task, or None outside of every ``with``."""
    return _current.get()


def scope_in(graph: Graph) -> Scope:
    """The current scope if it is one of ``graph``, otherwise the graph's outermost one."""
    scope = _current.get()
    return scope if scope is not None and scope.graph is graph else Scope(graph)


@contextmanager
def use_scope(scope: Scope) -> Iterator[Scope]:
    """Make ``scope`` current until the block ends."""
    token = _current.set(scope)
    try:
        yield scope
    finally:
        _current.reset(token)


def change_scope(scope: Scope, **changes: Any) -> Any:
    """A block in which ``scope``, with changes, is current."""
    return use_scope(replace(scope, **changes))
