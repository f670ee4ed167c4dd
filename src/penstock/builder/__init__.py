"""Build graphs by hand: the way to a graph without TensorFlow."""

from penstock.builder import ops, pickled
from penstock.builder.blocks import colocate_with, control_dependencies, device, name_scope
from penstock.builder.branches import case, cond, switch_case
from penstock.builder.graph import Graph, default_graph, reset_default_graph
from penstock.builder.groups import group, tuple_, with_dependencies
from penstock.builder.imports import import_graph_def
from penstock.builder.loops import while_loop
from penstock.builder.sources import constant, placeholder
from penstock.builder.tensor import Operation, Tensor
from penstock.builder.tensor_array import TensorArray
from penstock.builder.transfers import receive, send
from penstock.builder.variable import Variable, global_variables_initializer

__all__ = [
    "Graph",
    "Operation",
    "Tensor",
    "TensorArray",
    "Variable",
    "case",
    "colocate_with",
    "cond",
    "constant",
    "control_dependencies",
    "default_graph",
    "device",
    "global_variables_initializer",
    "group",
    "identity",
    "import_graph_def",
    "name_scope",
    "no_op",
    "ops",
    "placeholder",
    "receive",
    "reset_default_graph",
    "send",
    "switch_case",
    "tuple_",
    "while_loop",
    "with_dependencies",
]

# Its import has taught Python how to pickle graphs.
del pickled
identity = ops.identity
no_op = ops.no_op
