"""Nodes that give what somebody wants instead of what they would compute.

In:   a node's name, and a value or a Python function.
Out:  outputs of the types that the node declares.
Not:  calls functions that somebody gave to the debugger, and never one that a model names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Value
from penstock.debugger.history import kept_copy
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.session.feeds import as_fed
from penstock.state.node_hook import Activation

#: Given the values that a node reads, returns what it gives: one value, or one per output.
OutputFunction: TypeAlias = Callable[..., Any]

_ANY_SHAPE = TensorShape(None)


def converted(value: Any, dtype: DType, name: str) -> Value:
    """A value for an output of some type.

    Raises:
        InvalidArgumentError: it has no such type.

    """
    if dtype.is_ref:
        raise InvalidArgumentError(
            f"{name} is a reference to a variable, which has no value of its own",
            next_step="change a value that is read from it",
        )
    return as_fed(value, dtype, _ANY_SHAPE, name, _nobody_holds)


def _nobody_holds(name: str) -> Value:
    raise FailedPreconditionError(f"{name} is the handle of a tensor that nobody keeps here")


class Overrides:
    """Which nodes are overridden."""

    def __init__(self) -> None:
        #: Replaced as a whole, so that the step's thread reads it without a lock.
        self._by_node: dict[str, OutputFunction] = {}

    @property
    def nodes(self) -> dict[str, OutputFunction]:
        """What stands for which node."""
        return dict(self._by_node)

    def set(self, node: str, given: Any) -> None:
        """Have a node give ``given``: what the function returns, or the value."""
        function = given if callable(given) else _Always(given)
        self._by_node = {**self._by_node, node: function}

    def remove(self, node: str) -> bool:
        """Have a node compute again what it would; returns whether it did not."""
        is_there = node in self._by_node
        self._by_node = {name: f for name, f in self._by_node.items() if name != node}
        return is_there

    def outputs(self, at: Activation, inputs: Sequence[Value]) -> list[Value] | None:
        """What a node gives instead; None if it is not overridden.

        Raises:
            InvalidArgumentError: the function returned something else than the node's types.
            Exception: what the function raises.

        """
        function = self._by_node.get(at.node)
        if function is None:
            return None
        given, types = function(*map(kept_copy, inputs)), at.output_types
        if len(types) == 1:
            given = (given,)
        elif not isinstance(given, (tuple, list)) or len(given) != len(types):
            raise InvalidArgumentError(
                f"{at.node} has {len(types)} outputs", next_step="return a tuple of so many"
            )
        return [
            converted(value, dtype, f"{at.node}:{slot}")
            for slot, (value, dtype) in enumerate(zip(given, types, strict=True))
        ]


class _Always:
    """The same value for every output, whatever the node reads."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __call__(self, *_inputs: Any) -> Any:
        return self._value

    def __repr__(self) -> str:
        return repr(self._value)
