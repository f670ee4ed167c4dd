"""Element-wise functions of one number, and arithmetic of two.

In:   arrays and numpy scalars of one element type, broadcast against each other.
Out:  an array (a scalar, if all inputs are) of the same type; or of booleans for IsNan.
Not:  no division (division_ops), no comparison (compare_ops), no formula of several steps
      (formula_ops), no activation function.

Where numpy has the function, it is the kernel itself.  Python's operators stand for numpy's
arithmetic functions: they do the same on arrays and take a tenth of the time on scalars.
Complex logarithms and roots have their cut along the negative real axis, as in C.
"""

from __future__ import annotations

import operator
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Value, as_value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import COMPLEX, FLOATS, NUMBERS, REALS, SIGNED
from penstock.kernels.c.functions import in_c
from penstock.kernels.narrow.precision import many_in_float32
from penstock.kernels.values.arrays import as_array
from penstock.kernels.values.complex_arithmetic import product, reciprocal, square

_UNARY: Final[dict[str, Kernel]] = {
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Log": np.log,
    "Log1p": np.log1p,
    "Sqrt": np.sqrt,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Tanh": np.tanh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
}
#: The same, and what is done to complex numbers.
_PRODUCTS: Final[dict[str, tuple[Kernel, Kernel]]] = {
    "Inv": (np.reciprocal, reciprocal),
    "Reciprocal": (np.reciprocal, reciprocal),
    "Square": (np.square, square),
}
_UNARY_OF_REALS: Final[dict[str, Kernel]] = {
    "Floor": np.floor,
    "Ceil": np.ceil,
    "IsNan": np.isnan,
    "IsInf": np.isinf,
    "IsFinite": np.isfinite,
}
_BINARY: Final[dict[str, Kernel]] = {
    "Add": operator.add,
    "AddV2": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
}
_FLOATS_AND_COMPLEX: Final = FLOATS | COMPLEX


@kernel(*_UNARY, types={"T": _FLOATS_AND_COMPLEX})
def make_unary(attrs: Attrs) -> Kernel:
    """The function of one number that the op is named after."""
    return in_c(attrs) or _UNARY[attrs.op.name]


@kernel(*_UNARY_OF_REALS, types={"T": FLOATS})
def make_unary_of_reals(attrs: Attrs) -> Kernel:
    """Rounding of a real number, or whether it is a number at all."""
    return _UNARY_OF_REALS[attrs.op.name]


@kernel("Rint", types={"T": {dtypes.float32, dtypes.float64}})
def make_rint(_: Attrs) -> Kernel:
    """The nearest integer, the even one of two."""
    return np.rint


@kernel("Round", types={"T": FLOATS | {dtypes.int32, dtypes.int64}})
def make_round(attrs: Attrs) -> Kernel:
    """The nearest integer, the even one of two; integers are their own.

    TensorFlow 2.21 answers zero for every integer, which is a mistake that we do not keep.
    """
    return operator.pos if attrs.dtype("T").is_integer else np.rint


@kernel("Neg", types={"T": SIGNED | _FLOATS_AND_COMPLEX})
def make_neg(_: Attrs) -> Kernel:
    """The negative; the smallest integer has none and stays."""
    return operator.neg


@kernel("Abs", types={"T": SIGNED | FLOATS})
def make_abs(_: Attrs) -> Kernel:
    """The absolute value; the smallest integer stays negative."""
    return operator.abs


@kernel("Inv", "Reciprocal", types={"T": _FLOATS_AND_COMPLEX})
@kernel("Square", types={"T": NUMBERS})
def make_product_of_one(attrs: Attrs) -> Kernel:
    """The number times itself, or one by the number."""
    of_reals, of_complex = _PRODUCTS[attrs.op.name]
    return of_complex if attrs.dtype("T").is_complex else of_reals


@kernel("Sign", types={"T": SIGNED | _FLOATS_AND_COMPLEX})
def make_sign(attrs: Attrs) -> Kernel:
    """-1, 0 or 1; for complex numbers z / |z|, and 0 at 0."""
    return _complex_sign if attrs.dtype("T").is_complex else np.sign


def _complex_sign(z: Value) -> Value:
    return np.where(z == 0, z, z / abs(z))[()]


@kernel(*_BINARY, types={"T": NUMBERS})
def make_binary(attrs: Attrs) -> Kernel:
    """Sum, difference or product; integers wrap around."""
    name, dtype = attrs.op.name, attrs.dtype("T")
    if name == "Mul" and dtype.is_complex:
        return product
    return many_in_float32(_BINARY[name], dtype)


@kernel("Add", types={"T": {dtypes.string}})
def make_string_add(_: Attrs) -> Kernel:
    """The strings of y put after those of x."""
    return lambda x, y: as_value(np.add(as_array(x), as_array(y)))


@kernel("Pow", types={"T": SIGNED | _FLOATS_AND_COMPLEX})
def make_pow(attrs: Attrs) -> Kernel:
    """The power x ** y; a negative y is refused for integers, by numpy itself."""
    if attrs.dtype("T").is_complex:
        return _complex_pow
    return operator.pow


def _complex_pow(x: Value, y: Value) -> Value:
    # numpy has no answer for 0 to a power that is not real; TensorFlow has 0.
    power = x**y
    return np.where((x == 0) & (y.real > 0), power.dtype.type(0), power)[()]


@kernel("Maximum", "Minimum", types={"T": REALS})
def make_extremum(attrs: Attrs) -> Kernel:
    """The larger or the smaller of two numbers; NaN if one of them is."""
    dtype = attrs.dtype("T")
    if attrs.op.name == "Maximum":
        return _extremum(dtype.numpy.type, operator.gt, many_in_float32(np.maximum, dtype))
    return _extremum(dtype.numpy.type, operator.lt, many_in_float32(np.minimum, dtype))


def _extremum(kind: type, beats: Kernel, extremum: Kernel) -> Kernel:
    def of_two(x: Value, y: Value) -> Value:
        # On scalars a comparison takes 60 ns where numpy's function takes 480.
        if type(x) is kind and type(y) is kind and x == x and y == y:
            return x if beats(x, y) else y
        return extremum(x, y)

    return of_two


@kernel("SquaredDifference", types={"T": NUMBERS})
def make_squared_difference(attrs: Attrs) -> Kernel:
    """(x - y) times its conjugate."""
    return _complex_squared_difference if attrs.dtype("T").is_complex else _squared_difference


def _squared_difference(x: Value, y: Value) -> Value:
    difference = x - y
    difference *= difference
    return difference


def _complex_squared_difference(x: Value, y: Value) -> Value:
    difference = x - y
    return product(difference, np.conj(difference))


@kernel("Atan2", types={"T": FLOATS})
def make_atan2(attrs: Attrs) -> Kernel:
    """The angle of the point (x, y), between -pi and pi.

    Numbers below the normal ones count as zeros, as for TensorFlow's processor: here they may
    turn the angle by as much as a right one.
    """
    dtype = attrs.dtype("T")
    if dtype is dtypes.float16:  # computed in float32, where all its numbers are normal
        return np.arctan2
    least = dtype.numpy.type(2.0**-1022 if dtype is dtypes.float64 else 2.0**-126)

    def normal(x: Value) -> Value:
        return x * (abs(x) >= least)

    return lambda y, x: np.arctan2(normal(y), normal(x))


@kernel("NextAfter", types={"T": {dtypes.float32, dtypes.float64}})
def make_next_after(_: Attrs) -> Kernel:
    """The number next to x1 in the direction of x2."""
    return np.nextafter
