"""How to run: Penstock's own option classes, and TensorFlow's messages as a second way in.

In:   keyword arguments; or a ConfigProto or RunOptions, as message or bytes.
Out:  frozen ``Config`` and ``RunOptions``; and ``RunMetadata``, to be filled by a run.
Not:  never says what to compute.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, NamedTuple

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtobufMessage

from penstock.core.limits import DEFAULT_LIMITS, Limits
from penstock.core.options import Options
from penstock.defs import schema
from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError
from penstock.exceptions import shown_cause
from penstock.state.node_hook import NodeHook
from penstock.state.step_order import StepOrder
from penstock.tracing.recorder import Recording
from penstock.tracing.run_metadata import RunMetadata as RunMetadata  # noqa: PLC0414  (one of ours)

#: What is said about a field whose numbers begin at 0.
_NOT_NEGATIVE: Final = {"minimum": 0}


class Tier(enum.Enum):
    """How graphs are run."""

    #: Node by node, by TensorFlow's rules of dataflow: what every graph means.
    DATAFLOW = enum.auto()
    #: As generated Python functions where that is possible: the same, faster.
    COMPILED = enum.auto()


class ThreadPoolOption(NamedTuple):
    """One of the pools that a session's steps can choose from."""

    #: 0 means as many as ``inter_op_parallelism_threads`` says.
    num_threads: int = 0
    #: Pools of the same name are the same throughout the process; one without a name is the
    #: session's own.
    global_name: str = ""


class Level(enum.IntEnum):
    """How much is optimised where nothing else is said."""

    L1 = 0
    L0 = -1


class JitLevel(enum.IntEnum):
    """Whether regions without loops become programs in C, too; loops do unless it is OFF."""

    DEFAULT = 0
    OFF = -1
    ON_1 = 1
    ON_2 = 2


class Toggle(enum.IntEnum):
    """Whether one kind of optimisation takes place; DEFAULT leaves it to the level."""

    DEFAULT = 0
    ON = 1
    OFF = 2
    AGGRESSIVE = 3


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OptimizerOptions(Options):
    """What is optimised unless ``RewriterConfig`` says otherwise."""

    L0: ClassVar = Level.L0
    L1: ClassVar = Level.L1
    DEFAULT: ClassVar = JitLevel.DEFAULT
    OFF: ClassVar = JitLevel.OFF
    ON_1: ClassVar = JitLevel.ON_1
    ON_2: ClassVar = JitLevel.ON_2

    opt_level: Level = Level.L1
    #: With L0: merge equal nodes all the same.
    do_common_subexpression_elimination: bool = False
    #: With L0: fold constants all the same.
    do_constant_folding: bool = False
    #: Larger results are not folded; 0 means 10 MiB.
    max_folded_constant_in_bytes: int = field(default=0, metadata=_NOT_NEGATIVE)
    #: Have regions of many small nodes become programs in C, as loops do anyway; with OFF, nothing
    #: does.  The last bits of results may differ.  ON_1 and ON_2 are the same.
    global_jit_level: JitLevel = JitLevel.DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RewriterConfig(Options):
    """Which optimisations take place, one by one."""

    DEFAULT: ClassVar = Toggle.DEFAULT
    ON: ClassVar = Toggle.ON
    OFF: ClassVar = Toggle.OFF

    #: Leave out everything below.
    disable_meta_optimizer: bool = False
    #: Compute once what depends on constants only.
    constant_folding: Toggle = Toggle.DEFAULT
    #: Compute equal things once.
    common_subgraph_elimination: Toggle = Toggle.DEFAULT
    #: Leave out arithmetic that changes nothing.
    arithmetic_optimization: Toggle = Toggle.DEFAULT
    #: Leave out nodes that only hand on their input.
    dependency_optimization: Toggle = Toggle.DEFAULT
    #: Put the bodies of functions where they are called.
    function_optimization: Toggle = Toggle.DEFAULT
    #: Make one node of a convolution and what comes after it.
    remapping: Toggle = Toggle.DEFAULT
    #: Leave out most of this for a request that needs fewer nodes; 0 means 4, and nothing is left
    #: out below 0.  Constants are folded and equal things computed once all the same, and what is
    #: heavy is fused.
    min_graph_nodes: int = 0
    #: An error of the optimiser is one of the run, instead of a warning.
    fail_on_optimizer_errors: bool = False


