"""Functional control flow → Switch, Merge and loops; calls → the nodes of what they call.

In:   the graph of one request, or of a function's body, and the devices of its nodes.
Out:  the same graph, in which as much as possible is one level of dataflow.
Not:  lowers nothing that is meant for XLA; opens no function that calls itself, has control flow of
      TensorFlow 1, or an op without a kernel here: that is left to the kernels that call
      functions, and means the same.

So branches and loops of both generations are one thing to all that comes after: they are
optimised across the borders of functions, and compiled.  An If, a Case or a While that does not
ask for it is no exception where its functions do nothing but compute, since then nobody can tell
whether iterations overlap.  What decides there may be of any type; ToBool says what it means.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from penstock.catalogue.registry import get_op
from penstock.core.limits import DEFAULT_LIMITS
from penstock.defs.attrs import Attr, FuncAttr
from penstock.graph.graph import Graph, Node
from penstock.graph.instantiate import FunctionBody, instantiate, instantiate_whole
from penstock.graph.roles import CONTROL_FLOW
from penstock.passes.bodies import Bodies
from penstock.passes.call_site import CallSite, Endpoint, Inlined, Replacement
from penstock.passes.lower_branches import lower_case, lower_if
from penstock.passes.lower_call import lower_call
from penstock.passes.lower_loop import lower_while
from penstock.passes.lowerable import (
    AS_TENSORFLOW,
    BRANCHES,
    CASES,
    CHOICES,
    Kinds,
    LoweredKinds,
    asks,
    fits,
    functions_of,
)
from penstock.passes.needs import Needs
from penstock.passes.places import group_of
from penstock.state.checkpoints import begin, checkpoint

#: Gives devices to nodes that have none; gets those of a graph's nodes by id.
PlaceNodes: TypeAlias = Callable[[Mapping[int, str]], Mapping[int, str]]


def lower(
    graph: Graph,
    device_of: Mapping[int, str],
    *,
    kinds: Kinds = AS_TENSORFLOW,
    targets: Collection[str] = (),
    read: Collection[str] = (),
    device_types: Collection[str] = ("CPU",),
    place: PlaceNodes | None = None,
    keeps_effects: bool = False,
    idle: Collection[Node] = (),
    max_new_nodes: int = DEFAULT_LIMITS.new_nodes,
) -> Mapping[int, str]:
    """Lower a graph in place; returns the devices of the nodes that it has afterwards.

    Args:
        graph: what is to be lowered.
        device_of: full device names by node id; of a function's body, nothing.
        kinds: which nodes are lowered.
        targets: the names of nodes that somebody asks for.  Of an If, Case or While, a node of
            the same name does all that it would have done.
        read: those among the targets of which only what is read need be computed, if they are
            calls.  If anything with effects would not run then, all is computed.
        device_types: the types of devices that nodes may run on.
        place: finds devices for the nodes that were added, before those that nobody needs are
            taken away: they may say where others lie.  Without it each lies with its call.
        keeps_effects: whether all that has effects runs, and not only what somebody asks for or
            functions name, as in a function that is called by its own name.
        idle: nodes that nobody needs, and that go once the others have devices.
        max_new_nodes: what has grown by so many is left as it is.

    """
    wanted = LoweredKinds(kinds)
    calls = [node for node in graph if wanted.has(node) and functions_of(node) and node not in idle]
    if not calls and place is None:
        return device_of
    begin("putting functions where they are called")
    make = instantiate if place is None else instantiate_whole
    bodies = Bodies(graph.library, device_types, make)
    lowering = _Lowering(graph, device_of, wanted, bodies, lambda node: node.name in targets)
    lowering.stays_with_call = place is None
    lowering.read = read
    lowering.run(calls, max_new_nodes, keeps_effects=keeps_effects)
    if place is not None:
        lowering.device_of = dict(place(lowering.device_of))
    lowering.drop_unneeded(idle)
    return lowering.device_of


def has_choices(graph: Graph) -> bool:
    """Whether there is an If, Case or While that can be lowered."""
    wanted = LoweredKinds(Kinds.CHOICES)
    return any(wanted.has(node) and functions_of(node) for node in graph)


def lower_choices(graph: Graph, device_types: Collection[str], max_new: int) -> frozenset[str]:
    """Lower If, Case and While of a graph that is to be placed, of which anything may be wanted.

    Returns:
        The names of nodes that stand for what is no more: their outputs are what it gave, and
        they are over when it would have been.

    """
    wanted, start = LoweredKinds(Kinds.CHOICES), graph.next_id
    calls = [node for node in graph if wanted.has(node) and functions_of(node)]
    bodies = Bodies(graph.library, device_types, instantiate_whole)
    lowering = _Lowering(graph, {}, wanted, bodies, lambda node: node.id < start)
    lowering.run(calls, max_new, keeps_effects=False)
    return frozenset(node.name for node in calls if graph.find(node.name) is not node)


class _Call:
    """A node that may be lowered."""

    __slots__ = ("callers", "gate", "keeps_effects", "node")

    def __init__(
        self, node: Node, gate: Node | None, callers: frozenset[str], *, keeps_effects: bool
    ) -> None:
        self.node = node
        #: Alive exactly when the node may run; None if that is always, or not known.
        self.gate = gate
        #: The functions in whose bodies it stands.
        self.callers = callers
        #: Whether it is in a function called by its own name, where all that has effects counts.
        self.keeps_effects = keeps_effects


class _Lowering:
    """One pass over a graph: calls from outside in, then those that were in their bodies."""

    def __init__(
        self,
        graph: Graph,
        device_of: Mapping[int, str],
        wanted: LoweredKinds,
        bodies: Bodies,
        is_target: Callable[[Node], bool],
    ) -> None:
        self.graph = graph
        self.device_of = dict(device_of)
        self.wanted = wanted
        #: Whether somebody asks for a node.
        self.is_target = is_target
        #: Whether a node outside of all functions may be dead, or in a frame.
        self.may_be_dead = any(node.role in CONTROL_FLOW for node in graph)
        self.loop_constants: set[Node] = set()
        self.bodies = bodies
        #: The names of calls that are asked for, but only for results that others read.
        self.read: Collection[str] = ()
        #: Whether what is added lies where the call does.
        self.stays_with_call = False
        #: The id of the first node that this pass adds.
        self.start = graph.next_id
        #: Which of the nodes that were added must stay.
        self.needs = Needs()
        #: Groups of nodes that lie together, named after one of them, of all bodies.
        self.groups: set[Attr] = set()

    def run(self, nodes: list[Node], max_new_nodes: int, *, keeps_effects: bool) -> None:
        """Lower what can be lowered."""
        callers = frozenset({self.graph.function})
        waiting = deque(_Call(node, None, callers, keeps_effects=keeps_effects) for node in nodes)
        while waiting and self.graph.next_id < self.start + max_new_nodes:
            checkpoint()
            waiting.extend(self.lower(waiting.popleft()))

    def lower(self, call: _Call) -> Iterator[_Call]:
        """Lower one node, if it can be; yields the calls that come to light."""
        node = call.node
        functions = functions_of(node)
        names = {function.name for function in functions}
        bodies = self.bodies_of(call, functions)
        if bodies is None or not fits(node, bodies):
            return
        keeps_effects = _keeps_effects(call, bodies)
        start = self.graph.next_id
        site = CallSite(
            self.graph,
            self.device_of,
            self.loop_constants,
            node,
            call.gate,
            keeps_effects=keeps_effects,
        )
        if call.gate is None and self.may_be_dead:
            site.seal()
        made = _replacement(site, bodies)
        has_effects = keeps_effects or node.op.name not in CHOICES
        brings = [effect for part in made.inlined for effect in part.effects if has_effects]
        if self.is_target(node) or (brings and node.id >= self.start):
            made = made._replace(outputs=site.owned(made.outputs, start))
        device = self.device_of.get(node.id)
        self.replace(node, made, brings)
        if self.stays_with_call and device is not None:
            self.device_of.update((new.id, device) for new in site.added)
        for inlined in made.inlined:
            self.needs.effects.update(inlined.effects)
            yield from self.calls_in(inlined, call.callers | names, keeps_effects=keeps_effects)

    def bodies_of(self, call: _Call, functions: Sequence[FuncAttr]) -> list[FunctionBody] | None:
        """What takes the place of a node; None if it is left as it is."""
        if call.node.op.name in CHOICES:
            find = self.bodies.branches if asks(call.node) else self.bodies.pure
            return find(functions, call.callers)
        (function,) = functions
        body = None if function.name in call.callers else self.bodies.opened(function)
        return None if body is None else [body]

    def calls_in(
        self, inlined: Inlined, callers: frozenset[str], *, keeps_effects: bool
    ) -> Iterator[_Call]:
        """The nodes of a body that may be lowered in turn."""
        self.groups.update(*(node.attrs.get("_class", ()) for node in inlined.nodes))
        for node in inlined.nodes:
            if self.wanted.has(node) and functions_of(node):
                yield _Call(node, inlined.gate, callers, keeps_effects=keeps_effects)

    def replace(self, call: Node, made: Replacement, brings: Sequence[Node]) -> None:
        """Let what reads the call, or waits for it, turn to what takes its place.

        What it brings happens whenever the call runs.
        """
        waiting = [edge for edge in call.out_edges if edge.is_control]
        is_target = self.is_target(call)
        is_choice = call.op.name in CHOICES
        is_awaited = is_choice and (is_target or call in self.needs.effects)
        end = made.add_end() if waiting or is_awaited else None
        self.note_needs(call, made, brings, end if is_awaited else None)
        for edge in waiting:
            assert end is not None
            self.graph.remove_edge(edge)
            self.graph.add_control_edge(end, edge.dst)
        self.graph.redirect({call: made.outputs})
        device = self.device_of.pop(call.id, "")
        self.graph.remove_nodes([call])
        if is_choice and is_target and end is not None:
            self.needs.roots.append(self.add_stand_in(call, device, made.outputs, [end]))
        elif group_of(call.name) in self.groups:
            self.add_stand_in(call, device)

    def note_needs(
        self, call: Node, made: Replacement, effects: Sequence[Node], end: Node | None
    ) -> None:
        """What runs because a call does: of a node of the graph surely, else if it is needed."""
        results = [node for node, _ in made.outputs]
        if call.id >= self.start:
            self.needs.note(call, results, effects, end)
            return
        self.needs.roots += effects
        if call.name in self.read and call.op.name not in CHOICES:
            self.needs.fetched += results
        elif self.is_target(call) or not call.out_edges:
            self.needs.roots += results

    def add_stand_in(
        self,
        call: Node,
        device: str,
        outputs: Sequence[Endpoint] = (),
        waits: Sequence[Node] = (),
    ) -> Node:
        """A node of the call's name and place: to be asked for, or for others to lie with."""
        types = tuple(src.output_types[slot] for src, slot in outputs)
        node = self.graph.add_node(
            call.name,
            get_op("IdentityN" if types else "NoOp"),
            {"T": types} if types else {},
            device=device or call.requested_device,
            assigned_device=call.assigned_device,
        )
        for slot, (src, src_slot) in enumerate(outputs):
            self.graph.add_edge(src, src_slot, node, slot)
        self.graph.add_control_edges(waits, node)
        if device and self.stays_with_call:
            self.device_of[node.id] = device
        return node

    def drop_unneeded(self, idle: Collection[Node]) -> None:
        """Take away what was added and nothing needs, loops included, and what is idle."""
        if self.graph.next_id == self.start and not idle:
            return
        own = [node for node in self.graph if node.id < self.start and node not in idle]
        needed = self.needs.needed(own)
        unneeded = [node for node in self.graph if node not in needed]
        self.graph.remove_nodes(unneeded)
        for node in unneeded:
            self.device_of.pop(node.id, None)


def _keeps_effects(call: _Call, bodies: Sequence[FunctionBody]) -> bool:
    """Whether all that has effects in the functions of a node counts."""
    if call.node.op.name in CHOICES:
        return call.keeps_effects
    return call.node.op.is_function or not bodies[0].wanted


def _replacement(site: CallSite, bodies: Sequence[FunctionBody]) -> Replacement:
    name = site.node.op.name
    if name in CASES:
        return lower_case(site, bodies)
    if name not in CHOICES:
        return lower_call(site, *bodies)
    test = site.as_bool if asks(site.node) else site.truth
    if name in BRANCHES:
        return lower_if(site, bodies, test)
    cond, body = bodies
    return lower_while(site, cond, body, test)
