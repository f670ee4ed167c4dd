"""Optimisers: a step of training for a variable and its slots.

In:   references or handles of a variable and its slots, gradients, rates; for sparse
      gradients the numbers of the rows that they belong to.
Out:  the reference, or nothing; variable and slots have new values.
Not:  knows no formula (training_formulas, training_in_place), computes no gradient.

A value is replaced and never written into, so whoever has read it keeps what it has read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.catalogue.op_def import OpDef
from penstock.catalogue.registry import find_op
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Ref, Value, freeze
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Kernel, context_kernel, kernel
from penstock.kernels.api.types import COMPLEX, FLOATS
from penstock.kernels.parallel.tiles import updated, updated_at_once
from penstock.kernels.state.variables import lookup_typed
from penstock.kernels.training.training_formulas import FORMULAS, Slots
from penstock.kernels.training.training_in_c import fill_in_c
from penstock.kernels.training.training_in_place import FILLS, Fill, News
from penstock.kernels.values.arrays import shape_text

#: New values of the slots from old ones and the op's other inputs.
_Update: TypeAlias = Callable[[Slots, Sequence[Value]], Slots]

_PREFIXES: Final = ("ResourceSparseApply", "ResourceApply", "SparseApply", "Apply")
_REAL: Final = frozenset({dtypes.float32, dtypes.float64})
#: Types by formula, where they are not all floats.
_TYPES: Final[dict[str, frozenset[DType]]] = {
    **dict.fromkeys(("ProximalAdagrad", "ProximalGradientDescent", "AdagradDA"), _REAL),
    "AdaMax": _REAL | {dtypes.float16},
    **dict.fromkeys(
        ("Adadelta", "Adagrad", "AdagradV2", "Adam", "CenteredRMSProp", "GradientDescent",
         "KerasMomentum", "Momentum", "RMSProp"),
        FLOATS | COMPLEX,
    ),
}  # fmt: skip
_INDICES: Final = frozenset({dtypes.int32, dtypes.int64})


@dataclass(frozen=True, slots=True)
class _InputPositions:
    """Where an op's inputs stand, behind its slots."""

    slot_names: tuple[str, ...]
    names: tuple[str, ...]
    grad: int
    #: None if the gradient is for all rows.
    indices: int | None
    scalars: tuple[int, ...]

    @classmethod
    def of(cls, op: OpDef) -> _InputPositions:
        """Those of an op."""
        slots = [arg.name for arg in op.inputs if arg.is_ref or arg.dtype is dtypes.resource]
        names = [arg.name for arg in op.inputs[len(slots) :]]
        grad = names.index("delta" if "delta" in names else "grad")
        indices = names.index("indices") if "indices" in names else None
        scalars = [place for place in range(len(names)) if place not in (grad, indices)]
        return cls(tuple(slots), tuple(names), grad, indices, tuple(scalars))


def make_apply(attrs: Attrs) -> Kernel:
    """A step for the variable behind a reference; with ``use_locking`` nobody comes between."""
    update, count = _make_update(attrs), len(_InputPositions.of(attrs.op).slot_names)
    is_locking = attrs.bool("use_locking")

    def apply(*inputs: Value) -> Ref:
        refs = inputs[:count]
        _replace(refs, refs if is_locking else refs[:1], update, inputs[count:])
        first: Ref = refs[0]
        return first

    return apply


def make_resource_apply(attrs: Attrs) -> Kernel:
    """A step for the variable behind a handle; with ``use_locking`` nobody comes between."""
    update, count = _make_update(attrs), len(_InputPositions.of(attrs.op).slot_names)
    dtype, is_locking = attrs.dtype("T"), attrs.bool("use_locking")

    def apply(context: OpKernelContext, *inputs: Value) -> None:
        refs = [lookup_typed(context, handle, dtype) for handle in inputs[:count]]
        _replace(refs, refs if is_locking else refs[:1], update, inputs[count:])

    return apply


def _replace(
    refs: Sequence[Ref], held: Sequence[Ref], update: _Update, rest: Sequence[Value]
) -> None:
    """Give variable and slots new values while the locks of ``held`` are held."""
    if len(held) > 1:  # in one order everywhere, so none waits forever
        with ExitStack() as locks:
            for ref in sorted(held, key=id):
                locks.enter_context(ref.lock)
            _replace(refs, held[:1], update, rest)
        return
    with held[0].lock:
        news = update(tuple([ref.value for ref in refs]), rest)
        for ref, value in zip(refs, news, strict=True):
            ref.value = freeze(value)


def _make_update(attrs: Attrs) -> _Update:
    inputs = _InputPositions.of(attrs.op)
    in_c = fill_in_c(_formula_name(attrs.op.name), attrs)
    fill = in_c or _make_fill(attrs)
    new_values = updated if in_c is None else updated_at_once  # the library has threads itself
    if inputs.indices is not None:
        return _by_rows(inputs, fill)

    def update(slots: Slots, rest: Sequence[Value]) -> Slots:
        _check(inputs, slots, rest)
        if rest[inputs.grad].shape != slots[0].shape:
            raise InvalidArgumentError(
                f"var and {inputs.names[inputs.grad]} do not have the same shape"
                f"{shape_text(slots[0].shape)} {shape_text(rest[inputs.grad].shape)}"
            )
        return new_values(fill, slots, rest)

    return update


