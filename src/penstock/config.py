"""How to run: Penstock's own option classes, and TensorFlow's messages as a second way in.

In:   keyword arguments; or a ConfigProto or RunOptions, as message or bytes.
Out:  frozen ``Config`` and ``RunOptions``; ``RunMetadata`` to be filled by a run.
Not:  never says what to compute.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtobufMessage

from penstock.defs import schema
from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError


class ThreadPoolOption(NamedTuple):
    """One of the pools that a session's steps can choose from."""

    #: 0 means as many as ``inter_op_parallelism_threads`` says.
    num_threads: int = 0
    #: Pools of the same name are the same throughout the process; one without a name is the
    #: session's own.
    global_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Options of a session.

    The names are ConfigProto's.  Two defaults differ: soft placement is on, so that a graph
    made for devices that this host lacks runs on the CPU with a warning; and nothing is
    optimised away.
    """

    #: How many devices of each type to make; at least one CPU.
    device_count: Mapping[str, int] = field(default_factory=dict)
    #: Place a node elsewhere if its device is missing or has no kernel for it.
    allow_soft_placement: bool = True
    #: Print each node's device when the graph is placed.
    log_device_placement: bool = False
    #: Threads for slow kernels: 0 means one per core, 1 or below 0 none but the caller's.
    inter_op_parallelism_threads: int = 0
    #: Pools that ``RunOptions.inter_op_thread_pool`` chooses from; none means there is one.
    session_inter_op_thread_pool: Sequence[ThreadPoolOption] = ()
    #: A pool of this session's own, rather than the process's.
    use_per_session_threads: bool = False
    #: Every run fails after this time, unless its own options say otherwise; 0 means never.
    operation_timeout_in_ms: int = 0
    #: Place only what a request needs, so that a misplaced node elsewhere does no harm.
    place_pruned_graph: bool = False
    #: Refuse requests for partition graphs.
    disable_output_partition_graphs: bool = False
    #: The graph is final: ``extend`` is refused.
    optimize_for_static_graph: bool = False
    #: Take ready nodes in an order shuffled by this seed, to find hidden order dependence.
    ready_order_seed: int | None = None
    #: Kernels that take longer than this many seconds may go to another thread.
    offload_seconds: float = 100e-6
    #: Compare every output with its declared type, also those of Penstock's own kernels.
    check_outputs: bool = False
    #: Compare graphs with their laws after every pass, to find mistakes of the passes.
    check_graphs: bool = False

    @classmethod
    def of(cls, config: Config | Message | bytes | None) -> Config:
        """``config`` as a Config; raises InvalidArgumentError for anything strange."""
        if config is None:
            return cls()
        if isinstance(config, cls):
            return config
        proto = _parse(config, schema.ConfigProto, "config")
        return cls(
            device_count=dict(proto.device_count),
            allow_soft_placement=proto.allow_soft_placement,
            log_device_placement=proto.log_device_placement,
            inter_op_parallelism_threads=proto.inter_op_parallelism_threads,
            session_inter_op_thread_pool=tuple(
                ThreadPoolOption(pool.num_threads, pool.global_name)
                for pool in proto.session_inter_op_thread_pool
            ),
            use_per_session_threads=proto.use_per_session_threads,
            operation_timeout_in_ms=proto.operation_timeout_in_ms,
            place_pruned_graph=proto.graph_options.place_pruned_graph,
            disable_output_partition_graphs=proto.experimental.disable_output_partition_graphs,
            optimize_for_static_graph=proto.experimental.optimize_for_static_graph,
        )


class TraceLevel(enum.IntEnum):
    """How much of a run is recorded."""

    NO_TRACE = 0
    SOFTWARE_TRACE = 1
    HARDWARE_TRACE = 2
    FULL_TRACE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of one run; the names are those of TensorFlow's message."""

    NO_TRACE: ClassVar = TraceLevel.NO_TRACE
    SOFTWARE_TRACE: ClassVar = TraceLevel.SOFTWARE_TRACE
    HARDWARE_TRACE: ClassVar = TraceLevel.HARDWARE_TRACE
    FULL_TRACE: ClassVar = TraceLevel.FULL_TRACE

    trace_level: TraceLevel = TraceLevel.NO_TRACE
    #: The run fails with DeadlineExceededError after this time; 0 means never.
    timeout_in_ms: int = 0
    #: Which of the session's pools to use, counted from 0; -1 is the caller's own thread.
    inter_op_thread_pool: int = 0
    #: Put the graphs that really ran into the run's metadata.
    output_partition_graphs: bool = False

    @classmethod
    def of(cls, options: RunOptions | Message | bytes | None) -> RunOptions:
        """``options`` as RunOptions; raises InvalidArgumentError for anything strange."""
        if options is None:
            return _NO_OPTIONS
        if isinstance(options, cls):
            return options
        proto = _parse(options, schema.RunOptions, "options")
        if proto.trace_level not in set(TraceLevel):
            raise InvalidArgumentError(f"There is no trace_level {proto.trace_level}")
        return cls(
            trace_level=TraceLevel(proto.trace_level),
            timeout_in_ms=proto.timeout_in_ms,
            inter_op_thread_pool=proto.inter_op_thread_pool,
            output_partition_graphs=proto.output_partition_graphs,
        )


_NO_OPTIONS: Final = RunOptions()


@dataclass(frozen=False, slots=True)
class RunMetadata:
    """What a run recorded; filled by ``Session.run``."""

    #: A StepStats message: one record per activation, by device.
    step_stats: Message = field(default_factory=schema.StepStats)
    #: A CostGraphDef message: the same, summed up by node.
    cost_graph: Message = field(default_factory=schema.CostGraphDef)
    #: GraphDef messages, one per device.
    partition_graphs: list[Message] = field(default_factory=list)

    def to_proto(self) -> Message:
        """TensorFlow's RunMetadata message."""
        proto = schema.RunMetadata()
        proto.step_stats.CopyFrom(self.step_stats)
        proto.cost_graph.CopyFrom(self.cost_graph)
        for graph in self.partition_graphs:
            proto.partition_graphs.add().CopyFrom(graph)
        return proto


def _parse(given: Any, message_class: Any, what: str) -> Message:
    """A message of ours from a message of anyone's, or from bytes."""
    if isinstance(given, ProtobufMessage):
        given = given.SerializeToString()
    if not isinstance(given, bytes):
        raise InvalidArgumentError(
            f"{what} is a {type(given).__name__}, not a penstock class, a message or bytes"
        )
    message = message_class()
    try:
        message.ParseFromString(given)
    except (DecodeError, ValueError) as cause:  # bad UTF-8 may be either
        raise InvalidArgumentError(f"{what} is not a serialized message: {cause}") from cause
    return message
