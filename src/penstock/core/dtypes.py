"""Element types: TensorFlow's names and numbers, and the numpy type of each.

In:   a number (as in protobuf), a name, or a numpy dtype.
Out:  the one ``DType`` for it; two of them are the same object or different types.
Not:  does not convert values.

Reference types are the value's number plus 100; they say that an edge carries a place
where a value is kept rather than the value.  Quantised types are one-field structured
numpy types, so an array says by itself that it is ``qint8`` and not ``int8``.  Strings
are object arrays of ``bytes``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import ml_dtypes
import numpy as np

from penstock.errors import InvalidArgumentError

_REF: Final = 100


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One element type.  ``numpy`` is its numpy dtype; compare with ``is``."""

    name: str
    number: int
    numpy: np.dtype[Any]
    # Passes ask these of each edge of a graph, so they are no properties.
    #: Whether this is the reference form of a type.
    is_ref: bool = field(init=False)
    #: The value type: the type itself, unless it is a reference.
    base: DType = field(init=False)
    #: Whether values are real floating-point numbers, bfloat16 and float8 included.
    is_floating: bool = field(init=False)

    def __post_init__(self) -> None:
        is_ref = self.number > _REF
        object.__setattr__(self, "is_ref", is_ref)
        object.__setattr__(self, "base", _BY_NUMBER[self.number - _REF] if is_ref else self)
        object.__setattr__(self, "is_floating", self.base.name in _FLOATING)

    @property
    def ref(self) -> DType:
        """The reference form."""
        return self if self.is_ref else _BY_NUMBER[self.number + _REF]

    def may_feed(self, wanted: DType) -> bool:
        """Whether an output of this type may feed an input of ``wanted``: references are read."""
        return self is wanted or (not wanted.is_ref and self.base is wanted)

    @property
    def is_integer(self) -> bool:
        """Whether values are integers, quantised ones not included."""
        return self.base.name in _INTEGER

    @property
    def is_complex(self) -> bool:
        """Whether values are complex numbers."""
        return self.base.numpy.kind == "c"

    @property
    def is_quantized(self) -> bool:
        """Whether values are quantised integers."""
        return self.base.numpy.names is not None

    @property
    def is_object(self) -> bool:
        """Whether values are Python objects: strings, resources and variants."""
        return self.base.numpy.hasobject

    @property
    def proto_name(self) -> str:
        """The name in protobuf's enum, such as ``DT_FLOAT``."""
        base = _PROTO_NAMES.get(self.base.name, self.base.name.upper())
        return f"DT_{base}_REF" if self.is_ref else f"DT_{base}"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        # Types are compared with ``is``, also in another process.
        return of_number, (self.number,)


def _quantized(name: str, kind: type[np.integer[Any]]) -> np.dtype[Any]:
    return np.dtype([(name, kind)])


_OBJECT: Final = np.dtype(object)
_TABLE: Final[tuple[tuple[int, str, np.dtype[Any]], ...]] = (
    (1, "float32", np.dtype(np.float32)),
    (2, "float64", np.dtype(np.float64)),
    (3, "int32", np.dtype(np.int32)),
    (4, "uint8", np.dtype(np.uint8)),
    (5, "int16", np.dtype(np.int16)),
    (6, "int8", np.dtype(np.int8)),
    (7, "string", _OBJECT),
    (8, "complex64", np.dtype(np.complex64)),
    (9, "int64", np.dtype(np.int64)),
    (10, "bool", np.dtype(np.bool_)),
    (11, "qint8", _quantized("qint8", np.int8)),
    (12, "quint8", _quantized("quint8", np.uint8)),
    (13, "qint32", _quantized("qint32", np.int32)),
    (14, "bfloat16", np.dtype(ml_dtypes.bfloat16)),
    (15, "qint16", _quantized("qint16", np.int16)),
    (16, "quint16", _quantized("quint16", np.uint16)),
    (17, "uint16", np.dtype(np.uint16)),
    (18, "complex128", np.dtype(np.complex128)),
    (19, "float16", np.dtype(np.float16)),
    (20, "resource", _OBJECT),
    (21, "variant", _OBJECT),
    (22, "uint32", np.dtype(np.uint32)),
    (23, "uint64", np.dtype(np.uint64)),
    (24, "float8_e5m2", np.dtype(ml_dtypes.float8_e5m2)),
    (25, "float8_e4m3fn", np.dtype(ml_dtypes.float8_e4m3fn)),
    (26, "float8_e4m3fnuz", np.dtype(ml_dtypes.float8_e4m3fnuz)),
    (27, "float8_e4m3b11fnuz", np.dtype(ml_dtypes.float8_e4m3b11fnuz)),
    (28, "float8_e5m2fnuz", np.dtype(ml_dtypes.float8_e5m2fnuz)),
    (29, "int4", np.dtype(ml_dtypes.int4)),
    (30, "uint4", np.dtype(ml_dtypes.uint4)),
    (31, "int2", np.dtype(ml_dtypes.int2)),
    (32, "uint2", np.dtype(ml_dtypes.uint2)),
    (33, "float4_e2m1fn", np.dtype(ml_dtypes.float4_e2m1fn)),
)
_FLOATING: Final = frozenset(name for _, name, _ in _TABLE if name.startswith(("float", "bfloat")))
_INTEGER: Final = frozenset(name for _, name, _ in _TABLE if name.startswith(("int", "uint")))
_PROTO_NAMES: Final = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF"}

