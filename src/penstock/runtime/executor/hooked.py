"""One step on one device, with somebody who is asked before and after each node.

In:   what ``driver`` takes, and a ``NodeHook``.
Out:  the same effects, with the values that the hook wants.
Not:  decides nothing itself.

These are classes of their own, so that a step without a hook has not one instruction more.  They
change what the driver's loop calls, and not the loop: no node counts as cheap, so all are run in
full; and what is propagated without outputs is dead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.core.dtypes import DType
from penstock.core.values import Value, describe, has_dtype
from penstock.errors import InvalidArgumentError, OpError
from penstock.runtime.executor.driver import ExecutorState, Prepared
from penstock.runtime.executor.graph_view import Flow, NodeItem
from penstock.runtime.executor.params import DoneCallback, ExecutorArgs
from penstock.runtime.executor.recorded import RecordedState
from penstock.runtime.executor.state import FrameState, IterationState, TaggedNode
from penstock.runtime.outputs import check_outputs
from penstock.state.frame_and_iter import FrameAndIter
from penstock.state.node_hook import Activation, Instead, LiveTensors, NodeHook
from penstock.state.step_state import Runner


class HookedState(ExecutorState):
    """One step on one device, with a hook."""

    def __init__(self, *given: Any, hook: NodeHook) -> None:
        super().__init__(*given)
        self._hook = hook
        #: More than any kernel that counts as cheap.
        self._no_costs = [math.inf] * len(self._executor.view.items)
        #: Made when somebody first asks for a node by its name.
        self._items: dict[str, NodeItem] = {}
        #: What has been asked about and is not done, by the identity of what is activated.
        self._asked: dict[int, Activation] = {}
        self._hand_on, self._propagate = self._propagate, self._tell_and_propagate

    def _known_costs(self) -> Sequence[float]:
        return self._no_costs

    def _attempt(self, tagged: TaggedNode) -> Sequence[Value] | None:
        return self._activate(tagged)

    def _activate(self, tagged: TaggedNode) -> Sequence[Value] | None:
        item, _, iteration, is_dead = tagged
        if is_dead:  # a Send or Recv, which tells others
            return super()._activate(tagged)
        self._at = tagged
        place = slice(item.input_start, item.input_start + item.num_inputs)
        given = iteration.inputs[place]
        at = self._asked[id(tagged)] = self._activation(tagged)
        wanted = self._hook.before(at, given)
        if isinstance(wanted, Instead):
            iteration.inputs[place] = item.no_inputs
            check_outputs(item, wanted.outputs, may_omit=item.may_omit_outputs)
            return self._observe(tagged, wanted.outputs)
        if wanted is not given:
            iteration.inputs[place] = wanted
        return super()._activate(tagged)

    def _observe(self, tagged: TaggedNode, outputs: Sequence[Value]) -> Sequence[Value]:
        outputs = super()._observe(tagged, outputs)
        if tagged[3]:
            return outputs
        wanted = self._hook.after(self._asked.pop(id(tagged)), outputs)
        if wanted is not outputs:
            item = tagged[0]
            check_outputs(item, wanted, may_omit=item.may_omit_outputs)
        return wanted

    def _tell_and_propagate(
        self,
        item: NodeItem,
        frame: FrameState,
        iteration: IterationState,
        outputs: Sequence[Value] | None,
    ) -> None:
        if outputs is None:
            self._hook.dead(self._activation((item, frame, iteration, True)))
        self._hand_on(item, frame, iteration, outputs)

    def failure(self, tagged: TaggedNode, cause: BaseException) -> OpError:
        """The error of a node, of which the hook is told unless it is that the step was ended.

        The hook may wait, and whoever ends a step, perhaps on this thread, must not wait for it.
        """
        error = super().failure(tagged, cause)
        at = self._asked.pop(id(tagged)) if id(tagged) in self._asked else self._activation(tagged)
        if error is not self._interrupt.reason:
            self._hook.failed(at, error)
        return error

    def _activation(self, tagged: TaggedNode) -> Activation:
        return _Activation(self, tagged)

    @property
    def step_id(self) -> int:
        """The number of the step."""
        return self._args.step.id

    @property
    def device(self) -> str:
        """Full name of the executor's device."""
        return self._executor.params.device

    @property
    def call_depth(self) -> int:
        """How many calls this is inside of that are not inlined."""
        return self._args.call_depth

    def item(self, node: str) -> NodeItem | None:
        """A node by its name."""
        if not self._items:
            self._items = {item.name: item for item in self._executor.view.items}
        return self._items.get(node)


class RecordedHookedState(HookedState, RecordedState):
    """One step on one device, with a hook, which a recorder is told of as well."""


