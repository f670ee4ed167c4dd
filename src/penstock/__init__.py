"""Penstock runs TensorFlow graphs without TensorFlow.

The journey of a graph, and where each stage lives:

| what | made by |
| --- | --- |
| bytes → GraphDef | ``defs`` |
| GraphDef → Graph | ``graph`` |
| Graph → Placed → Pruned → Partition | ``passes`` |
| Partition → functions and Executor → values | ``runtime`` |
| values → results | ``session`` |
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from penstock.core.collector import collector_pause
from penstock.core.forks import importing

# Thousands of objects are made that stay.
with collector_pause():
    from penstock import errors
    from penstock.catalogue.registry import register_op
    from penstock.config import (
        Config,
        GraphOptions,
        OptimizerOptions,
        RewriterConfig,
        RunMetadata,
        RunOptions,
        Tier,
        TraceLevel,
    )
    from penstock.core import dtypes
    from penstock.core.dtypes import DType
    from penstock.core.limits import Limits
    from penstock.core.shapes import TensorShape
    from penstock.defs.codec import load_graph_def
    from penstock.graph.export import graph_to_def
    from penstock.graph.import_options import ImportOptions, ImportResults
    from penstock.kernels.api.registry import async_kernel, context_kernel, kernel
    from penstock.kernels.api.traits import KernelTraits
    from penstock.passes.graph_pass import GraphProperty
    from penstock.runtime.choose_passes import register_pass, unregister_pass
    from penstock.runtime.executor.barrier import ExecutorBarrier
    from penstock.runtime.executor.executor import Executor
    from penstock.runtime.executor.node_outputs import NodeOutputContext
    from penstock.runtime.executor.params import ExecutorArgs, LocalExecutorParams
    from penstock.runtime.local_executor import new_local_executor
    from penstock.session import Run, Session
    from penstock.state.call_frame import CallFrame
    from penstock.state.cancellation import CancellationManager
    from penstock.state.default_session import innermost as default_session
    from penstock.state.devices import Device, register_device_type
    from penstock.state.frame_and_iter import FrameAndIter
    from penstock.state.py_funcs import EagerCall, register_eager_caller, register_py_func
    from penstock.state.rendezvous import Rendezvous, RendezvousKey
    from penstock.state.resources import ResourceManager
    from penstock.state.step_state import StepState
    from penstock.tracing.recorder import Detail as TraceDetail
    from penstock.tracing.trace import Trace

if TYPE_CHECKING:
    from penstock import checkpoint, formats, records, saved_model, training
    from penstock.builder import (
        Graph,
        Operation,
        Tensor,
        TensorArray,
        Variable,
        case,
        colocate_with,
        cond,
        constant,
        control_dependencies,
        default_graph,
        device,
        global_variables_initializer,
        group,
        identity,
        import_graph_def,
        name_scope,
        no_op,
        ops,
        placeholder,
        receive,
        reset_default_graph,
        send,
        switch_case,
        tuple_,
        while_loop,
        with_dependencies,
    )
    from penstock.checks.check_graph import check
    from penstock.comparison.compare import compare, compare_tiers
    from penstock.comparison.dump_all import dump_all
    from penstock.comparison.find_nan import find_nan
    from penstock.debugger.debug import debug
    from penstock.explanations.explain_node import explain
    from penstock.kernels.api.shape_context import ShapeContext
    from penstock.kernels.api.shape_rules import shape_rule
    from penstock.memory_use.measure_memory import measure_memory
    from penstock.memory_use.memory_use import MemoryUse
    from penstock.replays.record import record
    from penstock.replays.recording import Recording
    from penstock.replays.replay import replay
    from penstock.replays.shrink import Shrunk, shrink
    from penstock.reporting.make_report import report
    from penstock.saved_model import load_model
    from penstock.session.snapshot import Snapshot
    from penstock.session.stall_watch import watch_stalls
    from penstock.session.traced import TracedRun, trace
    from penstock.training import MonitoredSession

__version__ = "0.1.0"

__all__ = [
    "CallFrame",
    "CancellationManager",
    "Config",
    "DType",
    "Device",
    "EagerCall",
    "Executor",
    "ExecutorArgs",
    "ExecutorBarrier",
    "FrameAndIter",
    "Graph",
    "GraphOptions",
    "GraphProperty",
    "ImportOptions",
    "ImportResults",
    "KernelTraits",
    "Limits",
    "LocalExecutorParams",
    "MemoryUse",
    "MonitoredSession",
    "NodeOutputContext",
    "Operation",
    "OptimizerOptions",
    "Recording",
    "Rendezvous",
    "RendezvousKey",
    "ResourceManager",
    "RewriterConfig",
    "Run",
    "RunMetadata",
    "RunOptions",
    "Session",
    "ShapeContext",
    "Shrunk",
    "Snapshot",
    "StepState",
    "Tensor",
    "TensorArray",
    "TensorShape",
    "Tier",
    "Trace",
    "TraceDetail",
    "TraceLevel",
    "TracedRun",
    "Variable",
    "async_kernel",
    "case",
    "check",
    "checkpoint",
    "colocate_with",
    "compare",
    "compare_tiers",
    "cond",
    "constant",
    "context_kernel",
    "control_dependencies",
    "debug",
    "default_graph",
    "default_session",
    "device",
    "dtypes",
    "dump_all",
    "errors",
    "explain",
    "find_nan",
    "formats",
    "global_variables_initializer",
    "graph_to_def",
    "group",
    "identity",
    "import_graph_def",
    "kernel",
    "load_graph_def",
    "load_model",
    "measure_memory",
    "name_scope",
    "new_local_executor",
    "no_op",
    "ops",
    "placeholder",
    "receive",
    "record",
    "records",
    "register_device_type",
    "register_eager_caller",
    "register_op",
    "register_pass",
    "register_py_func",
    "replay",
    "report",
    "reset_default_graph",
    "saved_model",
    "send",
    "shape_rule",
    "shrink",
    "switch_case",
    "trace",
    "training",
    "tuple_",
    "unregister_pass",
    "watch_stalls",
    "while_loop",
    "with_dependencies",
]

#: Packages that are loaded when they are first used: who only runs graphs need not wait for them.
_PACKAGES = frozenset({"checkpoint", "formats", "records", "saved_model", "training"})
#: Names and the modules that they come from, which are loaded in the same way.
_MODULES = {
    "check": "penstock.checks.check_graph",
    "compare": "penstock.comparison.compare",
    "compare_tiers": "penstock.comparison.compare",
    "debug": "penstock.debugger.debug",
    "dump_all": "penstock.comparison.dump_all",
    "explain": "penstock.explanations.explain_node",
    "find_nan": "penstock.comparison.find_nan",
    "measure_memory": "penstock.memory_use.measure_memory",
    "MemoryUse": "penstock.memory_use.memory_use",
    "watch_stalls": "penstock.session.stall_watch",
    "MonitoredSession": "penstock.training.monitored_session",
    "Recording": "penstock.replays.recording",
    "ShapeContext": "penstock.kernels.api.shape_context",
    "Shrunk": "penstock.replays.shrink",
    "Snapshot": "penstock.session.snapshot",
    "load_model": "penstock.saved_model.loaded_model",
    "TracedRun": "penstock.session.traced",
    "record": "penstock.replays.record",
    "replay": "penstock.replays.replay",
    "shape_rule": "penstock.kernels.api.shape_rules",
    "shrink": "penstock.replays.shrink",
    "report": "penstock.reporting.make_report",
    "trace": "penstock.session.traced",
}
#: All other names come from ``penstock.builder``.
_FROM_BUILDER = frozenset(__all__) - frozenset(globals()) - _PACKAGES - frozenset(_MODULES)


if not TYPE_CHECKING:  # for mypy, what is not there is not there

    def __getattr__(name: str) -> object:
        if name in _PACKAGES:
            with importing:
                return importlib.import_module(f"penstock.{name}")
        if name not in _FROM_BUILDER and name not in _MODULES:
            raise AttributeError(f"module 'penstock' has no attribute '{name}'{_hint(name)}")
        with importing:
            module = importlib.import_module(_MODULES.get(name, "penstock.builder"))
        globals()[name] = value = getattr(module, name)
        return value


def _hint(name: str) -> str:
    """What to write instead, if somebody might believe that Penstock has ``name``."""
    if name.startswith("_"):
        return ""
    with importing:
        hints = importlib.import_module("penstock.builder.hints")
    hint: str = hints.hint_for(name, __all__)
    return hint


def __dir__() -> list[str]:
    return sorted(__all__)
