"""Calls of ops as they were recorded: arguments by name, as plain Python values.

In:   an op's name; its inputs and attributes by name.
Out:  the kernel's answer, also as plain values.
Not:  needs TensorFlow.

Python numbers become int32 and float32 unless the op wants something else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.catalogue.registry import get_op
from penstock.core import dtypes
from support.ops import run_op


def L(*items: Any) -> Any:  # noqa: N802 (short, since tables are full of it)
    """An array of int64."""
    return np.array(items, np.int64)


#: A 3x2 matrix with three elements out of order; one with two in order; one with none.
I = L([0, 1], [2, 0], [0, 0])  # noqa: E741
V = np.array([1, 2, 3], np.float32)
S = L(3, 2)
I2 = L([0, 0], [1, 1])
V2 = np.array([10, 20], np.float32)
E = np.zeros((0, 2), np.int64)
EV = np.zeros(0, np.float32)


def call(op_name: str, **given: Any) -> Any:
    """Run the op."""
    op = get_op(op_name)
    inputs = []
    for arg in op.inputs:
        value = given.pop(arg.name)
        wanted = arg.dtype if arg.dtype is not None else None
        if arg.is_list:
            inputs.append([_value(item, wanted) for item in value])
        else:
            inputs.append(_value(value, wanted))
    attrs = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
    answer = run_op(op_name, *inputs, **attrs)
    counts = [attrs[arg.number_attr] for arg in op.outputs if arg.number_attr in attrs]
    if not counts:
        return answer
    parts = iter(answer)
    return [[next(parts) for _ in range(count)] for count in counts]


def _value(value: Any, wanted: dtypes.DType | None) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
    else:
        array = np.array(_bytes(value), object if wanted is dtypes.string else None)
        if array.dtype.kind in "SU":
            array = np.array(_bytes(value), object)
        defaults = {"int64": np.int32, "float64": np.float32}
        array = array.astype(defaults.get(array.dtype.name, array.dtype))
    if wanted is not None and wanted is not dtypes.string:
        array = array.astype(wanted.numpy)
    return array[()] if array.ndim == 0 else array


def _bytes(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    return [_bytes(item) for item in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """An answer as lists of Python values, floats rounded to what float32 can tell apart."""
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    return float(f"{value:.6g}") if isinstance(value, float) else value


def args(**given: Any) -> dict[str, Any]:
    """Arguments by name, as they stand in a table of recorded calls."""
    return given
