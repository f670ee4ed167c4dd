"""Products of matrices, one or a batch of them.

In:   two arrays whose last two axes are matrices, possibly transposed first.
Out:  their product.
Not:  no sums over other axes (einsum_op), no sparse matrices.

float16 and bfloat16 are multiplied in float32 and rounded once.  Integers wrap around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import COMPLEX, FLOATS, INTEGERS
from penstock.kernels.c.product import FEWEST, Multiplier
from penstock.kernels.c.product import batch_product as batch_product_in_c
from penstock.kernels.narrow.precision import NARROW, in_float32
from penstock.kernels.parallel.blas import ALONE, ALONE_BY_VECTOR, ALWAYS_ALONE
from penstock.kernels.parallel.products import batch_product, matrix_product
from penstock.kernels.values.arrays import shape_text

_SIGNED: Final = frozenset({dtypes.int16, dtypes.int32, dtypes.int64})
_FACTORS: Final = FLOATS | COMPLEX | _SIGNED
#: Integer products with more multiplications than this are worth a look at their size.
_MANY: Final = 1 << 15
#: float64 holds every integer up to here.
_EXACT: Final = 2.0**53
#: Multiplies two values in C; None if it does not.
_InC: TypeAlias = Callable[[Value, Value], Value | None]


def product_of(dtype: DType, *, accelerate: bool = False) -> Kernel:
    """How batches of matrices of a type are multiplied."""
    if accelerate and dtype is dtypes.float32:
        return _product_in_c
    if dtype in NARROW:
        return in_float32(batch_product, dtype)
    return _integer_product if dtype in INTEGERS else batch_product


def _product_in_c(x: Array, y: Array) -> Array:
    result = batch_product_in_c(x, y)
    return batch_product(x, y) if result is None else result


def _matrix_product_of(dtype: DType) -> Kernel:
    """How two matrices of a type are multiplied."""
    if dtype in NARROW:
        return in_float32(matrix_product, dtype)
    return _integer_product if dtype in INTEGERS else matrix_product


def _integer_product(x: Array, y: Array) -> Array:
    # numpy multiplies integers element by element; floats go to BLAS, fifty times as fast.
    if x.size * y.shape[-1] > _MANY and _bound(x) * _bound(y) * x.shape[-1] < _EXACT:
        exact = batch_product(x.astype(np.float64), y.astype(np.float64))
        return exact.astype(np.int64).astype(x.dtype)
    product: Array = x @ y
    return product


def _bound(x: Array) -> float:
    return max(abs(float(x.max())), abs(float(x.min())))


@kernel("MatMul", types={"T": _FACTORS})
def make_matmul(attrs: Attrs) -> Kernel:
    """The product of two matrices, each of them possibly transposed first."""
    return new_product(
        attrs, is_a_turned=attrs.bool("transpose_a"), is_b_turned=attrs.bool("transpose_b")
    )


def new_product(attrs: Attrs, *, is_a_turned: bool = False, is_b_turned: bool = False) -> Kernel:
    """How two matrices of a node's type ``T`` are multiplied."""
    dtype, in_c = attrs.dtype("T"), None
    if attrs.accelerate and dtype is dtypes.float32:
        in_c = _in_c(is_a_turned=is_a_turned, is_b_turned=is_b_turned)
    return checked_product(dtype, is_a_turned=is_a_turned, is_b_turned=is_b_turned, in_c=in_c)


def _in_c(*, is_a_turned: bool, is_b_turned: bool) -> _InC:
    """How two matrices are multiplied in C; None if they are not."""
    by_constant = Multiplier(is_turned=is_b_turned)

    def multiply(a: Value, b: Value) -> Value | None:
        if a.size < FEWEST or a.ndim != 2 or b.ndim != 2:
            return None
        result = None if is_a_turned else by_constant(a, b)
        if result is not None:
            return result
        return batch_product_in_c(a.T if is_a_turned else a, b.T if is_b_turned else b)

    return multiply


def checked_product(
    dtype: DType,
    *,
    is_a_turned: bool = False,
    is_b_turned: bool = False,
    in_c: _InC | None = None,
) -> Kernel:
    """How two values are multiplied that must be matrices of sizes that fit."""
    multiply = _matrix_product_of(dtype)

    def compute(a: Value, b: Value) -> Value:
        result = None if in_c is None else in_c(a, b)
        if result is not None:
            return result
        if a.ndim != 2 or b.ndim != 2:
            raise _rank_error(a, b)
        try:
            return multiply(a.T if is_a_turned else a, b.T if is_b_turned else b)
        except ValueError:
            raise _size_error(a, b) from None

    if multiply is not matrix_product:
        return compute
    limits = (ALWAYS_ALONE, ALWAYS_ALONE) if dtype in COMPLEX else (ALONE, ALONE_BY_VECTOR)
    if is_a_turned or is_b_turned:
        return _small_turned(compute, *limits, is_a_turned=is_a_turned, is_b_turned=is_b_turned)
    return _small(compute, *limits)


def _small(compute: Kernel, most: int, most_by_vector: int) -> Kernel:
    """A kernel with nothing in the way of small matrices, of which loops are full."""
    dot = np.dot

    def compute_small(a: Value, b: Value) -> Value:
        try:
            rows, depth = a.shape
            _, columns = b.shape
            work = rows * depth * columns
            if work <= most_by_vector or (work <= most and rows > 1 < columns):
                return dot(a, b)
        except ValueError:  # of another rank, or sizes that do not fit
            pass
        return compute(a, b)

    return compute_small


