"""Resources that say what they hold, and can be made of that again.

In:   a resource of a session; or the kind, the name and the state of one.
Out:  its kind and its state, as a tree; or the resource.
Not:  knows no resource: each kind says by itself what it must remember.

A kind is the name of a class.  ``_HOMES`` is the list of all that can be made of a file, so that
no file names another one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final, Protocol, Self

from penstock.core.forks import importing
from penstock.core.trees import Tree
from penstock.errors import UnimplementedError


class Restorable(Protocol):
    """A resource that can be copied."""

    def state(self) -> Tree:
        """What it holds, while no step uses it; raises FailedPreconditionError if that is lent."""

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> Self:
        """One that holds the same; raises ValueError for what is no state of the kind.

        ``there`` is the resource in whose place it comes; None if there is none.
        """


#: The module of each kind.
_HOMES: Final[Mapping[str, str]] = {
    "Accumulator": "penstock.kernels.data_flow.accumulator_ops",
    "Barrier": "penstock.kernels.data_flow.barrier_ops",
    "DenseTable": "penstock.kernels.lookup.dense_table",
    "IteratorResource": "penstock.kernels.datasets.iterator_ops",
    "MutableTable": "penstock.kernels.lookup.lookup_tables",
    "Mutex": "penstock.kernels.data_flow.mutex_ops",
    "Queue": "penstock.kernels.data_flow.queues",
    "Ref": "penstock.core.values",
    "ReferenceVariable": "penstock.kernels.state.variables",
    "SeedGenerator": "penstock.kernels.datasets.seeds",
    "SparseAccumulator": "penstock.kernels.data_flow.accumulator_ops",
    "SparseTensorsMap": "penstock.kernels.sparse.sparse_serialize_ops",
    "StagingArea": "penstock.kernels.data_flow.staging",
    "StagingMap": "penstock.kernels.data_flow.staging",
    "StaticTable": "penstock.kernels.lookup.lookup_tables",
}


def kind_of(resource: object) -> str:
    """The kind of a resource; empty if it is of none that can be copied."""
    kind = type(resource)
    return kind.__name__ if _HOMES.get(kind.__name__) == kind.__module__ else ""


def made(kind: str, name: str, state: Tree, there: object = None) -> Any:
    """The resource of a kind that holds something.

    Raises:
        UnimplementedError: there is no such kind.
        ValueError: the tree is no state of one.

    """
    if kind not in _HOMES:
        raise UnimplementedError(f"no resource of the kind {kind[:40]!r} can be restored")
    with importing:
        found: type[Restorable] = getattr(importlib.import_module(_HOMES[kind]), kind)
    return found.of_state(name, state, there)