#: What is said where nothing is said; all options are frozen, so that one of each will do.
_OPTIMIZER_DEFAULTS: Final = OptimizerOptions()
_REWRITER_DEFAULTS: Final = RewriterConfig()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GraphOptions(Options):
    """How graphs are optimised and watched; the names are those of TensorFlow's messages."""

    optimizer_options: OptimizerOptions = _OPTIMIZER_DEFAULTS
    rewrite_options: RewriterConfig = _REWRITER_DEFAULTS
    #: Watch one of so many runs of each request, and put what its nodes cost into the run's
    #: metadata; 0 means that only runs that are traced are watched.
    build_cost_model: int = 0
    #: The number of the first run that counts for that.
    build_cost_model_after: int = 0

    @classmethod
    def nothing(cls) -> GraphOptions:
        """Options under which graphs run as they are, but for what asks to be lowered."""
        return cls(
            optimizer_options=OptimizerOptions(opt_level=Level.L0),
            rewrite_options=RewriterConfig(disable_meta_optimizer=True),
        )


_GRAPH_DEFAULTS: Final = GraphOptions()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Config(Options):
    """Options of a session.

    The names are ConfigProto's.  One default differs: soft placement is on, so that a graph
    made for devices that this host lacks runs on the CPU with a warning.
    """

    #: How many devices of each type to make; at least one CPU.
    device_count: Mapping[str, int] = field(default_factory=dict, metadata=_NOT_NEGATIVE)
    #: Place a node elsewhere if its device is missing or has no kernel for it.
    allow_soft_placement: bool = True
    #: Print each node's device when the graph is placed.
    log_device_placement: bool = False
    #: Threads that a kernel shares its work with, itself included: 0 means one per core, 1 or below
    #: 0 none but the kernel's own.  As in TensorFlow, kernels have one pool in the process: the
    #: least that an open session asks for holds for all of them.
    intra_op_parallelism_threads: int = 0
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
    #: Leave If, Case and While to their kernels, even those that ask to become Switches and loops.
    disable_functional_ops_lowering: bool = False
    #: What is optimised before a graph is run.
    graph_options: GraphOptions = _GRAPH_DEFAULTS
    #: Take ready nodes in an order shuffled by this seed, to find hidden order dependence.
    ready_order_seed: int | None = None
    #: Kernels that take longer than this many seconds may go to another thread.
    offload_seconds: float = field(default=100e-6, metadata=_NOT_NEGATIVE)
    #: Have the process keep memory that arrays gave back, rather than ask the system for it in
    #: every step.
    keep_freed_memory: bool = True
    #: Whether regions of graphs are compiled.
    tier: Tier = Tier.COMPILED
    #: Let the kernels in C compute convolutions, products and functions of elements, and ONNX
    #: Runtime heavy regions, where they are installed; otherwise numpy computes all but random
    #: numbers, which come from C in any case.  The last bits of results may differ.
    accelerate: bool = True
    #: Let graphs read, write and list files, and call the Python functions that are registered;
    #: otherwise ops that would fail with PermissionDeniedError.
    allow_files: bool = True
    #: The same request gives the same bits each time: what adapts to the machine while a graph
    #: runs may change how fast it is, never how numbers are added up.  Without it, ONNX Runtime
    #: competes for regions with the kernels of their nodes, and whoever was faster computes them.
    exact_repetition: bool = True
    #: Let what takes long, and who else uses the cores, decide where and when things are computed.
    #: Without it, nothing is learnt from times, here or, as long as the session is open, in what
    #: kernels of the whole process share among the cores: the same steps run in the same way.
    adaptive: bool = True
    #: Take denormal numbers for zeros in all but the smallest steps, as TensorFlow's threads do.
    flush_denormals: bool = True
    #: Compare every output with its declared type, also those of Penstock's own kernels.
    check_outputs: bool = False
    #: Compare graphs with their laws after every pass, to find mistakes of the passes.
    check_graphs: bool = False
    #: A run fails with ResourceExhaustedError, which names the node, when its tensors and what the
    #: session keeps take more bytes; then all nodes are run one by one.  0 is no bound.
    max_memory_in_bytes: int = field(default=0, metadata=_NOT_NEGATIVE)
    #: How far graphs may grow, and what is worth tuning.
    limits: Limits = DEFAULT_LIMITS

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
            intra_op_parallelism_threads=proto.intra_op_parallelism_threads,
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
            disable_functional_ops_lowering=_keeps_functional_ops(proto.experimental),
            graph_options=_graph_options(proto.graph_options),
        )


