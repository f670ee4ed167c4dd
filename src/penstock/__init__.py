"""Penstock runs TensorFlow graphs without TensorFlow.

The journey of a graph, and where each stage lives:

| what | made by |
| --- | --- |
| bytes → GraphDef | ``defs`` |
| GraphDef → Graph | ``graph`` |
| Graph → Placed → Pruned → Partition | ``passes`` |
| Partition → Executor → values | ``runtime`` |
| values → results | ``session`` |
"""

from penstock import errors
from penstock.catalogue.registry import register_op
from penstock.config import Config, RunMetadata, RunOptions, TraceLevel
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.defs.codec import load_graph_def
from penstock.graph.graph import Graph
from penstock.kernels.registry import async_kernel, context_kernel, kernel
from penstock.session import Run, Session
from penstock.state.rendezvous import Rendezvous

__version__ = "0.1.0"

__all__ = [
    "Config",
    "DType",
    "Graph",
    "Rendezvous",
    "Run",
    "RunMetadata",
    "RunOptions",
    "Session",
    "TensorShape",
    "TraceLevel",
    "async_kernel",
    "context_kernel",
    "dtypes",
    "errors",
    "kernel",
    "load_graph_def",
    "register_op",
]
