"""Operations on the bits of integers.

In:   integers of one type, broadcast against each other.
Out:  integers of the same type; the number of set bits as uint8.
Not:  no arithmetic.
"""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

from penstock.core.values import Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import INTEGERS

_BITWISE: Final[dict[str, Kernel]] = {
    "BitwiseAnd": operator.and_,
    "BitwiseOr": operator.or_,
    "BitwiseXor": operator.xor,
    "Invert": operator.invert,
}
_SHIFTS: Final[dict[str, Kernel]] = {
    "LeftShift": operator.lshift,
    "RightShift": operator.rshift,
}
#: Number of set bits of every byte.
_BITS_OF_BYTE: Final = np.array([byte.bit_count() for byte in range(256)], np.uint8)


@kernel(*_BITWISE, types={"T": INTEGERS})
def make_bitwise(attrs: Attrs) -> Kernel:
    """And, or, exclusive or, or not, bit by bit."""
    return _BITWISE[attrs.op.name]


@kernel(*_SHIFTS, types={"T": INTEGERS})
def make_shift(attrs: Attrs) -> Kernel:
    """The bits of x shifted by y places, at least by none and at most by all but one."""
    shift = _SHIFTS[attrs.op.name]
    kind: Any = attrs.dtype("T").numpy.type
    none, most = kind(0), kind(attrs.dtype("T").numpy.itemsize * 8 - 1)
    return lambda x, y: shift(x, np.minimum(np.maximum(y, none), most))


@kernel("PopulationCount", types={"T": INTEGERS})
def make_population_count(_: Attrs) -> Kernel:
    """The number of set bits of the two's complement."""
    return _population_count


def _population_count(x: Value) -> Value:
    if x.ndim == 0:
        return np.uint8((int(x) & (1 << 8 * x.itemsize) - 1).bit_count())
    bytes_of = np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, x.itemsize)
    return _BITS_OF_BYTE[bytes_of].sum(axis=-1, dtype=np.uint8)
