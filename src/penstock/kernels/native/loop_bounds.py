"""How often a loop goes round at most, as far as its nodes tell.

In:   a loop's condition and body; what is known of its variables before it, and of what it reads.
Out:  a number of iterations; None if nothing is known.
Not:  writes nothing.

Counters are what is understood: an integer that begins at a known number, grows by a known one, and
must stay below another.  The condition may ask for more besides, which can only end it earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from penstock.dataclass import dataclass
from penstock.kernels.native.parts import Known
from penstock.kernels.native.traced_nodes import ListedNode, TracedNodes

#: Comparisons of a counter with its limit: which input is the counter, and whether it may be equal.
_LIMITS: Final = {
    "Less": (0, False),
    "LessEqual": (0, True),
    "Greater": (1, False),
    "GreaterEqual": (1, True),
}
_SUMS: Final = ("Add", "AddV2")
#: Ops that hand numbers and scalar truths on.
_HANDS_ON: Final = ("Identity", "ToBool")


def most_iterations(cond: TracedNodes, body: TracedNodes, begin: Sequence[Any]) -> int | None:
    """The bound; ``begin`` has what both read, as it is before the first iteration."""
    counters = _Counters(cond, body, dict(zip(cond.reads, begin, strict=True)))
    bounds = [counters.bound(test) for test in _tests(cond, cond.gives[0])]
    return min((bound for bound in bounds if bound is not None), default=None)


def _origin(nodes: TracedNodes, name: str) -> str:
    """What a name stands for, behind nodes that only hand it on."""
    while (node := nodes.maker(name)) is not None and node.op in _HANDS_ON:
        name = node.inputs[0]
    return name


def _tests(cond: TracedNodes, name: str) -> Iterator[ListedNode]:
    """What must hold for another iteration, comparison by comparison."""
    node = cond.maker(_origin(cond, name))
    if node is None:
        return
    if node.op == "LogicalAnd":
        for part in node.inputs:
            yield from _tests(cond, part)
    else:
        yield node


@dataclass(frozen=True, slots=True)
class _Counters:
    """The variables of one loop, as numbers that grow."""

    cond: TracedNodes
    body: TracedNodes
    begin: dict[str, Any]

    def bound(self, test: ListedNode) -> int | None:
        """How often a comparison can hold."""
        if test.op not in _LIMITS:
            return None
        slot, may_be_equal = _LIMITS[test.op]
        counter, limit = (_origin(self.cond, test.inputs[place]) for place in (slot, 1 - slot))
        first, step = self._number(self.cond, counter), self._step(counter)
        last = self._fixed_number(self.cond, limit)
        if first is None or step is None or last is None:
            return None
        return max(0, -((first - last - may_be_equal) // step))

    @property
    def _moving(self) -> Sequence[str]:
        """The names of the loop's variables."""
        return self.body.reads[: len(self.body.gives)]

    def _step(self, name: str) -> int | None:
        """How much a variable grows in each iteration."""
        if name not in self._moving:
            return None
        end = self.body.gives[self.body.reads.index(name)]
        node = self.body.maker(_origin(self.body, end))
        if node is None or node.op not in _SUMS:
            return None
        terms = [_origin(self.body, term) for term in node.inputs]
        if name not in terms:
            return None
        step = self._fixed_number(self.body, terms[1 - terms.index(name)])
        return step if step is not None and step > 0 else None

    def _fixed_number(self, nodes: TracedNodes, name: str) -> int | None:
        """The same of what is no variable of the loop."""
        return None if name in self._moving else self._number(nodes, name)

    def _number(self, nodes: TracedNodes, name: str) -> int | None:
        """An integer that is known before the first iteration."""
        node = nodes.maker(name)
        value = self.begin.get(name) if node is None else nodes.constant(node)
        if not isinstance(value, Known) or value.shape or value.dtype.kind not in "iu":
            return None
        return int(value.value)
