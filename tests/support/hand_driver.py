"""Drive a graph by hand: take ready nodes in any order, and look at frames in between.

The laws of frames are checked after every activation, so also when a test ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from penstock.core.values import Value
from penstock.graph.graph import Graph
from penstock.runtime import KernelBinder
from penstock.runtime.executor.graph_view import DispatchKind, GraphView
from penstock.runtime.executor.propagate import Propagator
from penstock.runtime.executor.state import FrameState, TaggedNode
from support.frame_laws import check_frames
from support.sketch import CPU, sketch


class HandDriver:
    """One step of one graph, under full control."""

    def __init__(self, graph: Graph | str, feeds: Mapping[str, Value] | None = None) -> None:
        if isinstance(graph, str):
            graph = sketch(graph)
        self.view = GraphView(graph, CPU, KernelBinder(CPU).bind)
        self.feeds = feeds or {}
        self.ready: deque[TaggedNode] = deque()
        self.propagator = Propagator(self.view, self.ready)
        #: What ran: ``name``, or ``name[3]`` in an iteration of a loop; ``-name`` if it was dead.
        self.log: list[str] = []
        #: The outputs of the live ones.
        self.outputs: dict[str, Any] = {}
        #: The largest number of iterations alive at a time, by frame label.
        self.most_alive: dict[str, int] = {}

    @property
    def root(self) -> FrameState:
        return self.propagator.root

    def names(self) -> list[str]:
        """What is ready."""
        return [self._label(tagged) for tagged in self.ready]

    def step(self, label: str = "") -> str:
        """Run one ready node: the oldest, or the one that is called so."""
        chosen = next(t for t in self.ready if not label or self._label(t) == label)
        self.ready.remove(chosen)
        item, frame, iteration, is_dead = chosen
        done = self._label(chosen)
        self.log.append(done)
        check_frames(self.root, [*self.ready, chosen])
        outputs = None if is_dead else self._compute(chosen)
        if outputs is not None:
            self.outputs[done] = outputs[0] if len(outputs) == 1 else outputs
        self.propagator.propagate(item, frame, iteration, outputs)
        check_frames(self.root, self.ready)
        self._watch()
        return done

    def run(self, *, but: str = "", choose: Callable[[list[str]], str] | None = None) -> list[str]:
        """Run until nothing is ready but nodes whose label begins with ``but``."""
        while True:
            names = [name for name in self.names() if not but or not name.startswith(but)]
            if not names:
                return self.log
            self.step(choose(names) if choose else names[0])

    def _compute(self, tagged: TaggedNode) -> Any:
        item, _, iteration, _ = tagged
        if item.name in self.feeds:
            return (self.feeds[item.name],)
        places = slice(item.input_start, item.input_start + item.num_inputs)
        inputs, iteration.inputs[places] = iteration.inputs[places], item.no_inputs
        if item.dispatch == DispatchKind.LOOP_COND:
            return inputs
        if item.dispatch == DispatchKind.NOTHING:
            return ()
        result = item.compute(*inputs)
        return (result,) if item.has_bare_output else result or ()

    def _watch(self) -> None:
        frames = [self.root]
        while frames:
            frame = frames.pop()
            label = frame.info.name
            self.most_alive[label] = max(self.most_alive.get(label, 0), len(frame.iterations))
            for iteration in frame.iterations.values():
                frames += iteration.children.values()

    @staticmethod
    def _label(tagged: TaggedNode) -> str:
        item, frame, iteration, is_dead = tagged
        iterations = f"[{iteration.number}]" if frame.parent else ""
        while frame.parent is not None and frame.parent.parent is not None:
            assert frame.parent_iteration is not None
            iterations = f"[{frame.parent_iteration.number}]{iterations}"
            frame = frame.parent
        return f"{'-' if is_dead else ''}{item.name}{iterations}"
