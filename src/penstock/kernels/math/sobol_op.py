"""Sobol's sequence: points that fill a cube more evenly than random ones.

In:   the number of dimensions, how many points to make and how many to leave out.
Out:  points, one per row.
Not:  has no table of directions: SciPy has (Joe and Kuo's).
"""

from __future__ import annotations

import warnings
from typing import Final

from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.extras import require
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.values.arrays import check_new

_MOST: Final = 2**31 - 1


@kernel("SobolSample")
def make_sobol_sample(attrs: Attrs) -> Kernel:
    """The points after the first, which is the corner at zero."""
    qmc, dtype = require("scipy.stats.qmc", "special"), attrs.dtype("dtype").numpy

    def sobol_sample(dim: Value, count: Value, skip: Value) -> Array:
        if dim < 1:
            raise InvalidArgumentError("dim must be at least one")
        if count < 1:
            raise InvalidArgumentError("num_results must be at least one")
        if skip < 0:
            raise InvalidArgumentError("skip must be non-negative")
        if int(count) + int(skip) > _MOST:
            raise InvalidArgumentError(f"num_results+skip must be less than {_MOST}")
        check_new([int(count), int(dim)], dtype)
        sequence = qmc.Sobol(int(dim), scramble=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # any number of points is as good as a power of 2
            sequence.fast_forward(int(skip) + 1)
            points: Array = sequence.random(int(count)).astype(dtype)
        return points

    return sobol_sample