_BY_NUMBER: Final[dict[int, DType]] = {}
_BY_NAME: Final[dict[str, DType]] = {}
_BY_NUMPY: Final[dict[np.dtype[Any], DType]] = {}

for _number, _name, _numpy in _TABLE:
    for _suffix, _more in (("", 0), ("_ref", _REF)):
        _dtype = DType(_name + _suffix, _number + _more, _numpy)
        _BY_NUMBER[_dtype.number] = _dtype
        _BY_NAME[_dtype.name] = _dtype
        _BY_NAME[_dtype.proto_name] = _dtype
    if _numpy is not _OBJECT:
        _BY_NUMPY[_numpy] = _BY_NUMBER[_number]
_BY_NAME.update(half=_BY_NAME["float16"], float=_BY_NAME["float32"], double=_BY_NAME["float64"])

float16: Final = _BY_NAME["float16"]
bfloat16: Final = _BY_NAME["bfloat16"]
float32: Final = _BY_NAME["float32"]
float64: Final = _BY_NAME["float64"]
int8: Final = _BY_NAME["int8"]
int16: Final = _BY_NAME["int16"]
int32: Final = _BY_NAME["int32"]
int64: Final = _BY_NAME["int64"]
uint8: Final = _BY_NAME["uint8"]
uint16: Final = _BY_NAME["uint16"]
uint32: Final = _BY_NAME["uint32"]
uint64: Final = _BY_NAME["uint64"]
complex64: Final = _BY_NAME["complex64"]
complex128: Final = _BY_NAME["complex128"]
bool_: Final = _BY_NAME["bool"]
string: Final = _BY_NAME["string"]
resource: Final = _BY_NAME["resource"]
variant: Final = _BY_NAME["variant"]
qint8: Final = _BY_NAME["qint8"]
quint8: Final = _BY_NAME["quint8"]
qint16: Final = _BY_NAME["qint16"]
quint16: Final = _BY_NAME["quint16"]
qint32: Final = _BY_NAME["qint32"]

ALL: Final[tuple[DType, ...]] = tuple(_BY_NUMBER[number] for number, _, _ in _TABLE)


def of_number(number: int) -> DType:
    """The type with TensorFlow's ``number``; raises InvalidArgumentError for a stranger."""
    try:
        return _BY_NUMBER[number]
    except KeyError:
        raise InvalidArgumentError(f"invalid DataType enum: {number}") from None


def as_dtype(spec: object) -> DType:
    """The type that ``spec`` means: a DType, a name, a number, or anything numpy takes."""
    if isinstance(spec, DType):
        return spec
    if isinstance(spec, str) and spec in _BY_NAME:
        return _BY_NAME[spec]
    if isinstance(spec, int) and not isinstance(spec, bool):
        return of_number(spec)
    try:
        return of_numpy(np.dtype(spec))  # type: ignore[call-overload]
    except TypeError:
        raise InvalidArgumentError(f"{spec!r} is not a data type") from None


def of_numpy(dtype: np.dtype[Any]) -> DType:
    """The type of arrays of ``dtype``; text and object arrays count as strings."""
    found = _BY_NUMPY.get(dtype)
    if found is not None:
        return found
    if dtype.kind in "OSU":
        return string
    native = _BY_NUMPY.get(dtype.newbyteorder("="))
    if native is None:
        raise InvalidArgumentError(f"numpy type {dtype} has no TensorFlow counterpart")
    return native
