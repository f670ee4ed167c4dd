"""Ops that call Python functions which this process has registered.

In:   arrays, and the token of a function.
Out:  what the function returns, with exactly the declared types.
Not:  finds no code in a graph; knows no sessions.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from penstock import errors
from penstock.core.denormals import in_own_setting
from penstock.core.dtypes import DType
from penstock.core.values import Value
from penstock.errors import InvalidArgumentError, OpError
from penstock.exceptions import shown_cause
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Kernel, context_kernel, kernel
from penstock.kernels.control_flow.py_func_results import converted_results, exact_results
from penstock.state.py_funcs import EagerCall, py_func_or_none

#: What exceptions of a function become; all others are UNKNOWN.
_CODES: Final[tuple[tuple[type[Exception], type[OpError]], ...]] = (
    (StopIteration, errors.OutOfRangeError),
    (MemoryError, errors.ResourceExhaustedError),
    (NotImplementedError, errors.UnimplementedError),
    (ValueError, InvalidArgumentError),
    (TypeError, InvalidArgumentError),
)


@kernel("PyFunc", "PyFuncStateless")
def make_py_func(attrs: Attrs) -> Kernel:
    """What a function of arrays returns; its types must be the declared ones."""
    token = attrs.str("token")
    types: tuple[DType, ...] = attrs.list("Tout")
    find = attrs.host.find_function

    def call(*inputs: Value) -> tuple[Value, ...]:
        result = _call(find(token), _shown(inputs))
        return exact_results(result, types, token)

    return call


@context_kernel("EagerPyFunc")
def make_eager_py_func(attrs: Attrs) -> Kernel:
    """What a function returns, converted to the declared types; it gets arrays, not tensors.

    A host that knows gradients makes the call instead, if one is registered.
    """
    token = attrs.str("token")
    types: tuple[DType, ...] = attrs.list("Tout")
    names = tuple(dtype.name for dtype in types)
    host = attrs.host

    def call(context: OpKernelContext, *inputs: Value) -> tuple[Value, ...]:
        arrays, caller = _shown(inputs), host.find_eager_caller()
        if caller is None:
            result = _call(host.find_function(token), arrays)
        else:
            step = context.step
            made = EagerCall(
                token, py_func_or_none(token), tuple(arrays), names, step.step_id, step.device
            )
            result = _call(caller, (made,))
        return converted_results(result, types, token)

    return call


def _call(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    try:
        return in_own_setting(function, *args)
    except KeyboardInterrupt:
        raise  # Ctrl-C is nothing that the function says
    except BaseException as cause:  # noqa: BLE001  (whatever it raises ends the run)
        code = next((code for kind, code in _CODES if isinstance(cause, kind)), errors.UnknownError)
        first, *rest = _said(cause)
        raise code(first, details=rest) from shown_cause(cause)


def _said(cause: BaseException) -> list[str]:
    """Class and text of what a function raised, and the lines that say where."""
    name = type(cause).__name__
    try:
        first = f"{name}: {cause}"
    except Exception:  # noqa: BLE001  (an exception may fail to say what it is)
        return [f"{name}(unknown error message)"]
    own = cause.__traceback__.tb_next if cause.__traceback__ is not None else None
    lines = "".join(traceback.format_exception(type(cause), cause, own))
    return [first, *lines.rstrip().split("\n")]


def _shown(values: Sequence[Value]) -> list[Value]:
    """Views into which the function cannot write: the arrays may have other readers."""
    return [_read_only(value) if isinstance(value, np.ndarray) else value for value in values]


def _read_only(array: Any) -> Value:
    view = array.view()
    view.flags.writeable = False
    return view
