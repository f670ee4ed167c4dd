"""What the values of a step are like, without keeping them.

In:   every output of every node, as ``RunOptions(node_outputs=…)`` tells of it.
Out:  ``Summary``: smallest, largest, mean, how many are no numbers, a histogram.
Not:  keeps no value; strings, handles and complex numbers are only counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any, Final

import numpy as np

from penstock.core.values import ResourceHandle, Value, dtype_of, shape_of
from penstock.reporting.facts import Summary
from penstock.runtime.executor.node_outputs import NodeOutputContext

#: So many values of each output are summarised: in loops there may be any number.
_MAX_EACH: Final = 50
_BINS: Final = 16
_NUMBERS: Final = "biuf"


class Summaries:
    """Takes outputs, from any thread."""

    def __init__(self) -> None:
        #: Guards what follows.  Innermost.
        self._lock = Lock()
        self._count: Final[Counter[tuple[str, int]]] = Counter()
        self._found: Final[list[Summary]] = []

    def __call__(
        self,
        node: str,
        slot: int,
        value: Value,
        is_dead: bool,  # noqa: FBT001  (so it is called)
        context: NodeOutputContext,
    ) -> None:
        """One output; see ``RunOptions.node_outputs``."""
        if is_dead or not _is_tensor(value):
            return
        with self._lock:
            self._count[node, slot] += 1
            if self._count[node, slot] > _MAX_EACH:
                return
        found = summary_of(node, slot, value, context.frame, context.iteration)
        with self._lock:
            self._found.append(found)

    def shown(self, shown: Callable[[str], str]) -> list[Summary]:
        """What was found, with names as the report shows them."""
        return [one._replace(name=shown(one.name)) for one in self._found]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic, bytes)) and not isinstance(
        value, ResourceHandle
    )


def summary_of(node: str, slot: int, value: Value, frame: str = "", iteration: int = 0) -> Summary:
    """What one value is like."""
    shape = ",".join(map(str, shape_of(value)))
    kind = f"{dtype_of(value).name}[{shape}]"
    place = node, slot, frame, iteration, kind
    array = np.asarray(value)
    numbers = _as_numbers(array)
    if numbers is None:
        return Summary(*place, array.size, None, None, None, 0, 0, ())
    finite = numbers[np.isfinite(numbers)]
    nans = int(np.isnan(numbers).sum())
    infinite = numbers.size - finite.size - nans
    if not finite.size:
        return Summary(*place, array.size, None, None, None, nans, infinite, ())
    least, most = float(finite.min()), float(finite.max())
    return Summary(
        *place, array.size, least, most, float(finite.mean()), nans, infinite,
        _histogram(finite, least, most),
    )  # fmt: skip


def _as_numbers(array: Any) -> Any:
    """A flat array of float64; None for what is no number."""
    if array.dtype.kind in _NUMBERS or array.dtype.kind == "V":  # bfloat16 and the like
        try:
            return array.astype(np.float64).ravel()
        except (TypeError, ValueError):
            return None
    return None


def _histogram(finite: Any, least: float, most: float) -> tuple[int, ...]:
    """How many numbers are in each part; by hand, since distances may be infinite."""
    if least == most:
        return (finite.size,)
    # Half of each: the distance of the two may be larger than any number.
    width = most / 2 - least / 2
    part = ((finite / 2 - least / 2) / width * _BINS).astype(np.int64)
    counts = np.bincount(np.clip(part, 0, _BINS - 1), minlength=_BINS)
    return tuple(int(count) for count in counts)
