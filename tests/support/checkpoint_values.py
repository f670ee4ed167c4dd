"""The tensors of the checkpoints in ``tests/checkpoint/files``, which TensorFlow wrote.

Made without TensorFlow and without Penstock; ``tools/make_checkpoints.py`` writes them, tests
compare what is read.
"""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

#: Types of numbers that both versions of the format have.
COMMON: Final = (
    *("float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "int64"),
    *("complex64", "complex128", "bool"),
)
#: Those that only the second has.
NEWER: Final = ("uint32", "uint64", "bfloat16")


def numbers(name: str) -> Any:
    """Some numbers of a type, [2, 3], the largest and odd ones included."""
    kind = np.dtype(getattr(ml_dtypes, name, None) or name)
    draw = np.random.default_rng(len(name))
    if kind.kind == "b":
        return np.array([[True, False, True], [False, False, True]])
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return draw.integers(limits.min, limits.max, (2, 3), kind, endpoint=True)
    values = draw.standard_normal((2, 3)) * 1000
    values[0] = np.nan, np.inf, -0.0
    out = np.empty((2, 3), kind)
    out[...] = values
    if kind.kind == "c":
        out.imag = values[::-1]
    return out


def texts() -> Any:
    """Strings of many lengths: none, bytes that are no UTF-8, more than a varint of one byte."""
    items = [b"", b"a", b"\xff\x00\xfe", "ü".encode(), b"x" * 127, b"y" * 20_000]
    return np.array(items, object).reshape(3, 2)


def mixed(*, newer: bool) -> dict[str, Any]:
    """A tensor of each type, strings, a scalar, an empty one."""
    return {
        **{f"types/{name}": numbers(name) for name in (*COMMON, *(NEWER if newer else ()))},
        "texts": texts(),
        "text": np.array(b"alone", object),
        "scalar": np.float32(1.5),
        "empty": np.zeros((0, 3), np.float32),
    }


def table() -> Any:
    """[10, 3], saved in parts of 4, 3 and 3 rows."""
    return np.arange(30, dtype=np.float32).reshape(10, 3)


#: Rows of ``table`` in each part.
ROWS: Final = (4, 3, 3)


def objects() -> dict[str, Any]:
    """Values by paths: lists, names with slashes and dots, an optimizer's slot."""
    return {
        "net/layer/kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
        "net/layers/0/bias": np.float32([1, 2]),
        "net/layers/1/bias": np.float32([3, 4]),
        "step": np.int64(7),
    }
