"""Products and quotients of complex numbers, rounded as TensorFlow rounds them.

In:   arrays or numpy scalars of complex64 or complex128, broadcast against each other.
Out:  an array, or a scalar if all inputs are.
Not:  registers no kernel.

numpy's own product rounds once where TensorFlow rounds twice, where the processor can, and its
quotient is another formula.  TensorFlow takes several numbers at a time, for which it follows the
textbook; what is left over at the end of an array goes to the C library.  That divides by another
formula, and finds an infinity again that is lost in NaN (ISO C, annex G.5.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core.values import Array, Value, as_value

#: How many numbers TensorFlow takes at a time, by bytes of each.
_AT_ONCE: Final = {8: 4, 16: 2}
#: One of the C library's functions of the four parts of two numbers.
_OfParts: TypeAlias = Callable[[Any, Any, Any, Any], "tuple[Any, Any]"]


def product(x: Value, y: Value) -> Value:
    """The product x y."""
    result = np.empty(np.broadcast_shapes(x.shape, y.shape), x.dtype)
    real, imag = result.real, result.imag
    np.multiply(x.real, y.real, out=real)
    np.subtract(real, x.imag * y.imag, out=real)
    np.multiply(x.real, y.imag, out=imag)
    np.add(imag, x.imag * y.real, out=imag)
    return _with_end(result, x, y, _product_of_parts)


def square(x: Value) -> Value:
    """The product of a number with itself."""
    return product(x, x)


def quotient(x: Value, y: Value) -> Value:
    """The quotient x / y, for which y is made smaller so that its square is no infinity."""
    y_real, y_imag = y.real, y.imag
    scale = np.maximum(abs(y_real), abs(y_imag))
    y_real, y_imag = y_real / scale, y_imag / scale
    square_of_y = y_real * y_real + y_imag * y_imag
    result = np.empty(np.broadcast_shapes(x.shape, y.shape), x.dtype)
    result.real = (x.real * y_real + x.imag * y_imag) / square_of_y / scale
    result.imag = (x.imag * y_real - x.real * y_imag) / square_of_y / scale
    return _with_end(result, x, y, _quotient_of_parts)


def reciprocal(x: Value) -> Value:
    """The quotient 1 / x."""
    return quotient(x.dtype.type(1), x)


def _with_end(result: Array, x: Value, y: Value, compute: _OfParts) -> Value:
    """The result, computed anew where TensorFlow does not take several numbers at a time."""
    flat = result.reshape(-1)
    for place in range(len(flat) - len(flat) % _AT_ONCE[result.itemsize], len(flat)):
        left, right = (_element(operand, result.shape, place) for operand in (x, y))
        flat[place] = complex(*compute(left.real, left.imag, right.real, right.imag))
    return as_value(result)


def _element(operand: Value, shape: tuple[int, ...], place: int) -> Any:
    """The number at a place in memory, once the operand is broadcast to a shape."""
    if operand.shape == shape:
        return operand.reshape(-1)[place]
    return np.broadcast_to(operand, shape).flat[place]


# -- the C library's functions ---------------------------------------------------------


def _product_of_parts(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    """The product (a + bi) (c + di)."""
    parts = a * c, b * d, a * d, b * c
    real, imag = parts[0] - parts[1], parts[2] + parts[3]
    if not (math.isnan(real) and math.isnan(imag)):
        return real, imag
    is_x_infinite, is_y_infinite = _has_infinity(a, b), _has_infinity(c, d)
    if not (is_x_infinite or is_y_infinite or _has_infinity(*parts)):
        return real, imag
    if is_x_infinite:
        a, b = _direction(a), _direction(b)
    if is_y_infinite:
        c, d = _direction(c), _direction(d)
    a, b, c, d = (math.copysign(0, part) if math.isnan(part) else part for part in (a, b, c, d))
    return math.inf * (a * c - b * d), math.inf * (a * d + b * c)


def _quotient_of_parts(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    """The quotient (a + bi) / (c + di) by Smith's formula (Communications of the ACM 5, 1962)."""
    if abs(c) >= abs(d):
        ratio = d / c
        scale = c + d * ratio
        real, imag = (a + b * ratio) / scale, (b - a * ratio) / scale
    else:
        ratio = c / d
        scale = d + c * ratio
        real, imag = (a * ratio + b) / scale, (b * ratio - a) / scale
    if not (math.isnan(real) and math.isnan(imag)):
        return real, imag
    if c == d == 0 and not (math.isnan(a) and math.isnan(b)):
        return math.copysign(math.inf, c) * a, math.copysign(math.inf, c) * b
    if _has_infinity(a, b) and math.isfinite(c) and math.isfinite(d):
        a, b = _direction(a), _direction(b)
        return math.inf * (a * c + b * d), math.inf * (b * c - a * d)
    if _has_infinity(c, d) and math.isfinite(a) and math.isfinite(b):
        c, d = _direction(c), _direction(d)
        return 0.0 * (a * c + b * d), 0.0 * (b * c - a * d)
    return real, imag


def _has_infinity(*parts: Any) -> bool:
    return any(map(math.isinf, parts))


def _direction(part: Any) -> float:
    """A part of an infinite number: one if it is infinite itself, else zero; with its sign."""
    return math.copysign(math.isinf(part), part)
