"""What a run tells about itself.

In:   messages, or what makes them.
Out:  ``RunMetadata``, with messages that are made when they are first read.
Not:  records nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.core.forks import importing
from penstock.defs import schema
from penstock.defs.schema import Message


class Later:
    """A message that is made when it is first read."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Message]) -> None:
        self._make = make
        #: Set once; of two threads that make it, either's will do.
        self._made: Message | None = None

    def get(self) -> Message:
        """The message, always the same one."""
        if self._made is None:
            self._made = self._make()
            self._make = _nothing_more
        return self._made


def _nothing_more() -> Message:
    raise AssertionError("a message is made once")


class RunMetadata:
    """What a run recorded; filled by ``Session.run``."""

    __slots__ = ("_cost_graph", "_step_stats", "partition_graphs")

    def __init__(self) -> None:
        #: GraphDef messages, one per device.
        self.partition_graphs: list[Message] = []
        self._step_stats = Later(schema.StepStats)
        self._cost_graph = Later(schema.CostGraphDef)

    @property
    def step_stats(self) -> Message:
        """A StepStats message: one record per activation, by device; made when it is read."""
        return self._step_stats.get()

    @step_stats.setter
    def step_stats(self, message: Message) -> None:
        self._step_stats = Later(lambda: message)

    @property
    def cost_graph(self) -> Message:
        """A CostGraphDef message: the same, and what earlier runs recorded, summed up by node."""
        return self._cost_graph.get()

    @cost_graph.setter
    def cost_graph(self, message: Message) -> None:
        self._cost_graph = Later(lambda: message)

    def step_stats_later(self, make: Callable[[], Message]) -> None:
        """Have the statistics be made when they are first read: that takes longer than a run."""
        self._step_stats = Later(make)

    def cost_graph_later(self, make: Callable[[], Message]) -> None:
        """The same of the cost graph."""
        self._cost_graph = Later(make)

    def __repr__(self) -> str:
        nodes = sum(len(device.node_stats) for device in self.step_stats.dev_stats)
        graphs = len(self.partition_graphs)
        return f"<RunMetadata: {nodes} records of nodes, {graphs} partition graphs>"

    def _repr_html_(self) -> str:
        # Notebooks alone need it.
        with importing:
            from penstock.tracing.metadata_html import metadata_html  # noqa: PLC0415

        return metadata_html(self.step_stats, repr(self).strip("<>"))

    def to_proto(self) -> Message:
        """TensorFlow's RunMetadata message."""
        proto = schema.RunMetadata()
        proto.step_stats.CopyFrom(self.step_stats)
        proto.cost_graph.CopyFrom(self.cost_graph)
        for graph in self.partition_graphs:
            proto.partition_graphs.add().CopyFrom(graph)
        return proto
