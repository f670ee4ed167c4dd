"""Sets of element types, as kernels state their constraints."""

from __future__ import annotations

from typing import Final

from penstock.core import dtypes
from penstock.core.dtypes import DType

FLOATS: Final[frozenset[DType]] = frozenset(
    {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}
)
COMPLEX: Final[frozenset[DType]] = frozenset({dtypes.complex64, dtypes.complex128})
SIGNED: Final[frozenset[DType]] = frozenset({dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64})
UNSIGNED: Final[frozenset[DType]] = frozenset(
    {dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64}
)
INTEGERS: Final[frozenset[DType]] = SIGNED | UNSIGNED
REALS: Final[frozenset[DType]] = FLOATS | INTEGERS
NUMBERS: Final[frozenset[DType]] = REALS | COMPLEX
QUANTIZED: Final[frozenset[DType]] = frozenset(
    {dtypes.qint8, dtypes.quint8, dtypes.qint16, dtypes.quint16, dtypes.qint32}
)
ALL: Final[frozenset[DType]] = frozenset(dtypes.ALL)
#: Everything that has a fixed size and no scale: numbers and booleans.
PLAIN: Final[frozenset[DType]] = NUMBERS | {dtypes.bool_}
OBJECTS: Final[frozenset[DType]] = frozenset({dtypes.string, dtypes.resource, dtypes.variant})
FLOAT8: Final[frozenset[DType]] = frozenset(map(dtypes.as_dtype, ("float8_e5m2", "float8_e4m3fn")))
