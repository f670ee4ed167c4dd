"""Matrices of which only a few diagonals are not zero.

In:   the diagonals, and right-hand sides.
Out:  products and solutions.
Not:  never makes the whole matrix.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import COMPLEX
from penstock.kernels.values.arrays import shape_text

_TYPES: Final = {"T": frozenset({dtypes.float32, dtypes.float64}) | COMPLEX}


@kernel("TridiagonalMatMul", types=_TYPES)
def make_tridiagonal_matmul(_attrs: Attrs) -> Kernel:
    """Each row of the product: what is on three diagonals times three rows of the factor."""

    def tridiagonal_matmul(above: Value, main: Value, below: Value, rhs: Value) -> Array:
        for name, part in (("superdiagonal", above), ("diagonal", main), ("subdiagonal", below)):
            if part.ndim < 2 or rhs.ndim < 2:
                raise ValueError(f"Input tensors must have rank >= 2: {shape_text(part.shape)}")
            if part.shape != (*rhs.shape[:-2], 1, rhs.shape[-2]):
                raise ValueError(
                    f"Invalid {name} shape: {shape_text(part.shape)} for {shape_text(rhs.shape)}"
                )
        upper, middle, lower = (part[..., 0, :, None] for part in (above, main, below))
        product: Array = middle * rhs
        product[..., :-1, :] += upper[..., :-1, :] * rhs[..., 1:, :]
        product[..., 1:, :] += lower[..., 1:, :] * rhs[..., :-1, :]
        return product

    return tridiagonal_matmul


@kernel("TridiagonalSolve", types=_TYPES)
def make_tridiagonal_solve(attrs: Attrs) -> Kernel:
    """What a tridiagonal matrix turns into the right-hand sides; NaN if it has no inverse.

    With pivoting two rows change places where that makes the quotients smaller.
    """
    if attrs.bool("perturb_singular"):
        raise ValueError("PerturbSingular is not supported on CPU.")
    solve = _solve_pivoting if attrs.bool("partial_pivoting") else _solve

    def tridiagonal_solve(diagonals: Value, rhs: Value) -> Array:
        if diagonals.ndim < 2 or diagonals.ndim != rhs.ndim:
            raise ValueError(
                "All input tensors must have the same rank, at least 2: "
                f"{shape_text(diagonals.shape)} and {shape_text(rhs.shape)}"
            )
        if diagonals.shape[-2] != 3:
            raise ValueError(
                "Expected diagonals to be provided as a matrix with 3 rows, "
                f"got {diagonals.shape[-2]} rows."
            )
        if diagonals.shape[-1] != rhs.shape[-2] or diagonals.shape[:-2] != rhs.shape[:-2]:
            raise ValueError(
                "Expected the same number of left-hand sides and right-hand sides, "
                f"got {shape_text(diagonals.shape)} and {shape_text(rhs.shape)}."
            )
        if not rhs.size:
            return np.zeros(rhs.shape, rhs.dtype)
        # rows first: [rows, batch..., columns], so that each step takes a slice
        parts = np.moveaxis(diagonals, (-2, -1), (0, 1))[..., None].copy()
        solved = solve(parts, np.moveaxis(rhs, -2, 0).copy())
        return np.moveaxis(solved, 0, -2)

    return tridiagonal_solve


def _solve(parts: Array, sides: Array) -> Array:
    """Thomas: eliminate downwards, then substitute upwards; overwrites its arguments."""
    above, main, below = parts
    is_singular = main[0] == 0
    for row in range(1, len(main)):
        factor = below[row] / main[row - 1]
        main[row] -= factor * above[row - 1]
        sides[row] -= factor * sides[row - 1]
        is_singular = is_singular | (main[row] == 0)
    sides[-1] /= main[-1]
    for row in range(len(main) - 2, -1, -1):
        sides[row] = (sides[row] - above[row] * sides[row + 1]) / main[row]
    return np.where(is_singular, np.nan, sides).astype(sides.dtype, copy=False)


def _solve_pivoting(parts: Array, sides: Array) -> Array:
    """The same where rows may change places, which fills a second diagonal above."""
    above, main, below = parts
    second = np.zeros_like(above)
    for row in range(len(main) - 1):
        is_swapped = np.abs(below[row + 1]) > np.abs(main[row])
        next_below, next_main, next_above = below[row + 1], main[row + 1], above[row + 1]
        pivot = np.where(is_swapped, next_below, main[row])
        factor = np.where(is_swapped, main[row], next_below) / pivot
        upper = np.where(is_swapped, next_main, above[row])
        lower = np.where(is_swapped, above[row], next_main)
        main[row], above[row] = pivot, upper
        has_third = row + 2 < len(main)
        if has_third:
            second[row] = np.where(is_swapped, next_above, 0)
            above[row + 1] = np.where(is_swapped, -factor * next_above, next_above)
        main[row + 1] = lower - factor * upper
        first = np.where(is_swapped, sides[row + 1], sides[row])
        other = np.where(is_swapped, sides[row], sides[row + 1])
        sides[row], sides[row + 1] = first, other - factor * first
    is_singular = (main == 0).any(0)
    for row in range(len(main) - 1, -1, -1):
        if row + 1 < len(main):
            sides[row] -= above[row] * sides[row + 1]
        if row + 2 < len(main):
            sides[row] -= second[row] * sides[row + 2]
        sides[row] /= main[row]
    return np.where(is_singular, np.nan, sides).astype(sides.dtype, copy=False)


@kernel("BandedTriangularSolve", types=_TYPES)
def make_banded_triangular_solve(attrs: Attrs) -> Kernel:
    """What a triangle with few diagonals turns into the right-hand sides.

    The rows of the matrix are the diagonals, the main one first if the triangle is the lower.
    """
    is_lower, is_adjoint = attrs.bool("lower"), attrs.bool("adjoint")

    def solve(matrix: Value, rhs: Value) -> Array:
        if matrix.ndim < 2 or rhs.ndim < 2 or matrix.shape[-1] != rhs.shape[-2]:
            raise ValueError(
                f"In[0] mismatch In[1] shape: {shape_text(matrix.shape)} and "
                f"{shape_text(rhs.shape)}"
            )
        if matrix.shape[-2] > matrix.shape[-1] > 0 or not matrix.shape[-2]:
            raise ValueError(
                f"The number of bands must be in [1, {matrix.shape[-1]}]: {matrix.shape[-2]}"
            )
        batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
        solved = np.empty((*batch, *rhs.shape[-2:]), rhs.dtype)
        solved[...] = rhs
        rows, count = matrix.shape[-1], matrix.shape[-2]
        for step in range(rows):
            row = step if is_lower != is_adjoint else rows - 1 - step
            for away in range(1, min(count, step + 1)):
                other = row - away if is_lower != is_adjoint else row + away
                solved[..., row, :] -= entry(matrix, row, other) * solved[..., other, :]
            solved[..., row, :] /= entry(matrix, row, row)
        return solved

    def entry(matrix: Array, row: int, column: int) -> Array:
        """The element of the matrix, or of its adjoint, in a row and a column."""
        if is_adjoint:
            row, column = column, row
        diagonal = row - column if is_lower else matrix.shape[-2] - 1 - (column - row)
        found = matrix[..., diagonal, row, None]
        return np.conj(found) if is_adjoint else found

    return solve
