"""Products of matrices.

In:   two matrices, or batches of them; perhaps a bias.
Out:  their product.
Not:  knows no op of TensorFlow; sizes fit.

A matrix that stays the same in a loop is turned before it, if it must be.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

from penstock.kernels.native.emitter import Emitter
from penstock.kernels.native.parts import Operand, Traced, UnsupportedError

#: A product in a loop that takes more nanoseconds, roughly, is for kernels that have threads: a
#: million multiplications, from which on these are faster.
_MAX_IN_LOOP: Final = 130_000


def product(
    emitter: Emitter,
    x: Operand,
    y: Operand,
    bias: Operand | None = None,
    *,
    is_x_turned: bool = False,
    is_y_turned: bool = False,
) -> Operand:
    """Multiply matrices; all axes but the last two are the same.

    Args:
        emitter: writes it.
        x: [..., m, k], or [..., k, m] if it is turned.
        y: [..., k, n], or [..., n, k] if it is turned.
        bias: is added to each row, [n].
        is_x_turned: see ``x``.
        is_y_turned: see ``y``.

    """
    if len(x.shape) == 2 and y.shape == ((1, y.shape[1]) if is_y_turned else (y.shape[0], 1)):
        return _by_column(emitter, x, y, bias, is_x_turned=is_x_turned)
    if is_y_turned:
        last = len(y.shape)
        y = emitter.transpose(y, [*range(last - 2), last - 1, last - 2])
    m, k = x.shape[-1:-3:-1] if is_x_turned else x.shape[-2:]
    n, batch = y.shape[-1], x.shape[:-2]
    steps = (1, m) if is_x_turned else (k, 1)
    numbers = prod(batch), m, n, k, m * k, *steps, k * n, n
    cost = prod(batch) * m * (n * k // 8 + n)
    shape = [*batch, m, n]
    made = _written(emitter, x, y, shape, numbers, cost)
    return made if bias is None else emitter.same("add", made, emitter.broadcast(bias, shape))


def _by_column(
    emitter: Emitter, x: Operand, y: Operand, bias: Operand | None, *, is_x_turned: bool
) -> Operand:
    """A matrix by one column: that as a row, by the matrix turned, so that vectors are full."""
    k, m = x.shape if is_x_turned else x.shape[::-1]
    turned = x if is_x_turned else emitter.transpose(x, [1, 0])
    numbers = 1, 1, m, k, k, k, 1, k * m, m
    row = emitter.reshape(y, [1, k])
    made = _written(emitter, row, turned, [1, m], numbers, m * k // 8 + m)
    column = emitter.reshape(made, [m, 1])
    if bias is None:
        return column
    return emitter.same("add", column, emitter.broadcast(bias, [m, 1]))


def _written(
    emitter: Emitter, x: Operand, y: Operand, shape: list[int], numbers: Any, cost: int
) -> Traced:
    made = emitter.op(f"product_{x.dtype.name}", [x, y], x.dtype, shape, numbers, cost)
    if made.level and cost > _MAX_IN_LOOP:
        raise UnsupportedError
    return made
