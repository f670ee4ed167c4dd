"""Run one plain kernel on plain inputs: no graph, no session."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.catalogue.op_def import OpDef
from penstock.catalogue.registry import get_op
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Value, as_value, dtype_of
from penstock.defs.attrs import TensorAttr
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.host import OPEN
from penstock.kernels.api.registry import Calling, Kernel, get_kernel


def run_op(op_name: str, *inputs: Any, **attrs: Any) -> Any:
    """Call the kernel of ``op_name``; type and number attributes follow from the inputs.

    A list input is given as a Python list of arrays.  Attributes are Python values: text,
    numbers, DType, TensorShape, tuples for lists.
    """
    compute, flat = make_op(op_name, *inputs, **attrs)
    with np.errstate(all="ignore"):
        return compute(*flat)


def make_op(op_name: str, *inputs: Any, **attrs: Any) -> tuple[Kernel, list[Value]]:
    """The kernel that ``run_op`` would call, and the inputs that it would give it."""
    facts, flat = node_of(op_name, inputs, attrs)
    found = get_kernel(op_name, "CPU", facts.values)
    assert found.calling is Calling.PLAIN, f"{op_name} needs a session"
    return found.made(facts), flat


def both(op_name: str, *inputs: Any, **attrs: Any) -> tuple[Any, Any]:
    """What numpy's kernel gives, and what that of a session gives."""
    facts, flat = node_of(op_name, inputs, attrs)
    found = get_kernel(op_name, "CPU", facts.values)
    plain, fast = (
        found.made(dataclasses.replace(facts, accelerate=accelerate))
        for accelerate in (False, True)
    )
    return plain(*flat), fast(*flat)


def node_of(
    op_name: str, inputs: Sequence[Any], attrs: Mapping[str, Any]
) -> tuple[Attrs, list[Value]]:
    """What the maker of a kernel is told, and the inputs as values."""
    op = get_op(op_name)
    values = {name: attr.default for name, attr in op.attrs.items() if attr.default is not None}
    flat = _infer(op, inputs, values)
    values |= {name: _attr(value) for name, value in attrs.items()}
    types = op.input_types(values), op.output_types(values)
    facts = Attrs(op, values, *types, "test_node", host=OPEN)
    return facts, flat


def _infer(op: OpDef, inputs: Sequence[Any], values: dict[str, Any]) -> list[Value]:
    flat: list[Value] = []
    for arg, given in zip(op.inputs, inputs, strict=True):
        tensors = [_value(item) for item in given] if arg.is_list else [_value(given)]
        if arg.number_attr:
            values[arg.number_attr] = len(tensors)
        if arg.type_attr and tensors:
            values[arg.type_attr] = dtype_of(tensors[0])
        if arg.list_attr:
            values[arg.list_attr] = tuple(map(dtype_of, tensors))
        flat += tensors
    return flat


def _value(given: Any) -> Value:
    if isinstance(given, (bytes, np.generic, np.ndarray)):
        return as_value(given)
    return given


def _attr(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return tuple(map(_attr, value))
    if isinstance(value, np.ndarray):
        return TensorAttr(value=value)
    assert isinstance(value, (int, float, bytes, DType, TensorShape, tuple, TensorAttr))
    return value
