"""A While as a loop of dataflow: Enter, Merge, Switch, NextIteration, Exit.

In:   the Site of a While, and the bodies of its two functions.
Out:  what takes the While's place.
Not:  decides nothing about whether it may.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.defs.attrs import Attr
from penstock.graph.graph import Node
from penstock.graph.instantiate import FunctionBody
from penstock.graph.roles import Role
from penstock.passes.site import Endpoint, Replacement, Site, type_of, used_args


def lower_while(site: Site, cond: FunctionBody, body: FunctionBody) -> Replacement:
    """What takes the place of a While with these functions."""
    frame: Mapping[str, Attr] = {
        "frame_name": site.node.name.encode(),
        "parallel_iterations": site.node.attrs["parallel_iterations"],
    }
    inputs, waits = site.inputs(), site.waits_for()
    fixed = unchanged(body)
    read = {*used_args(cond), *used_args(body)}
    constants = {
        index: site.add_loop_constant("enter", frame, inputs[index])
        for index in sorted(fixed & read)
    }
    merges = {
        index: _add_merge(site, frame, site.gated(value), waits)
        for index, value in enumerate(inputs)
        if index not in fixed
    }
    first = next(iter(merges.values()))
    seen: dict[int, Endpoint] = {index: (merge, 0) for index, merge in merges.items()}
    asked = site.inline("cond/", cond, seen | constants, first)
    goes_on = site.add("loop_cond", "LoopCond", {}, asked.results, asked.effects)
    switches = {
        index: site.add("switch", "Switch", {"T": type_of((m, 0))}, [(m, 0), (goes_on, 0)])
        for index, m in merges.items()
    }
    gate = site.identity("turn", (switches[next(iter(switches))], 1))
    args: dict[int, Endpoint] = {index: (switch, 1) for index, switch in switches.items()}
    turn = site.inline("body/", body, args | constants, gate)
    # What a turn does is done before the next one begins.
    done = [site.add("turn_over", "NoOp", {}, (), turn.effects)] if turn.effects else []
    for index, merge in merges.items():
        value = turn.results[index]
        if site.is_loop_constant(value):
            value = site.identity("turned", value, [gate]), 0
        turned = site.add("next", "NextIteration", {"T": type_of(value)}, [value], done)
        site.graph.add_edge(turned, 0, merge, 1)
    exits = {
        index: site.add("exit", "Exit", {"T": type_of((switch, 0))}, [(switch, 0)])
        for index, switch in switches.items()
    }

    def add_end() -> Node:
        return site.add("over", "NoOp", {}, (), exits.values())

    outputs = [
        site.gated(value) if index in fixed else (exits[index], 0)
        for index, value in enumerate(inputs)
    ]
    return Replacement(outputs, [asked, turn], add_end)


def unchanged(body: FunctionBody) -> set[int]:
    """Which loop variables a turn hands on as they are."""
    found = set()
    for node in body.graph:
        if node.role is Role.RETVAL:
            src = node.input(0).src
            if src.role is Role.ARG and src.attrs["index"] == node.attrs["index"]:
                found.add(node.attrs["index"])
    return found


def _add_merge(site: Site, frame: Mapping[str, Attr], value: Endpoint, waits: list[Node]) -> Node:
    """Where a variable comes into the loop; what it becomes in a turn is joined later."""
    facts = {"T": type_of(value)}
    enter = site.add("enter", "Enter", {**frame, **facts, "is_constant": False}, [value], waits)
    return site.add("merge", "Merge", {**facts, "N": 2}, [(enter, 0)])
