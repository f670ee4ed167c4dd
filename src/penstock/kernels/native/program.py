"""Programs from nodes, for inputs of some types and shapes.

In:   nodes; the types and shapes of what they read.
Out:  the text of a module, and what it gives; UnsupportedError where there is no such program.
Not:  compiles nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from penstock.kernels.native import written_loop
from penstock.kernels.native.emitter import Emitter, Known, Traced, UnsupportedError
from penstock.kernels.native.packing import Layout, packed
from penstock.kernels.native.traced_nodes import TracedNodes

assert written_loop  # its import has made the rule of loops known

#: The type and the shape of an array.
Spec: TypeAlias = tuple[np.dtype[Any], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Program:
    """A program, written."""

    text: str
    #: Whether its first result says if the others count.
    is_guarded: bool
    #: How its results are found in what it gives.
    layout: Layout


def program_of(nodes: TracedNodes, specs: Sequence[Spec]) -> Program:
    """The program for inputs of such types and shapes; raises UnsupportedError."""
    emitter = Emitter()
    inputs = [Traced(f"%arg{slot}", *spec) for slot, spec in enumerate(specs)]
    results = nodes.write(emitter, inputs)
    if not all(isinstance(result, Known | Traced) for result in results):
        raise UnsupportedError
    if isinstance(emitter.ok, Known) and not emitter.ok.value:
        raise UnsupportedError
    is_guarded = isinstance(emitter.ok, Traced)
    given, layout = packed(emitter, ([emitter.ok] if is_guarded else []) + results)
    arguments = ", ".join(f"{one.name}: {one.type}" for one in inputs)
    types = ", ".join(one.type for one in given)
    names = ", ".join(one.name for one in given)
    text = (
        f"func.func public @main({arguments}) -> ({types}) {{\n{emitter.text}\n"
        f"func.return {names} : {types}\n}}\n"
    )
    return Program(text, is_guarded, layout)
