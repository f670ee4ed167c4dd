"""Where a step is to stop: patterns of names, conditions, filters of values.

In:   an activation with what it read and gave.
Out:  whether to stop there, and what to say about it.
Not:  stops nothing itself.

A condition is text (``expressions.py``), or a Python function of one's own, which is given what was
``Seen``.  A filter is a function of a record and a value, as tfdbg's are, and is asked about each
output.
"""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core.values import DEAD, Value
from penstock.dataclass import dataclass
from penstock.debugger.expressions import Expression, Lookup
from penstock.debugger.history import Recorded, kept_copy
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.state.node_hook import Activation

#: Asked about one output: what is known of it, and its value.
TensorFilter: TypeAlias = Callable[[Recorded, Any], object]


def has_nan(_datum: Recorded, value: Any) -> bool:
    """Whether some element is NaN."""
    return _is_float(value) and bool(np.isnan(value).any())


def has_inf(_datum: Recorded, value: Any) -> bool:
    """Whether some element is infinite."""
    return _is_float(value) and bool(np.isinf(value).any())


def has_inf_or_nan(_datum: Recorded, value: Any) -> bool:
    """Whether some element is no number, or infinite."""
    return _is_float(value) and not bool(np.isfinite(value).all())


def _is_float(value: Any) -> bool:
    """Whether numpy can say of a value whether it is finite."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return isinstance(value, (float, complex))
    return dtype.kind in "fc" or (dtype.kind == "V" and _knows(dtype))


def _knows(dtype: Any) -> bool:
    """Whether a type that is not numpy's own, such as bfloat16, has infinities and NaN."""
    try:
        np.isfinite(np.zeros((), dtype))
    except TypeError:
        return False
    return True


FILTERS: Final[Mapping[str, TensorFilter]] = {
    "has_inf": has_inf, "has_inf_or_nan": has_inf_or_nan, "has_nan": has_nan,
}  # fmt: skip


#: What a condition may name.
NAMES: Final = frozenset({
    "depth", "device", "frame", "function", "inputs", "is_dead", "iteration", "iterations", "node",
    "op", "outputs", "value", *FILTERS,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seen:
    """An activation at which a step may stop."""

    at: Activation
    inputs: Sequence[Value]
    #: Empty before the node has run, and if it is dead.
    outputs: Sequence[Value]
    #: The outputs, as they are recorded.
    records: Sequence[Recorded]
    is_dead: bool = False

    @property
    def node(self) -> str:
        """The node's name."""
        return self.at.node

    @property
    def iteration(self) -> int:
        """The iteration of the innermost loop; 0 outside of all."""
        return self.at.iteration

    def give(self, one: Recorded, value: Value) -> bool:
        """Give a value in the place of a new output; returns whether it is one of these."""
        for slot, record in enumerate(self.records):
            if record.name == one.name and self.outputs:
                assert isinstance(self.outputs, list)
                self.outputs[slot] = value
                return True
        return False

    def passes(self, wanted: TensorFilter) -> bool:
        """Whether some output that is alive passes a filter."""
        pairs = zip(self.records, self.outputs, strict=False)
        return any(value is not DEAD and wanted(one, one.value) for one, value in pairs)

    def named(self, name: str) -> Any:
        """What a name in a condition means; KeyError if that is nothing."""
        at = self.at
        match name:
            case "node" | "op" | "frame" | "function" | "device" | "iteration" | "iterations":
                return getattr(at, name)
            case "depth":
                return at.call_depth
            case "is_dead":
                return self.is_dead
            case "inputs":
                return [kept_copy(value) for value in self.inputs]
            case "outputs":
                return [kept_copy(value) for value in self.outputs]
            case "value":
                return kept_copy(self.outputs[0]) if self.outputs else None
            case _ if name in FILTERS:
                return self.passes(FILTERS[name])
        raise KeyError(f"there is no {name}: names are {', '.join(sorted(NAMES))}")


#: A condition of one's own.
Predicate: TypeAlias = Callable[[Seen], object]


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Where to stop, all parts of which must hold."""

    number: int
    #: Names of nodes, with ``*`` and ``?``.
    pattern: str = "*"
    condition: Expression | Predicate | None = None
    #: The name of a filter, and the filter.
    wanted: tuple[str, TensorFilter] | None = None
    #: Whether to stop before the node runs.
    is_before: bool = False

    def holds(self, seen: Seen, tensor: Lookup, *, is_before: bool) -> bool:
        """Whether the step is to stop.

        Raises:
            Exception: whatever a predicate of one's own raises.

        """
        if is_before is not (self.is_before and not seen.is_dead):
            return False
        if not fnmatch.fnmatchcase(seen.node, self.pattern):
            return False
        if seen.is_dead and not self._is_about_dead:
            return False
        if self.wanted is not None and not seen.passes(self.wanted[1]):
            return False
        if isinstance(self.condition, Expression):
            return bool(self.condition.evaluate(tensor, seen.named))
        return self.condition is None or bool(self.condition(seen))

    @property
    def _is_about_dead(self) -> bool:
        """Whether it may hold for a dead node: it names nodes and nothing else, or asks for that.

        Other conditions are about values, of which a dead node has none.
        """
        if isinstance(self.condition, Expression):
            return "is_dead" in self.condition.names
        return self.condition is None and self.wanted is None and self.pattern != "*"

    def __str__(self) -> str:
        parts = [f"{self.number}", self.pattern]
        if self.wanted is not None:
            parts.append(f"-f {self.wanted[0]}")
        if self.is_before:
            parts.append("-b")
        if isinstance(self.condition, Expression):
            parts.append(f"if {self.condition.text}")
        elif self.condition is not None:
            parts.append(f"if {getattr(self.condition, '__name__', 'a function')}(…)")
        return " ".join(parts)


class Breakpoints:
    """Those of one debugger."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        #: Replaced as a whole: the step's thread reads it without a lock.
        self.all: tuple[Breakpoint, ...] = ()

    def add(
        self,
        pattern: str,
        condition: Expression | Predicate | None,
        wanted: tuple[str, TensorFilter] | None,
        *,
        is_before: bool,
    ) -> Breakpoint:
        """One more, with the next number.

        Raises:
            InvalidArgumentError: it would stop everywhere, or its condition names what is not.

        """
        if isinstance(condition, Expression) and not condition.names <= NAMES:
            raise InvalidArgumentError(
                f"There is no {', '.join(sorted(condition.names - NAMES))}",
                next_step=f"names are {', '.join(sorted(NAMES))}",
            )
        if pattern == "*" and condition is None and wanted is None:
            raise InvalidArgumentError(
                "That would stop everywhere", next_step="say at which nodes, or if what; or step"
            )
        made = Breakpoint(next(self._numbers), pattern, condition, wanted, is_before)
        self.all = (*self.all, made)
        return made

    def delete(self, number: int) -> None:
        """One less.

        Raises:
            NotFoundError: there is none of that number.

        """
        left = tuple(one for one in self.all if one.number != number)
        if len(left) == len(self.all):
            raise NotFoundError(f"There is no breakpoint {number}")
        self.all = left


def find_filter(name: str, known: Mapping[str, TensorFilter]) -> tuple[str, TensorFilter]:
    """A filter by its name.

    Raises:
        InvalidArgumentError: there is none.

    """
    if name not in known:
        raise InvalidArgumentError(
            f"There is no filter {name}",
            next_step=f"name one of: {', '.join(sorted(known))}; more by --filter FILE.py:FUNCTION",
        )
    return name, known[name]
