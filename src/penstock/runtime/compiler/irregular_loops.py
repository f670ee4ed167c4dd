"""Leave to the executor what proves no regular loop, and what proves no single value.

In:   the frames of a graph, and what compiles them.
Out:  what is compiled, with less and less of the graph until nothing proves irregular.
Not:  compiles nothing itself.

Whether a loop is regular shows when it is compiled.  Most of what may be wrong is wrong whatever
stands around it: so once one has proved irregular, all are tried, each by itself.  One
after the other, they would have the whole graph compiled as often as there are such loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from penstock.errors import ResourceExhaustedError
from penstock.graph.graph import Node
from penstock.runtime.compiler.build_body import LoopBuilder, NodeInfo
from penstock.runtime.compiler.loops import Irregular, LoopTree, RegularLoop
from penstock.runtime.compiler.predicates import ALWAYS
from penstock.runtime.compiler.program import Var

_Made = TypeVar("_Made")


def leaving_what_must_be(
    levels: LoopTree, facts: NodeInfo, compile_: Callable[[], _Made | None]
) -> _Made | None:
    """What ``compile_`` makes when what proves irregular is left to the executor."""
    while not levels.refusal:
        facts.doubtful.clear()
        try:
            made = compile_()
        except Irregular as reason:
            if reason.loop is None:
                levels.refusal = str(reason)
            else:
                levels.forget(_irregular(levels, facts) | {reason.loop: str(reason)})
        except (ResourceExhaustedError, RecursionError) as reason:
            levels.refusal = str(reason)
        else:
            if not facts.doubtful:
                return made
            _leave_merges(levels, facts.doubtful)
    return None


def _irregular(levels: LoopTree, facts: NodeInfo) -> dict[RegularLoop, str]:
    """The loops that prove irregular by themselves, and why."""
    found: dict[RegularLoop, str] = {}
    for units in levels.units.values():
        for unit in units:
            if isinstance(unit, RegularLoop):
                try:
                    _try(unit, facts)
                except Irregular as reason:
                    found[reason.loop or unit] = str(reason)
                except (ResourceExhaustedError, RecursionError):
                    pass  # the next attempt tells
    return found


def _try(loop: RegularLoop, facts: NodeInfo) -> None:
    """Build a loop, of which nothing is kept; raises Irregular."""
    builder = LoopBuilder(facts, loop)
    firsts = {enter: Var(enter.name) for enter in loop.enters}
    builder.start(firsts)
    builder.add_units()
    builder.finish(ALWAYS, (), firsts)


def _leave_merges(levels: LoopTree, merges: Iterable[Node]) -> None:
    """Leave Merges to the executor, and what makes their inputs: these come one by one then."""
    nodes = dict.fromkeys(merges)
    loops: dict[RegularLoop, str] = {}
    for merge in list(nodes):
        for edge in merge.inputs:
            unit = levels.unit_of(edge.src) if edge is not None else None
            if isinstance(unit, RegularLoop):
                loops[unit] = f"{merge.name} takes the first of several values"
            elif unit is not None:
                nodes[unit] = None
    levels.forget(loops)
    levels.leave(nodes)
