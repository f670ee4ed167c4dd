"""Programs from nodes, for inputs of some types and shapes.

In:   nodes; the types and shapes of what they read.
Out:  what is done with these, and what comes out; UnsupportedError where there is no such program.
Not:  knows no registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.kernels.native import written_loop
from penstock.kernels.native.emitter import Emitter
from penstock.kernels.native.parts import NUMBERS, Block, Known, Traced, UnsupportedError
from penstock.kernels.native.random_rules import STREAM
from penstock.kernels.native.traced_nodes import TracedNodes

assert written_loop  # its import has made the rule of loops known

#: The type and the shape of an array.
Spec: TypeAlias = tuple[np.dtype[Any], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Program:
    """A program, written."""

    inputs: tuple[Traced, ...]
    constants: Mapping[Traced, Array]
    block: Block
    results: tuple[Traced, ...]


def program_of(nodes: TracedNodes, specs: Sequence[Spec], streams: Sequence[str] = ()) -> Program:
    """The program for inputs of such types and shapes; raises UnsupportedError.

    After these it gets, and after its results it gives, where the random streams of some nodes are.
    """
    emitter = Emitter()
    if not NUMBERS.issuperset(dtype for dtype, _ in specs):
        raise UnsupportedError
    inputs = [Traced(*spec) for spec in specs]
    begins = {name: Traced(*STREAM) for name in streams}
    emitter.states.update(begins)
    results = nodes.write(emitter, inputs)
    if not all(isinstance(result, Known | Traced) for result in results):
        raise UnsupportedError
    given = map(emitter.traced, [*results, *(emitter.states[name] for name in streams)])
    return Program((*inputs, *begins.values()), emitter.constants, emitter.block, tuple(given))
