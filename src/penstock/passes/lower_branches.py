"""An If or a Case as Switches, the nodes of all branches, and Merges.

In:   the CallSite of the node, and the bodies of its branches.
Out:  what takes its place.
Not:  decides nothing about whether it may.

A Case is what a chain of Ifs is: is it the first one? if not, is it the second?  The last branch
is what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from penstock.core import dtypes
from penstock.graph.graph import Node
from penstock.graph.instantiate import FunctionBody
from penstock.passes.call_site import CallSite, Endpoint, Inlined, Replacement, type_of, used_args
from penstock.passes.graph_rewriter import const_attrs


def lower_if(
    site: CallSite, bodies: Sequence[FunctionBody], test: Callable[[Endpoint], Endpoint]
) -> Replacement:
    """What takes the place of an If whose branches are given, the one for true first.

    ``test`` makes a bool of what decides.
    """
    return _lower_chain(site, ("then", "else"), bodies, lambda _, pred: test(pred))


def lower_case(site: CallSite, bodies: Sequence[FunctionBody]) -> Replacement:
    """What takes the place of a Case whose branches are given."""

    def is_taken(number: int, index: Endpoint) -> Endpoint:
        constant = const_attrs(np.int32(number), dtypes.int32)
        other = site.add("number", "Const", constant, (), [index[0]])
        facts = {"T": dtypes.int32, "incompatible_shape_error": True}
        return site.add("pred", "Equal", facts, [index, (other, 0)]), 0

    return _lower_chain(site, [f"branch{i}" for i in range(len(bodies))], bodies, is_taken)


def _lower_chain(
    site: CallSite,
    names: Sequence[str],
    bodies: Sequence[FunctionBody],
    ask: Callable[[int, Endpoint], Endpoint],
) -> Replacement:
    """Branches one after the other; ``ask`` says by the first input if it is this one."""
    decides, *inputs = site.inputs
    token: Endpoint = site.token("pred", site.gated(decides), site.waits), 0
    used = {index for body in bodies for index in used_args(body)}
    values = {index: value for index, value in enumerate(inputs) if index in used}
    branches, pivots = [], []

    def switch(value: Endpoint, pred: Endpoint) -> Node:
        return site.add_joined("switch", "Switch", {"T": type_of(value)}, [value, pred])

    for number, body in enumerate(bodies[:-1]):
        pred = ask(number, token)
        taken = site.add("switch", "Switch", {"T": type_of(token)}, [token, pred])
        sides = {index: switch(value, pred) for index, value in values.items()}
        pivots.append(site.token(f"pivot_{names[number]}", (taken, 1)))
        args = {index: (side, 1) for index, side in sides.items()}
        branches.append(site.inline(f"{names[number]}/", body, args, pivots[-1]))
        token = site.token(f"pivot_{names[number + 1]}", (taken, 0)), 0
        values = {index: (side, 0) for index, side in sides.items()}
    pivots.append(token[0])
    branches.append(site.inline(f"{names[-1]}/", bodies[-1], values, token[0]))
    results = zip(*(branch.results for branch in branches), strict=True)
    # A single branch has no Switch that would keep a loop's constants out of its last iteration.
    outputs = [site.gated(_merged(site, either)) for either in results]
    return Replacement(outputs, branches, lambda: _end(site, pivots, branches))


def _end(site: CallSite, pivots: Sequence[Node], branches: Sequence[Inlined]) -> Node:
    """What is done when the branch that was taken is over."""
    over = [
        (site.token("control_exit", (pivot, 0), branch.effects), 0)
        for pivot, branch in zip(pivots, branches, strict=True)
    ]
    return _merged(site, over)[0]


def _merged(site: CallSite, either: Sequence[Endpoint]) -> Endpoint:
    """The one of them that is alive, from the innermost question outwards."""
    found = either[-1]
    for value in reversed(either[:-1]):
        found = site.add("merge", "Merge", {"T": type_of(value), "N": 2}, [value, found]), 0
    return found
