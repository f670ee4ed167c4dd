"""Every op as a function: ``ops.mat_mul(a, b)``.

In:   tensors, variables and Python literals; attributes by keyword; ``name``.
Out:  tensors, or an operation where an op makes none.

A function for an op of the catalogue, or of the user's own, is made when first asked for;
``help(ops.mat_mul)`` shows its signature.  Any obvious spelling will do: ``conv2d``,
``conv2_d``, ``Conv2D``.  What is written out by hand (``constant``, ``cond``,
``while_loop`` …) stands here too; where an op has the same name, that one is found under
its own spelling only, such as ``ops.Case``.
"""

from __future__ import annotations

from typing import Any

from penstock.builder.branches import case, cond, switch_case
from penstock.builder.groups import group, tuple_, with_dependencies
from penstock.builder.loops import while_loop
from penstock.builder.op_function import op_function, op_functions
from penstock.builder.sources import constant, placeholder
from penstock.builder.tensor_array import TensorArray
from penstock.builder.variable import Variable, global_variables_initializer

__all__ = [
    "TensorArray",
    "Variable",
    "case",
    "cond",
    "constant",
    "global_variables_initializer",
    "group",
    "placeholder",
    "switch_case",
    "tuple_",
    "while_loop",
    "with_dependencies",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return op_function(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *op_functions()})
