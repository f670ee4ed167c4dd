"""Numbers that tell values, outcomes of nodes and states of sessions apart, bit by bit.

In:   values, outcomes, snapshots.
Out:  a number of 48 bits for each, the same in every process.
Not:  tells no handles and no objects apart that have no bits of their own: the names of resources
      that a step makes have the step's number in them.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np

from penstock.core.trees import Tree, is_value
from penstock.core.values import DEAD, Ref, Value, dtype_of, shape_of
from penstock.errors import OpError
from penstock.session.snapshot import Snapshot
from penstock.state.step_order import Outcome

_BYTES: Final = 6


def digest_of_value(value: Value) -> int:
    """The digest of a value."""
    found = hashlib.blake2b(digest_size=_BYTES)
    _add_value(found, value)
    return _number(found)


def digest_of_outcome(outcome: Outcome) -> int:
    """The digest of what a node gave; never 0."""
    found = hashlib.blake2b(digest_size=_BYTES)
    if outcome is None:
        found.update(b"dead")
    elif isinstance(outcome, OpError):
        found.update(outcome.code.name.encode())
    else:
        for value in outcome:
            _add_value(found, value)
    return _number(found) or 1


def digest_of_state(snapshot: Snapshot) -> int:
    """The digest of a state, whatever the resources in it are called."""
    rows = []
    for place, held in snapshot.resources.items():
        found = hashlib.blake2b(digest_size=_BYTES)
        _add_tree(found, (place.device, place.type_name, held.kind, held.state))
        rows.append(found.digest())
    found = hashlib.blake2b(b"".join(sorted(rows)), digest_size=_BYTES)
    _add_tree(found, (snapshot.tensors, snapshot.kernels))
    return _number(found)


def _number(found: Any) -> int:
    return int.from_bytes(found.digest(), "little")


def _add_tree(found: Any, tree: Tree) -> None:
    if type(tree) is tuple:
        found.update(b"(%d" % len(tree))
        for part in tree:
            _add_tree(found, part)
    elif is_value(tree):
        _add_value(found, tree)
    else:
        found.update(f"{type(tree).__name__} {tree!r}".encode("utf-8", "surrogatepass"))


def _add_value(found: Any, value: Value) -> None:
    if value is DEAD or value is None:
        found.update(b"none")
        return
    if isinstance(value, Ref):
        found.update(b"ref")
        _add_value(found, value.value)
        return
    found.update(f"{dtype_of(value)}{shape_of(value)}".encode())
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        found.update(value.tobytes())
        return
    for item in value.flat if isinstance(value, np.ndarray) else (value,):
        if isinstance(item, bytes):
            found.update(b"%d " % len(item) + item)
