"""A While as a loop of dataflow: Enter, Merge, Switch, NextIteration, Exit.

In:   the CallSite of a While, and the bodies of its two functions.
Out:  what takes the While's place.
Not:  decides nothing about whether it may.

A variable that the body hands on as it is needs none of that: it comes into the loop by an Enter
for constants, and what reads it after the loop reads what went in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from penstock.defs.attrs import Attr
from penstock.graph.graph import Node
from penstock.graph.instantiate import FunctionBody
from penstock.graph.roles import Role
from penstock.passes.call_site import CallSite, Endpoint, Inlined, Replacement, type_of, used_args


def lower_while(
    site: CallSite,
    cond: FunctionBody,
    body: FunctionBody,
    test: Callable[[Endpoint], Endpoint],
) -> Replacement:
    """What takes the place of a While; ``test`` makes a bool of what its condition gives."""
    loop = _LoopNodes(site, fixed_variables(body))
    constants = loop.add_constants({*used_args(cond), *used_args(body)})
    merges = loop.add_merges()
    condition = site.inline("cond/", cond, _first_outputs(merges) | constants, _any(merges))
    switches = loop.add_switches(merges, condition, test(*condition.results))
    gate = site.token("body_pivot", (_any(switches), 1))
    args: dict[int, Endpoint] = {index: (switch, 1) for index, switch in switches.items()}
    iteration = site.inline("body/", body, args | constants, gate)
    loop.close(merges, iteration)
    exits = loop.add_exits(switches)
    return Replacement(
        loop.outputs(exits),
        [condition, iteration],
        lambda: site.add("control_exit", "NoOp", {}, (), loop.ends(exits)),
    )


def fixed_variables(body: FunctionBody) -> set[int]:
    """Which loop variables need not go round: those that an iteration hands on as they are.

    One goes round whatever happens to it, to begin the next iteration.
    """
    found = set()
    for node in body.graph:
        if node.role is Role.RETVAL:
            src = node.input(0).src
            if src.role is Role.ARG and src.attrs["index"] == node.attrs["index"]:
                found.add(node.attrs["index"])
    return found - {0} if len(found) == len(body.arg_types) else found


class _LoopNodes:
    """The nodes of a loop, by loop variable; each lies where the variable comes from."""

    def __init__(self, site: CallSite, fixed: set[int]) -> None:
        self.site = site
        self.fixed = fixed
        self.frame: Mapping[str, Attr] = {
            "frame_name": site.node.name.encode(),
            "parallel_iterations": site.node.attrs["parallel_iterations"],
        }

    def add_constants(self, read: set[int]) -> dict[int, Endpoint]:
        """What is the same in all iterations, if somebody reads it."""
        return {
            index: self.site.add_loop_constant("enter", self.frame, self.site.inputs[index])
            for index in sorted(self.fixed & read)
        }

    def add_merges(self) -> dict[int, Node]:
        """What changes, as an iteration begins; ``close`` says where the next one has it from."""
        return {
            index: self._add_merge(self.site.gated(value))
            for index, value in enumerate(self.site.inputs)
            if index not in self.fixed
        }

    def _add_merge(self, value: Endpoint) -> Node:
        facts = {"T": type_of(value)}
        enter = {**self.frame, **facts, "is_constant": False}
        entered = self.site.add("enter", "Enter", enter, [value], self.site.waits, beside=value[0])
        return self.site.add("merge", "Merge", {**facts, "N": 2}, [(entered, 0)], beside=entered)

    def add_switches(
        self, merges: Mapping[int, Node], condition: Inlined, test: Endpoint
    ) -> dict[int, Node]:
        """What goes on into the body, or out of the loop, as the condition says.

        Nobody waits for what the condition's function names, as in TensorFlow.
        """
        waits = condition.effects if self.site.keeps_effects else []
        goes_on = self.site.add("loop_cond", "LoopCond", {}, [test], waits)
        return {
            index: self._add_beside(merge, "switch", "Switch", (merge, 0), (goes_on, 0))
            for index, merge in merges.items()
        }

    def close(self, merges: Mapping[int, Node], iteration: Inlined) -> None:
        """Let the next iteration begin with what this one gave, when all that it does is done."""
        effects = iteration.effects
        done = [self.site.add("body_control_exit", "NoOp", {}, (), effects)] if effects else []
        for index, merge in merges.items():
            value = self.site.behind(iteration.gate, iteration.results[index])
            next_iteration = self._add_beside(merge, "next", "NextIteration", value)
            self.site.graph.add_control_edges(done, next_iteration)
            self.site.graph.add_edge(next_iteration, 0, merge, 1)

    def add_exits(self, switches: Mapping[int, Node]) -> dict[int, Node]:
        """What leaves the loop."""
        return {
            index: self._add_beside(switch, "exit", "Exit", (switch, 0))
            for index, switch in switches.items()
        }

    def outputs(self, exits: Mapping[int, Node]) -> list[Endpoint]:
        """What the loop gives."""
        return [
            self.site.gated(value) if index in self.fixed else (exits[index], 0)
            for index, value in enumerate(self.site.inputs)
        ]

    def ends(self, exits: Mapping[int, Node]) -> Iterable[Node]:
        """What must be done before the loop is over: all variables, read or not."""
        fixed = (self.site.inputs[index][0] for index in sorted(self.fixed))
        return dict.fromkeys([*exits.values(), *fixed])

    def _add_beside(self, beside: Node, name: str, op: str, *inputs: Endpoint) -> Node:
        return self.site.add(name, op, {"T": type_of(inputs[0])}, inputs, beside=beside)


def _first_outputs(nodes: Mapping[int, Node]) -> dict[int, Endpoint]:
    return {index: (node, 0) for index, node in nodes.items()}


def _any(nodes: Mapping[int, Node]) -> Node:
    return next(iter(nodes.values()))
