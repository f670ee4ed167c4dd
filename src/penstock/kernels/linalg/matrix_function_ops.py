"""Functions of matrices: square root, logarithm, exponential, and eigenvalues.

In:   square matrices as the last two dimensions of an array, in batches.
Out:  matrices of the same shape; eigenvalues and eigenvectors.
Not:  nothing element by element.

Computed in double precision.  A matrix with well separated eigenvectors is taken apart into
them; for any other the square root comes from an iteration, and the logarithm from repeated
square roots.  Higham, Functions of matrices, 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import COMPLEX
from penstock.kernels.parallel.blas import keeps_alone
from penstock.kernels.values.arrays import shape_text

_REAL: Final = frozenset({dtypes.float32, dtypes.float64})
#: Eigenvectors that are further from each other than this give exact results.
_MAX_CONDITION: Final = 1e6
_ROUNDS: Final = 60
#: Nodes and weights of Gauss and Legendre for integrals from 0 to 1.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2
#: Coefficients of the Padé approximation of degree 13 to the exponential.
_PADE: Final = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
    10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
#: Up to this norm that approximation has all digits of double precision.
_PADE_REACH: Final = 5.371920351148152


def _squares(value: Value) -> Array:
    array = np.asarray(value)
    if array.ndim < 2:
        raise ValueError(f"Input tensor 0 must have rank >= 2, got {array.ndim}")
    if array.shape[-1] != array.shape[-2]:
        raise ValueError(f"Input matrix must be square, got shape {shape_text(array.shape)}")
    return array


def _each(function: Callable[[Array], Array], matrices: Array) -> Array:
    """The function of each matrix; NaN for those that hold infinities or NaN."""
    results = np.empty(matrices.shape, matrices.dtype)
    if not matrices.size:
        return results
    flat = results.reshape(-1, *matrices.shape[-2:])
    for place, matrix in enumerate(matrices.reshape(flat.shape)):
        wide = matrix.astype(np.complex128 if matrix.dtype.kind == "c" else np.float64)
        try:
            flat[place] = function(wide) if np.isfinite(wide).all() else np.nan
        except np.linalg.LinAlgError:
            flat[place] = np.nan
    return results


def _by_eigenvectors(matrix: Array, function: Callable[[Array], Array]) -> Array | None:
    """The function by way of eigenvectors; None if those are too close to each other."""
    values, vectors = np.linalg.eig(matrix)
    if np.linalg.cond(vectors) > _MAX_CONDITION:
        return None
    made: Array = (vectors * function(values.astype(np.complex128))) @ np.linalg.inv(vectors)
    return made


def _square_root(matrix: Array) -> Array:
    """The principal square root; NaN for a real matrix that has no real one."""
    if matrix.dtype.kind != "c":
        values = np.linalg.eigvals(matrix)
        if (np.isreal(values) & (values.real < 0)).any():
            return np.full_like(matrix, np.nan)
    root = _by_eigenvectors(matrix, np.sqrt)
    if root is None:
        root = _iterated_root(matrix)
    return root if matrix.dtype.kind == "c" else root.real


def _iterated_root(matrix: Array) -> Array:
    """Denman and Beavers, The matrix sign function and computations in systems, 1976."""
    root, inverse = matrix, np.eye(len(matrix), dtype=matrix.dtype)
    for _ in range(_ROUNDS):
        before = root
        root, inverse = (
            (root + np.linalg.inv(inverse)) / 2,
            (inverse + np.linalg.inv(root)) / 2,
        )
        if np.abs(root - before).max() <= 1e-15 * np.abs(root).max():
            break
    return root


def _logarithm(matrix: Array) -> Array:
    """The principal logarithm."""
    log = _by_eigenvectors(matrix, np.log)
    return _iterated_logarithm(matrix) if log is None else log


def _iterated_logarithm(matrix: Array) -> Array:
    """Roots until the matrix is near one, then the integral of (A - 1) / (1 + t (A - 1))."""
    one, doublings = np.eye(len(matrix), dtype=matrix.dtype), 0
    while np.linalg.norm(matrix - one, 1) > 0.25 and doublings < _ROUNDS:
        matrix, doublings = _iterated_root(matrix), doublings + 1
    rest = matrix - one
    total = sum(
        weight * np.linalg.solve(one + node * rest, rest)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True)
    )
    return np.asarray(total * 2.0**doublings)


def _exponential(matrix: Array) -> Array:
    """Scaling and squaring: Higham, The scaling and squaring method revisited, 2005."""
    norm = np.linalg.norm(matrix, 1)
    halvings = max(int(np.ceil(np.log2(norm / _PADE_REACH))), 0) if norm else 0
    matrix = matrix / 2.0**halvings
    square, power = matrix @ matrix, np.eye(len(matrix), dtype=matrix.dtype)
    even, odd = np.zeros_like(matrix), np.zeros_like(matrix)
    for first, second in zip(_PADE[::2], _PADE[1::2], strict=True):
        even, odd, power = even + first * power, odd + second * power, power @ square
    odd = matrix @ odd
    result: Array = np.linalg.solve(even - odd, even + odd)
    for _ in range(halvings):
        result = result @ result
    return result


_FUNCTIONS: Final[dict[str, Callable[[Array], Array]]] = {
    "MatrixExponential": _exponential,
    "MatrixLogarithm": _logarithm,
    "MatrixSquareRoot": _square_root,
}


@kernel("MatrixExponential", "MatrixSquareRoot", types={"T": _REAL | COMPLEX})
@kernel("MatrixLogarithm", types={"T": COMPLEX})
@keeps_alone
def make_matrix_function(attrs: Attrs) -> Kernel:
    """The function of each matrix."""
    function = _FUNCTIONS[attrs.op.name]
    return lambda values: _each(function, _squares(values))


@kernel("Eig", types={"T": _REAL | COMPLEX, "Tout": COMPLEX})
@keeps_alone
def make_eig(attrs: Attrs) -> Kernel:
    """Eigenvalues, and eigenvectors as columns; without vectors their output is a scalar.

    Their order is LAPACK's.
    """
    dtype, has_vectors = attrs.dtype("Tout").numpy, attrs.bool("compute_v")

    def eig(value: Value) -> tuple[Value, Value]:
        matrices = _squares(value)
        if not np.isfinite(matrices).all():
            raise ValueError(
                "Eigen decomposition was not successful. The input might not be valid."
            )
        values, vectors = np.linalg.eig(matrices)
        kept: Any = vectors.astype(dtype, copy=False) if has_vectors else dtype.type(0)
        return values.astype(dtype, copy=False), kept

    return eig
