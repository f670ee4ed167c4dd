"""What resources hold: tensors, found without asking the resources.

In:   a resource of any kind.
Out:  its arrays, and the bytes of all that it holds.
Not:  knows no kinds of resources; changes nothing, and takes no locks: what a step changes
      meanwhile may be missed, or be counted though it is gone.

A resource's objects are followed as Python's garbage collector follows them, up to what is no data:
classes, functions, modules, locks, and the parts of Penstock that run things.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

_PLAIN: Final = (bytes, int, float, complex, np.generic, type(None))
_NO_DATA: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, FrameType)
#: Whose objects may be parts of resources; anything else of this package has other work.
_PARTS: Final = ("penstock.core.", "penstock.kernels.", "penstock.state.")
_SHARED: Final = ("resources", "device_resources")


class Contents(NamedTuple):
    """What one resource holds."""

    arrays: list[np.ndarray[Any, Any]]
    #: Of the arrays, of strings and of the containers that they are in; of numbers not.
    size: int


def contents(resource: Any) -> Contents:
    """All that can be reached from a resource."""
    arrays: list[np.ndarray[Any, Any]] = []
    size = 0
    for found in _reached(resource):
        if isinstance(found, np.ndarray):
            if not isinstance(found.base, np.ndarray):  # whose memory is counted
                arrays.append(found)
                size += found.nbytes
        elif isinstance(found, bytes):
            size += len(found)
        elif isinstance(found, (dict, list, set)):
            size += sys.getsizeof(found)
    return Contents(arrays, size)


def _reached(start: Any) -> Iterator[Any]:
    """Every object once, in no order that means anything."""
    waiting, seen = [start], {id(start): start}
    while waiting:
        found = waiting.pop()
        yield found
        if isinstance(found, np.ndarray):
            # A view's memory is its base's.
            following = [found.base] if isinstance(found.base, np.ndarray) else []
            following += found.flat if found.dtype.hasobject else []
        else:
            following = gc.get_referents(found)
        for one in following:
            if id(one) not in seen and _is_data(one):
                seen[id(one)] = one
                waiting.append(one)


def _is_data(found: Any) -> bool:
    if isinstance(found, bytes):
        return True
    if isinstance(found, (*_PLAIN, *_NO_DATA)):
        return False
    module = type(found).__module__
    if not module.startswith("penstock."):
        return module.split(".")[0] in ("builtins", "collections", "numpy")
    return module.startswith(_PARTS) and not module.endswith(_SHARED)