def _small_turned(
    compute: Kernel, most: int, most_by_vector: int, *, is_a_turned: bool, is_b_turned: bool
) -> Kernel:
    """The same where one of them, or both, are turned first, as in gradients."""
    dot = np.dot

    def compute_small(a: Value, b: Value) -> Value:
        try:
            x, y = a.T if is_a_turned else a, b.T if is_b_turned else b
            rows, depth = x.shape
            _, columns = y.shape
            work = rows * depth * columns
            if work <= most_by_vector or (work <= most and rows > 1 < columns):
                return dot(x, y)
        except ValueError:
            pass
        return compute(a, b)

    return compute_small


def _rank_error(a: Value, b: Value) -> InvalidArgumentError:
    shapes = f"{shape_text(a.shape)} vs. {shape_text(b.shape)}"
    if a.ndim != b.ndim:
        return InvalidArgumentError(f"In[0] and In[1] has different ndims: {shapes}")
    return InvalidArgumentError(f"In[0] and In[1] must be matrices: {shapes}")


def _size_error(a: Value, b: Value) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Matrix size-incompatible: In[0]: {shape_text(a.shape)}, In[1]: {shape_text(b.shape)}"
    )


@kernel("BatchMatMul", types={"T": _FACTORS})
def make_batch_matmul(attrs: Attrs) -> Kernel:
    """The products of pairs of matrices; both batches have the same shape."""
    multiply = _batch_product(attrs, product_of(attrs.dtype("T"), accelerate=attrs.accelerate))

    def compute(x: Value, y: Value) -> Value:
        if x.ndim != y.ndim:
            raise _rank_error(x, y)
        for axis in range(x.ndim - 2):
            if x.shape[axis] != y.shape[axis]:
                raise InvalidArgumentError(
                    f"In[0].dim({axis}) and In[1].dim({axis}) must be the same: "
                    f"{shape_text(x.shape)} vs {shape_text(y.shape)}"
                )
        return multiply(x, y)

    return compute


@kernel("BatchMatMulV2", types={"T": _FACTORS})
def make_batch_matmul_v2(attrs: Attrs) -> Kernel:
    """The products of pairs of matrices; batches are broadcast against each other."""
    return _batch_product(attrs, product_of(attrs.dtype("T"), accelerate=attrs.accelerate))


def make_batch_matmul_v3(attrs: Attrs) -> Kernel:
    """Like BatchMatMulV2, for factors and a product of different types."""
    out = attrs.dtype("Tout")
    inner = dtypes.float32 if out in NARROW else out
    multiply = product_of(inner, accelerate=attrs.accelerate)
    wide, narrow = inner.numpy, out.numpy

    def mixed(x: Array, y: Array) -> Array:
        product: Array = multiply(x.astype(wide, copy=False), y.astype(wide, copy=False))
        return product.astype(narrow, copy=False)

    return _batch_product(attrs, mixed)


#: Types of factors and product that are not all the same.
_MIXED: Final = (
    *((a, b, dtypes.int32) for a in ("int8", "uint8") for b in ("int8", "uint8")),
    *(("bfloat16", b, dtypes.bfloat16) for b in ("int8", "uint8")),
    *((a, "bfloat16", dtypes.bfloat16) for a in ("int8", "uint8")),
)
for _a, _b, _out in (*_MIXED, *((t, t, t) for t in _FACTORS - {dtypes.float16})):
    kernel(
        "BatchMatMulV3",
        types={"Ta": {dtypes.as_dtype(_a)}, "Tb": {dtypes.as_dtype(_b)}, "Tout": {_out}},
    )(make_batch_matmul_v3)


def _batch_product(attrs: Attrs, multiply: Kernel) -> Kernel:
    turn_x = _turner(attrs, "adj_x")
    turn_y = _turner(attrs, "adj_y")

    def compute(x: Value, y: Value) -> Value:
        if x.ndim < 2 or y.ndim < 2:
            place, rank = (0, x.ndim) if x.ndim < 2 else (1, y.ndim)
            raise InvalidArgumentError(f"In[{place}] ndims must be >= 2: {rank}")
        try:
            return multiply(turn_x(x) if turn_x else x, turn_y(y) if turn_y else y)
        except ValueError:
            raise _batch_error(turn_x(x) if turn_x else x, turn_y(y) if turn_y else y) from None

    return compute


def _turner(attrs: Attrs, name: str) -> Kernel | None:
    """The adjoint, if the attribute asks for it."""
    if not attrs.bool(name):
        return None
    is_complex = attrs.input_types[0].is_complex
    return _adjoint if is_complex else _transpose


def _transpose(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def _adjoint(x: Array) -> Array:
    turned: Array = np.conj(x.swapaxes(-1, -2))
    return turned


def _batch_error(x: Array, y: Array) -> InvalidArgumentError:
    if x.shape[-1] == y.shape[-2]:
        return InvalidArgumentError(
            "In[0] and In[1] must have compatible batch dimensions: "
            f"{shape_text(x.shape)} vs. {shape_text(y.shape)}"
        )
    return _size_error(x, y)