def _keeps_functional_ops(experimental: Any) -> bool:
    """Whether If, Case and While stay as they are: there is more than one way to say so."""
    return bool(
        experimental.disable_functional_ops_lowering
        or experimental.use_tfrt
        or experimental.executor_type == "SINGLE_THREADED_EXECUTOR"
    )


def _graph_options(proto: Message) -> GraphOptions:
    """GraphOptions from the message, as far as Penstock knows them."""
    optimizer, rewriter = proto.optimizer_options, proto.rewrite_options
    names = [f.name for f in fields(RewriterConfig) if f.type == "Toggle"]
    # What TensorFlow knows beyond these is on in some experimental way.
    toggles = {name: min(getattr(rewriter, name), Toggle.AGGRESSIVE) for name in names}
    return GraphOptions(
        optimizer_options=OptimizerOptions(
            opt_level=Level.L0 if optimizer.opt_level < 0 else Level.L1,
            do_common_subexpression_elimination=optimizer.do_common_subexpression_elimination,
            do_constant_folding=optimizer.do_constant_folding,
            max_folded_constant_in_bytes=max(optimizer.max_folded_constant_in_bytes, 0),
            global_jit_level=_jit_level(optimizer.global_jit_level),
        ),
        rewrite_options=RewriterConfig(
            disable_meta_optimizer=rewriter.disable_meta_optimizer,
            fail_on_optimizer_errors=rewriter.fail_on_optimizer_errors,
            min_graph_nodes=rewriter.min_graph_nodes,
            **{name: Toggle(max(value, 0)) for name, value in toggles.items()},
        ),
        build_cost_model=proto.build_cost_model,
        build_cost_model_after=proto.build_cost_model_after,
    )


def _jit_level(number: int) -> JitLevel:
    """What a message says; a level beyond those that there are is the last one."""
    return JitLevel(max(JitLevel.OFF, min(number, JitLevel.ON_2)))


class TraceLevel(enum.IntEnum):
    """How much of a run is recorded."""

    NO_TRACE = 0
    SOFTWARE_TRACE = 1
    HARDWARE_TRACE = 2
    FULL_TRACE = 3


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunOptions(Options):
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
    #: Told of what runs, as ``penstock.trace`` has it; instead of a recorder that ``trace_level``
    #: asks for.
    recorder: Recording | None = None
    #: In which order everything takes effect, as ``penstock.record`` and ``replay`` have it; then
    #: all nodes are run one by one.
    order: StepOrder | None = None
    #: Called with (node, slot, value, whether it is dead, ``NodeOutputContext``) for each output of
    #: each node, from any thread; then all nodes are run one by one.  Values may be written over
    #: when it returns.
    node_outputs: Callable[..., object] | None = None
    #: Asked before and after each node, which it may change, in functions as well; then all nodes
    #: are run one by one.
    node_hook: NodeHook | None = None

    @property
    def is_by_node(self) -> bool:
        """Whether somebody wants to see, or to order, each node: then nothing is compiled.

        Raises:
            InvalidArgumentError: a step with an order is to have a hook as well.

        """
        is_seen = self.node_outputs is not None or self.node_hook is not None
        if is_seen and self.order is not None:
            raise InvalidArgumentError("A step with an order has no node_hook and no node_outputs")
        return is_seen or self.order is not None

    @classmethod
    def of(cls, options: RunOptions | Message | bytes | None) -> RunOptions:
        """``options`` as RunOptions; raises InvalidArgumentError for anything strange."""
        if options is None:
            return NO_OPTIONS
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


#: Those of runs for which nobody gives any.
NO_OPTIONS: Final = RunOptions()


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
        raise InvalidArgumentError(f"{what} is not a serialized message: {cause}") from shown_cause(
            cause
        )
    return message
