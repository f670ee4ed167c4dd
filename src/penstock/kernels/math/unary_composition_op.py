"""Several functions of one number after another, as TensorFlow's optimiser joins them.

In:   an array, and the names of the ops.
Out:  what the last of them makes of it.
Not:  defines no function itself; asks for their own kernels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from penstock.catalogue.registry import get_op
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, get_kernel, kernel
from penstock.kernels.api.types import FLOATS

_OF_ALL: Final = frozenset({
    "Abs", "Ceil", "Cos", "Elu", "Exp", "Expm1", "Floor", "Inv", "Log", "Log1p", "Neg",
    "Reciprocal", "Relu", "Relu6", "Round", "Rsqrt", "Selu", "Sigmoid", "Sin", "Sqrt", "Square",
    "Tanh",
})  # fmt: skip
_OF_WIDE: Final = _OF_ALL | {
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Rint", "Sinh", "Tan",
}  # fmt: skip


@kernel("_UnaryOpsComposition", types={"T": FLOATS - {dtypes.bfloat16}})
def make_unary_composition(attrs: Attrs) -> Kernel:
    """What the functions make of the input, the first of them first."""
    names, dtype = [name.decode() for name in attrs.list("op_names")], attrs.dtype("T")
    if not names:
        raise InvalidArgumentError("Unary op composition must have at least one op")
    first, *others = [_kernel_of(name, dtype, attrs) for name in names]
    if not others:
        return first

    def unary_composition(x: Any) -> Any:
        y = first(x)
        for function in others:
            y = function(y)
        return y

    return unary_composition


def _kernel_of(name: str, dtype: DType, attrs: Attrs) -> Kernel:
    if name not in (_OF_ALL if dtype is dtypes.float16 else _OF_WIDE):
        raise InvalidArgumentError(f"Do not have a compute function registered for op: {name}")
    values = {"T": dtype}
    found = get_kernel(name, "CPU", values)
    return found.make(replace(attrs, op=get_op(name), values=values))
