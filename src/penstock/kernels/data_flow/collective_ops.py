"""Collective operations: one value from each device of a group, for each device of the group.

In:   values, and the keys of a group and of an exchange in it.
Out:  their sum or the like, all of them in order, or the value of one of them.
Not:  knows no way to other devices; ``state/collectives.py`` does, and what members do.

``communication_hint`` says nothing here: there is one way.  Whoever runs a step on several machines
puts an executor of its own into the step's container, under ``COLLECTIVES``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.errors import InternalError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext, Waiting
from penstock.kernels.api.registry import Kernel, async_kernel, kernel
from penstock.kernels.values.arrays import as_array, number_in, shape_text
from penstock.state.collective_groups import Collective, CollectiveKind
from penstock.state.collectives import CollectiveExecutor, Exchange, Member

#: Name and kind of the step's executor in its container.
COLLECTIVES: Final = ("collectives", "CollectiveExecutor")
_MERGES: Final[Mapping[str, np.ufunc]] = {
    "Add": np.add,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
}


class _Taking:
    """What a node takes part in, as far as its attributes say."""

    def __init__(self, attrs: Attrs, kind: CollectiveKind) -> None:
        self.kind: Final = kind
        self.dtype: Final[DType] = attrs.dtype("T")
        self.timeout: Final = attrs.float("timeout_seconds")
        #: Group, size and instance; None if they are inputs.
        self._numbers: Final = (
            tuple(attrs.int(f"{name}") for name in ("group_size", "group_key", "instance_key"))
            if "group_size" in attrs.values
            else None
        )

    def numbers(self, given: tuple[Value, ...]) -> tuple[int, int, int]:
        """Size, key of the group and key of the instance; of the inputs, the first three."""
        if self._numbers is not None:
            size, group, instance = self._numbers
        else:
            names = ("group_size", "group_key", "instance_key")
            pairs = zip(names, given, strict=False)
            size, group, instance = (_scalar(name, value) for name, value in pairs)
        if size < 1:
            raise InvalidArgumentError(f"group_size must be positive integer but got {size}")
        return size, group, instance

    def run(
        self,
        context: OpKernelContext,
        done: Done,
        numbers: tuple[int, int, int],
        shape: tuple[int, ...],
        exchange: Callable[[Member], Exchange],
        *,
        is_source: bool = False,
    ) -> None:
        """Take part, and hand over what comes of it."""
        size, group, instance = numbers
        member = Collective(
            group_key=group,
            group_size=size,
            instance_key=instance,
            kind=self.kind,
            dtype=self.dtype,
            shape=shape,
            device=context.step.device,
            is_source=is_source,
        )
        context.waits_for = Waiting(
            lambda: f"the other members of group {group}, which are {size}, in instance {instance}"
        )
        executor: CollectiveExecutor = context.step_container.lookup_or_create(
            *COLLECTIVES, CollectiveExecutor
        )
        executor.run(
            member,
            exchange,
            lambda result: done(result if isinstance(result, Exception) else as_value(result)),
            cancellation=context.cancellation_manager,
            timeout_seconds=self.timeout,
            runner=context.step.runner,
        )


def _scalar(name: str, value: Value) -> int:
    if shape_of(value):
        raise InvalidArgumentError(
            f"Unexpected dimensions on input {name}, got {shape_text(shape_of(value))}"
        )
    return number_in(value)


def _finish(final: str, dtype: DType, size: int) -> Callable[[Array], Array]:
    """What is done with the merged values at last."""
    if final == "Id":
        return lambda merged: merged
    divisor = dtype.numpy.type(size)
    if dtype.is_integer:  # towards zero, as in C
        return lambda merged: _quotient(merged, size)
    return lambda merged: merged / divisor


def _quotient(merged: Array, size: int) -> Array:
    """Whole numbers divided, and cut off towards zero."""
    found = np.abs(merged) // size
    return np.where(merged < 0, -found, found).astype(merged.dtype)


@async_kernel("CollectiveReduce", "CollectiveReduceV2")
def make_collective_reduce(attrs: Attrs) -> Kernel:
    """All devices' values merged element by element, and divided by their number on request."""
    taking = _Taking(attrs, CollectiveKind.REDUCE)
    merge, final = _MERGES[attrs.str("merge_op")], attrs.str("final_op")

    def reduce(context: OpKernelContext, done: Done, value: Value, *given: Value) -> None:
        numbers = taking.numbers(given)
        array, finish = as_array(value), _finish(final, taking.dtype, numbers[0])
        exchange = partial(Member.reduce, value=array, merge=merge, finish=finish)
        taking.run(context, done, numbers, array.shape, exchange)

    return reduce


