"""How many elements a kernel's result may have, guessed before it is called.

In:   an op, a node's attributes, and the values of its inputs.
Out:  a number that is seldom too low.
Not:  calls no kernel.

Whoever computes something that perhaps nobody needs asks here first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from penstock.catalogue.op_def import OpDef
from penstock.catalogue.op_traits import ResultSize
from penstock.core.values import Value, shape_of
from penstock.defs.attrs import Attr

#: An input of fewer elements does not make a result much larger.
_FEW: Final = 16


def result_elements(op: OpDef, attrs: Mapping[str, Attr], inputs: Sequence[Value]) -> int:
    """More elements than the result has, guessed from what comes in."""
    known_by = op.result_size
    if known_by is ResultSize.RANGE:
        start, limit, delta = (float(value) for value in inputs)
        return int(min(abs(limit - start) / abs(delta), 1e18)) + 1 if delta else 0
    if known_by is ResultSize.BY_VALUES:
        return math.prod(max(np.size(value), _product(value)) for value in inputs)
    if known_by is ResultSize.SQUARED:
        return max(int(np.size(value)) for value in inputs) ** 2
    shapes = [shape_of(value) for value in inputs]
    try:
        return math.prod(np.broadcast_shapes(*shapes))
    except ValueError:
        return _joint_size(op, attrs, [math.prod(shape) for shape in shapes])


def _product(value: Value) -> int:
    """How many elements a value may ask for that is a list of sizes."""
    if np.size(value) > _FEW or not isinstance(value, (np.ndarray, np.generic)):
        return 0
    if value.dtype.kind not in "iu":
        return 0
    return math.prod(1 + abs(int(item)) for item in np.ravel(value))


def _joint_size(op: OpDef, attrs: Mapping[str, Attr], sizes: Sequence[int]) -> int:
    """The product of the arguments' sizes; those of a list are added up, small ones ignored."""
    total, start = 1, 0
    for arg in op.inputs:
        stop = start + len(arg.types(attrs))
        size = sum(sizes[start:stop])
        total *= size if size > _FEW else 1
        start = stop
    return max(total, *sizes)