def hooked_state(
    executor: Prepared, args: ExecutorArgs, runner: Runner, done: DoneCallback, hook: NodeHook
) -> HookedState:
    """A step with a hook, which is recorded if ``args`` has a recorder."""
    if args.recorder is None:
        return HookedState(executor, args, runner, done, hook=hook)
    return RecordedHookedState(executor, args, runner, done, args.recorder, hook=hook)


class _Activation:
    """See ``Activation``.  What it says is found out when somebody asks: few ask for everything."""

    __slots__ = ("_frame", "_item", "_iteration", "_state")

    def __init__(self, state: HookedState, tagged: TaggedNode) -> None:
        self._state = state
        self._item, self._frame, self._iteration, _ = tagged

    @property
    def step_id(self) -> int:
        """See ``Activation``, as of all that follows."""
        return self._state.step_id

    @property
    def node(self) -> str:
        return self._item.name

    @property
    def op(self) -> str:
        return self._item.op

    @property
    def function(self) -> str:
        return self._item.function

    @property
    def device(self) -> str:
        return self._state.device

    @property
    def output_types(self) -> tuple[DType, ...]:
        return self._item.output_types

    @property
    def frame(self) -> str:
        return self._frame.label

    @property
    def frame_iter(self) -> FrameAndIter:
        return FrameAndIter(self._frame.id, self._iteration.number)

    @property
    def iterations(self) -> tuple[int, ...]:
        around = _outwards(self._frame, self._iteration)
        return tuple(iteration.number for _, iteration in around)[-2::-1]

    @property
    def iteration(self) -> int:
        return self._iteration.number

    @property
    def call_depth(self) -> int:
        return self._state.call_depth

    @property
    def live(self) -> LiveTensors:
        return _Live(self._state, self._item, self._frame, self._iteration)


class _Live:
    """See ``LiveTensors``."""

    __slots__ = ("_frame", "_item", "_iteration", "_state")

    def __init__(
        self, state: HookedState, item: NodeItem, frame: FrameState, iteration: IterationState
    ) -> None:
        self._state = state
        self._item = item
        self._frame = frame
        self._iteration = iteration

    def inputs(self) -> Sequence[Value]:
        """See ``LiveTensors``."""
        start = self._item.input_start
        return self._iteration.inputs[start : start + self._item.num_inputs]

    def get(self, node: str, slot: int) -> Value | None:
        """See ``LiveTensors``."""
        item = self._state.item(node)
        places = iter(()) if item is None else self._places(item, slot)
        return next((inputs[at] for inputs, at in places), None)

    def put(self, node: str, slot: int, value: Value) -> int:
        """See ``LiveTensors``."""
        item, count = self._state.item(node), 0
        if item is None or slot >= len(item.output_types):
            return 0
        if not has_dtype(value, item.output_types[slot]):
            raise InvalidArgumentError(
                f"{node}:{slot} is {item.output_types[slot]}, and not {describe(value)}"
            )
        for inputs, at in self._places(item, slot):
            inputs[at] = value
            count += 1
        for _, iteration in _outwards(self._frame, self._iteration):
            for child in iteration.children.values():
                count += _replace_invariant(child, item, value)
        return count

    def _places(self, item: NodeItem, slot: int) -> Iterator[tuple[list[Any], int]]:
        """The input places where an output of a node lies: a list, and the index in it."""
        # The same iteration may be reached by more than one way.
        reached = {id(iteration): (frame, iteration) for frame, iteration in self._reached(item)}
        for frame, iteration in reached.values():
            for src_slot, dst, at in item.data_edges:
                is_there = src_slot == slot and dst.frame is frame.info
                if is_there and iteration.inputs[at] is not None:
                    yield iteration.inputs, at

    def _reached(self, item: NodeItem) -> Iterator[tuple[FrameState, IterationState]]:
        """The iterations to which a node may have given something."""
        for frame, iteration in _outwards(self._frame, self._iteration):
            yield frame, iteration
            following = frame.iterations.get(iteration.number + 1)
            if item.flow == Flow.NEXT_ITERATION and following is not None:
                yield frame, following
            if item.child_frame is not None:
                for child in iteration.children.values():
                    for inner in child.iterations.values():
                        yield child, inner


def _replace_invariant(frame: FrameState, item: NodeItem, value: Value) -> int:
    """Have a loop's constant be another one for iterations to come; returns whether it is one."""
    for index, (enter, outputs) in enumerate(frame.invariants):
        if enter is item and outputs is not None:
            frame.invariants[index] = enter, (value,)
            return 1
    return 0


def _outwards(
    frame: FrameState, iteration: IterationState
) -> Iterator[tuple[FrameState, IterationState]]:
    """A frame and its iteration, and those around them."""
    yield frame, iteration
    if frame.parent is not None:
        assert frame.parent_iteration is not None
        yield from _outwards(frame.parent, frame.parent_iteration)