def _make_fill(attrs: Attrs) -> Fill:
    """The formula of an op by numpy, written into given arrays."""
    name, number = _formula_name(attrs.op.name), attrs.dtype("T").numpy.type
    if name in FILLS:
        return FILLS[name](attrs, number)
    step = FORMULAS[name](attrs, number)

    def fill(news: News, *inputs: Value) -> None:
        for new, value in zip(news, step(*inputs), strict=True):
            new[...] = value

    return fill


def _formula_name(op_name: str) -> str:
    return next(op_name.removeprefix(p) for p in _PREFIXES if op_name.startswith(p))


def _check(inputs: _InputPositions, slots: Slots, rest: Sequence[Value]) -> None:
    """Raise unless all slots are of one shape and all rates are scalars."""
    shape = slots[0].shape
    for place, slot in enumerate(slots):
        if slot.shape != shape:
            name = inputs.slot_names[place]
            raise InvalidArgumentError(
                f"var and {name} do not have the same shape"
                f"{shape_text(shape)} {shape_text(slot.shape)}"
            )
    for place in inputs.scalars:
        if rest[place].ndim:
            raise InvalidArgumentError(
                f"{inputs.names[place]} is not a scalar: {shape_text(rest[place].shape)}"
            )


def _by_rows(inputs: _InputPositions, fill: Fill) -> _Update:
    """The step for some rows only; a row that comes several times makes several steps."""
    assert inputs.indices is not None
    at_grad, at_indices = inputs.grad, inputs.indices

    def update(slots: Slots, rest: Sequence[Value]) -> Slots:
        _check(inputs, slots, rest)
        grads, rows = rest[at_grad], rest[at_indices]
        _check_rows(slots[0], grads, rows)
        if not rows.size:
            return slots
        others = [value for place, value in enumerate(rest) if place != at_indices]
        grad_place = at_grad - (at_indices < at_grad)
        changed = tuple(np.array(slot) for slot in slots)
        for some in _rounds(rows):
            others[grad_place] = grads[some]
            chosen = rows[some]
            olds = [slot[chosen] for slot in changed]
            news = [np.empty(old.shape, old.dtype) for old in olds]
            fill(news, *olds, *others)
            for slot, part in zip(changed, news, strict=True):
                slot[chosen] = part
        return changed

    return update


def _check_rows(var: Array, grads: Array, rows: Array) -> None:
    if var.ndim == 0:
        raise InvalidArgumentError("var must be at least 1 dimensional")
    if rows.ndim != 1:
        raise InvalidArgumentError(
            f"indices must be one-dimensional, got shape {shape_text(rows.shape)}"
        )
    if grads.shape[:1] != rows.shape:
        raise InvalidArgumentError(
            "grad must be the same size as indices in the first dimension: "
            f"{shape_text(grads.shape)} and {shape_text(rows.shape)}"
        )
    if grads.shape[1:] != var.shape[1:]:
        pairs = zip(var.shape[1:], grads.shape[1:], strict=False)
        axis = next((axis for axis, (a, b) in enumerate(pairs, 1) if a != b), 0)
        raise InvalidArgumentError(
            f"var and grad must match in dimension {axis}: "
            f"{shape_text(var.shape)} and {shape_text(grads.shape)}"
        )
    is_bad = (rows < 0) | (rows >= len(var))
    if is_bad.any():
        place = int(is_bad.argmax())
        raise InvalidArgumentError(
            f"Index {rows[place]} at offset {place} in indices is out of range [0, {len(var)})"
        )


def _rounds(rows: Array) -> Iterator[Any]:
    """Places in ``rows``, in groups without a row that comes twice, in order of coming."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    if is_first.all():
        yield slice(None)
        return
    places = np.arange(len(rows))
    turn = places - np.maximum.accumulate(np.where(is_first, places, 0))
    for number in range(int(turn.max()) + 1):
        yield order[turn == number]


def _register(name: str) -> None:
    """Register the ops of a formula, as many as there are."""
    for prefix in _PREFIXES:
        op = find_op(prefix + name)
        if op is None:
            continue
        types = {"T": _TYPES.get(name, FLOATS)}
        if "Sparse" in prefix:
            types["Tindices"] = _INDICES
            if name.endswith("RMSProp"):
                types["T"] -= {dtypes.bfloat16}
        if prefix.startswith("Resource"):
            context_kernel(op.name, types=types)(make_resource_apply)
        else:
            kernel(op.name, types=types)(make_apply)


for _name in (*FILLS, *FORMULAS):
    _register(_name)
