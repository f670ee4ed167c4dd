"""Products of matrices by PyTorch, one, a batch of them, or as an equation means them.

In:   two arrays whose last two axes are matrices, possibly transposed first.
Out:  their product.
Not:  no other types than float32.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.accelerated import library
from penstock.kernels.accelerated.choice import FLOAT32, PRIORITY, Offer, accelerated, choosing
from penstock.kernels.accelerated.library import (
    Tensor,
    Torch,
    given,
    in_pieces,
    tensor,
    threads,
)
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.linalg.einsum_op import einsum_with
from penstock.kernels.math.matmul_ops import product_of
from penstock.kernels.parallel.blas import ALONE
from penstock.kernels.parallel.products import batch_product

#: Multiplications from which on oneDNN's product is faster, although its call costs more.
_HUGE: Final = 1 << 20
#: Rows and columns below which it is not.
_NARROW: Final = 16
#: Multiplications that are worth a thread.
_PIECE: Final = 10_000_000


@accelerated("MatMul")
def offer_matmul(attrs: Attrs) -> Offer:
    """The product of two matrices, each of them possibly transposed first."""
    is_a_turned, is_b_turned = attrs.bool("transpose_a"), attrs.bool("transpose_b")
    columns = 0 if is_b_turned else 1

    def pays(a: Value, b: Value) -> bool:
        return bool(a.ndim == 2 == b.ndim and a.size * b.shape[columns] > ALONE)

    def build(torch: Torch) -> Kernel:
        multiply = product_of_matrices(torch)

        def matmul(a: Array, b: Array) -> Array:
            x, y = tensor(torch, a), tensor(torch, b)
            return multiply(x.t() if is_a_turned else x, y.t() if is_b_turned else y)

        return matmul

    return Offer(pays, build)


def product_of_matrices(torch: Torch) -> Callable[[Tensor, Tensor], Array]:
    """What multiplies two matrices, on several threads if that pays."""
    linear = torch.ops.mkldnn._linear_pointwise.default

    def one(x: Tensor, y: Tensor) -> Tensor:
        if min(x.shape[0], y.shape[1]) < _NARROW or x.shape[0] * y.numel() < _HUGE:
            return torch.mm(x, y)
        return linear(x, y.t(), None, "none", [], "")

    def multiply(x: Tensor, y: Tensor) -> Array:
        (rows, depth), columns = x.shape, y.shape[1]
        if depth != y.shape[0]:
            raise ValueError("the sizes do not fit")
        count = min(threads(torch), rows * depth * columns // _PIECE, rows // _NARROW)
        if count < 2 or columns < _NARROW:
            return given(one(x, y))
        result, step = np.empty((rows, columns), np.float32), -(-rows // count)

        def body(number: int) -> None:
            part = slice(number * step, (number + 1) * step)
            result[part] = one(x[part], y).numpy()

        in_pieces(count, body)
        return result

    return multiply


@accelerated("BatchMatMul", "BatchMatMulV2")
@accelerated("BatchMatMulV3", types={"Ta": FLOAT32, "Tb": FLOAT32, "Tout": FLOAT32})
def offer_batch_matmul(attrs: Attrs) -> Offer:
    """The products of pairs of matrices."""
    is_x_turned, is_y_turned = attrs.bool("adj_x"), attrs.bool("adj_y")
    columns, is_same = -2 if is_y_turned else -1, attrs.op.name == "BatchMatMul"

    def pays(x: Value, y: Value) -> bool:
        if x.ndim < 2 or y.ndim < 2 or (is_same and x.shape[:-2] != y.shape[:-2]):
            return False
        return bool(x.size * y.shape[columns] > ALONE)

    def build(torch: Torch) -> Kernel:
        multiply = product_of_batches(torch)

        def batch_matmul(x: Array, y: Array) -> Array:
            turned = x.swapaxes(-1, -2) if is_x_turned else x
            return multiply(turned, y.swapaxes(-1, -2) if is_y_turned else y)

        return batch_matmul

    return Offer(pays, build)


def product_of_batches(torch: Torch) -> Callable[[Array, Array], Array]:
    """What multiplies batches of matrices; of the same shape, or only one on the right."""
    multiply_two = product_of_matrices(torch)

    def multiply(x: Array, y: Array) -> Array:
        if x.shape[-1] != y.shape[-2]:
            raise ValueError("the sizes do not fit")
        shape = (*x.shape[:-1], y.shape[-1])
        if y.ndim == 2:
            rows = tensor(torch, x.reshape(-1, x.shape[-1]))
            return multiply_two(rows, tensor(torch, y)).reshape(shape)
        if x.shape[:-2] != y.shape[:-2]:
            raise ValueError("the batches are not the same")
        if prod(x.shape[:-2]) == 1:
            pair = (tensor(torch, a.reshape(a.shape[-2:])) for a in (x, y))
            return multiply_two(*pair).reshape(shape)
        return _in_parts(torch, x, y)

    return multiply


def _in_parts(torch: Torch, x: Array, y: Array) -> Array:
    """Batches cut along their first axes, on several threads if that pays."""
    result = np.empty((*x.shape[:-1], y.shape[-1]), np.float32)
    xs, ys, out = (tensor(torch, a).reshape(-1, *a.shape[-2:]) for a in (x, y, result))
    size = len(xs)
    count = max(min(threads(torch), result.size * x.shape[-1] // _PIECE), 1)
    step = max(-(-size // count), 1)

    def body(number: int) -> None:
        part = slice(number * step, (number + 1) * step)
        torch.bmm(xs[part], ys[part], out=out[part])

    in_pieces(-(-size // step), body)
    return result


#: Faster products of batches, for whoever lays out matrices.
_PRODUCT: Final = Offer(lambda x, y: bool(x.size * y.shape[-1] > ALONE), product_of_batches)


@kernel("Einsum", types={"T": FLOAT32}, priority=PRIORITY)
def make_einsum(attrs: Attrs) -> Kernel:
    """The sum of products that the equation means, by products of matrices."""
    if not (attrs.accelerate and library.is_installed()):
        return einsum_with(attrs, product_of(attrs.dtype("T"), accelerate=attrs.accelerate))
    return einsum_with(attrs, choosing(batch_product, _PRODUCT, by_trial=attrs.by_trial))
