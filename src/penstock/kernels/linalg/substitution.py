"""Forward substitution: what lower triangles of matrices turn into given right-hand sides.

In:   matrices of which only the lower triangle is read, and right-hand sides, in batches.
Out:  the solutions, in the place of the right-hand sides.
Not:  checks no shapes.

Triangles are cut in two until they are small, so that most of the work is products of matrices.
Of a large triangle, the small ones on the diagonal are inverted all at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Array

#: Rows of small triangles.
_FEW: Final = 16
#: Rows of triangles, and columns of right-hand sides, for which inverses pay.
_MANY: Final = 64
_COLUMNS: Final = 16


def substitute(lower: Array, solved: Array) -> None:
    """Solve for lower triangles, in place."""
    inverses = None
    if lower.shape[-1] >= _MANY and solved.shape[-1] >= _COLUMNS:
        inverses = _inverses(lower)
        # Inverses know no infinite solutions, and spread a NaN to the rows before its own.
        if not np.isfinite(inverses).all() or not np.isfinite(solved).all():
            inverses = None
    _solve(lower, solved, inverses)


def _solve(lower: Array, solved: Array, inverses: Array | None) -> None:
    """By halves; there may be inverses of the small triangles on the diagonal."""
    size = lower.shape[-1]
    if size <= _FEW:
        if inverses is not None and size == _FEW:
            solved[...] = inverses[..., 0, :, :] @ solved
        else:
            _solve_rows(lower, solved)
        return
    blocks = -(-size // (2 * _FEW))
    half = blocks * _FEW
    first, second = solved[..., :half, :], solved[..., half:, :]
    before = after = None
    if inverses is not None:
        before, after = inverses[..., :blocks, :, :], inverses[..., blocks:, :, :]
    _solve(lower[..., :half, :half], first, before)
    second -= lower[..., half:, :half] @ first
    _solve(lower[..., half:, half:], second, after)


def _solve_rows(lower: Array, solved: Array) -> None:
    """Row by row."""
    for row in range(lower.shape[-1]):
        if row:
            known = solved[..., :row, :]
            solved[..., row : row + 1, :] -= lower[..., row : row + 1, :row] @ known
        solved[..., row, :] /= lower[..., row, row, None]


def _inverses(lower: Array) -> Array:
    """Those of the small triangles on the diagonal, but for an even smaller last one."""
    places = range(0, lower.shape[-1] - _FEW + 1, _FEW)
    blocks = np.stack([lower[..., at : at + _FEW, at : at + _FEW] for at in places], -3)
    inverses = np.empty_like(blocks)
    inverses[...] = np.eye(_FEW, dtype=lower.dtype)
    _solve_rows(blocks, inverses)
    return inverses
