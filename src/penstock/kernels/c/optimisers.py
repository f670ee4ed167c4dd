"""Steps of optimisers as loops in C, which numpy calls as it does its own functions.

In:   the name of an optimiser.
Out:  a ``numpy.ufunc`` of float32, from a variable and its slots, their gradient and rates to the
      new variable and slots, rounded wherever numpy would round.
Not:  knows no ops; None where there is no library.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Final

import numpy as np

from penstock.kernels.c.programs import lasting, library_of_loops, numpy_function

#: How many arrays each has, and how many rates, which ``optimisers.c`` names; in the order of its
#: ``EACH_WAY``.
OPTIMISERS: Final = {
    "gradient_descent": (1, 1),
    "momentum": (2, 2),
    "nesterov_momentum": (2, 2),
    "keras_momentum": (2, 2),
    "nesterov_keras_momentum": (2, 2),
    "adagrad": (2, 1),
    "still_adagrad": (2, 1),
    "adagrad_v2": (2, 2),
    "still_adagrad_v2": (2, 2),
    "rms_prop": (3, 4),
    "centered_rms_prop": (4, 4),
    "adam": (3, 4),
    "nesterov_adam": (3, 5),
}


class _Optimiser(ctypes.Structure):
    """The structure of that name in ``optimisers.h``."""

    _fields_ = tuple((name, ctypes.c_int64) for name in ("way", "arrays", "rates", "kind"))


@functools.cache
def optimiser(name: str, kind: int | None = None) -> np.ufunc | None:
    """A step of an optimiser; None if there is no library.

    Args:
        name: one of ``OPTIMISERS``.
        kind: of vectors; None for the longest.

    """
    library = library_of_loops()
    if library is None:
        return None
    arrays, rates = OPTIMISERS[name]
    kind = library.penstock_kinds() - 1 if kind is None else kind
    what = _Optimiser(way=list(OPTIMISERS).index(name), arrays=arrays, rates=rates, kind=kind)
    counts = arrays + 1 + rates, arrays
    return lasting(numpy_function(name, library.penstock_optimise, what, counts))
