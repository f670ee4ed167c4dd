"""Kernels of TF1's control-flow ops.

In:   a value (or a reference), and for Switch a predicate.
Out:  the same value, or ``DEAD`` on the side that is not taken.
Not:  moves nothing between frames and iterations; the executor's propagator does that, and
      runs LoopCond and ControlTrigger without asking their kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.core.values import DEAD, Ref, Value
from penstock.errors import AbortedError, InternalError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.forwarding import forward
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.api.traits import FORWARDS


@kernel("Switch", "RefSwitch", cost=Cost.CHEAP)
def make_switch(_attrs: Attrs) -> Kernel:
    """Put the value on output 1 if the predicate is true, on output 0 if it is false."""

    def switch(data: Value, pred: Any) -> tuple[Value, Value]:
        if type(pred) is np.ndarray and pred.ndim:
            raise InvalidArgumentError(
                f"The second input must be a scalar, but it has shape {list(pred.shape)}"
            )
        return (DEAD, data) if pred else (data, DEAD)

    return switch


@kernel("_SwitchN", cost=Cost.CHEAP)
def make_switch_n(attrs: Attrs) -> Kernel:
    """Put the value on the output with the index; out of range means the last one."""
    count = attrs.int("num_outs")

    def switch_n(data: Value, index: Any) -> tuple[Value, ...]:
        outputs: list[Value] = [DEAD] * count
        chosen = int(index)
        outputs[chosen if 0 <= chosen < count else count - 1] = data
        return tuple(outputs)

    return switch_n


@kernel("RefSelect", cost=Cost.CHEAP)
def make_ref_select(attrs: Attrs) -> Kernel:
    """Hand on the reference with the index."""
    count = attrs.int("N")

    def ref_select(index: Any, *refs: Ref) -> Ref:
        if np.ndim(index):
            raise InvalidArgumentError(
                f"Index must be a scalar, but it has shape {list(np.shape(index))}"
            )
        if not 0 <= int(index) < count:
            raise InvalidArgumentError(f"Index must be in the range [0, {count}) but got {index}")
        return refs[int(index)]

    return ref_select


@kernel(
    "Enter",
    "RefEnter",
    "Exit",
    "RefExit",
    "NextIteration",
    "RefNextIteration",
    "LoopCond",
    "RefIdentity",
    cost=Cost.CHEAP,
    traits=FORWARDS,
)
def make_forward(_attrs: Attrs) -> Kernel:
    """Hand the input on."""
    return forward


@kernel("Merge", "RefMerge", cost=Cost.CHEAP)
def make_merge(attrs: Attrs) -> Kernel:
    """Hand on the one live input and its index; where nothing came stands None."""
    indices = tuple(map(np.int32, range(len(attrs.input_types))))

    def merge(*inputs: Value | None) -> tuple[Value, Value]:
        for value, index in zip(inputs, indices, strict=True):
            if value is not None:
                return value, index
        raise InternalError("a Merge ran without a live input")

    return merge


@kernel("NoOp", "ControlTrigger", cost=Cost.CHEAP)
def make_nothing(_attrs: Attrs) -> Kernel:
    """Do nothing, when all that it waits for is done."""
    return _nothing


def _nothing() -> None:
    return None


@kernel("Abort", cost=Cost.CHEAP)
def make_abort(attrs: Attrs) -> Kernel:
    """Fail the step.  TensorFlow ends the process here; a library must not."""
    message = attrs.str("error_msg") or "the Abort op was run"

    def abort() -> None:
        raise AbortedError(message)

    return abort