@async_kernel("CollectiveGather", "CollectiveGatherV2")
def make_collective_gather(attrs: Attrs) -> Kernel:
    """All devices' values, end to end along the first axis."""
    taking = _Taking(attrs, CollectiveKind.GATHER)

    def gather(context: OpKernelContext, done: Done, value: Value, *given: Value) -> None:
        numbers, array = taking.numbers(given), _with_rows(value)
        shape = (array.shape[0] * numbers[0], *array.shape[1:])
        taking.run(context, done, numbers, shape, partial(Member.gather, value=array))

    return gather


@async_kernel("CollectiveAllToAllV2")
def make_collective_all_to_all(attrs: Attrs) -> Kernel:
    """Row i of the result is this device's row of what device i has."""
    taking = _Taking(attrs, CollectiveKind.ALL_TO_ALL)

    def exchange(context: OpKernelContext, done: Done, value: Value, *given: Value) -> None:
        numbers, array = taking.numbers(given), _with_rows(value)
        if len(array) != numbers[0]:
            raise InvalidArgumentError(
                f"input to all-to-all first dimension size ({len(array)}) must be the same as the "
                f"group size ({numbers[0]})"
            )
        taking.run(context, done, numbers, array.shape, partial(Member.exchange, value=array))

    return exchange


def _with_rows(value: Value) -> Array:
    array = as_array(value)
    if not array.ndim:
        raise InvalidArgumentError("Shape must be at least rank 1 but is rank 0")
    return array


@async_kernel("CollectiveBcastSend", "CollectiveBcastSendV2")
def make_collective_bcast_send(attrs: Attrs) -> Kernel:
    """The input, which all other devices of the group get as well."""
    taking = _Taking(attrs, CollectiveKind.BROADCAST)
    declared = attrs.shape("shape") if "shape" in attrs.values else None

    def send(context: OpKernelContext, done: Done, value: Value, *given: Value) -> None:
        numbers, shape = taking.numbers(given), shape_of(value)
        if declared is not None and declared.dims != shape:
            raise InternalError(
                f"Declared shape of op {context.node_name}: Broadcast({numbers[2]}) does not match "
                "shape of input"
            )
        exchange = partial(Member.broadcast, value=value)
        taking.run(context, done, numbers, shape, exchange, is_source=True)

    return send


@async_kernel("CollectiveBcastRecv", "CollectiveBcastRecvV2")
def make_collective_bcast_recv(attrs: Attrs) -> Kernel:
    """The value that another device of the group sends, of the given shape."""
    taking = _Taking(attrs, CollectiveKind.BROADCAST)
    declared = attrs.shape("shape").as_tuple() if "shape" in attrs.values else None

    def receive(context: OpKernelContext, done: Done, *given: Value) -> None:
        shape = _sizes(given[3]) if declared is None else declared
        exchange: Any = partial(Member.broadcast, value=None)
        taking.run(context, done, taking.numbers(given), shape, exchange)

    return receive


def _sizes(value: Value) -> tuple[int, ...]:
    array = as_array(value)
    if array.ndim != 1:
        raise InvalidArgumentError(f"Input shape must be a vector, got {shape_text(array.shape)}")
    return tuple(array.tolist())


@kernel("CollectiveAssignGroupV2")
def make_collective_assign_group(_attrs: Attrs) -> Kernel:
    """The size and the key of the group, a row of a matrix, in which a device's number stands."""

    def assign(groups: Value, index: Value, base_key: Value) -> tuple[Value, Value]:
        table = as_array(groups)
        if table.ndim != 2:
            raise InvalidArgumentError(
                "group_assignment must be a 2-d Tensor, but received tensor of shape: "
                f"{shape_text(table.shape)}"
            )
        device, key = _single("device_index", index), _single("base_key", base_key)
        if not ((table >= 0) & (table < table.size)).all():
            raise InvalidArgumentError(
                f"Not all items in group_assignment {table.tolist()} is within [0, number of "
                "devices)"
            )
        rows = np.flatnonzero((table == device).any(axis=1))
        if not rows.size:
            raise InvalidArgumentError(
                f"device_index {device} is not found in group_assignment {table.tolist()}"
            )
        return np.int32(table.shape[1]), np.int32(key + rows[0])

    return assign


def _single(name: str, value: Value) -> int:
    if shape_of(value):
        raise InvalidArgumentError(
            f"{name} must be a scalar, but received tensor of shape: {shape_text(shape_of(value))}"
        )
    return number_in(value)
