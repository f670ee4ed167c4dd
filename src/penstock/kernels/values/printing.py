"""Values as TensorFlow prints them.

In:   a value, and how many elements to show.
Out:  text, in one of two forms.
Not:  writes nothing anywhere.

The older form stands in the messages of Assert and Print: the first elements, without the
outermost brackets, ``[1 2][3...]...``.  The newer one stands in StringFormat: the first
and last ones of each dimension, ``[[1 2 ... 8 9]\n [10 11 ... 18 19]]``.  Elements that are no
plain numbers are listed in both forms as if they stood in one row, ``<TensorList> <7>...``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value, dtype_of
from penstock.kernels.values.arrays import as_array

_ESCAPES: Final = {
    **{code: f"\\{code:03o}" for code in (*range(32), 127)},
    ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t",
    ord('"'): '\\"', ord("'"): "\\'", ord("\\"): "\\\\",
}  # fmt: skip


def summarize(value: Value, limit: int) -> str:
    """The first ``limit`` elements in the older form; all of them if it is negative."""
    array = as_array(value)
    if array.size == 0:
        return ""
    if limit < 0:
        limit = array.size
    if not _is_regular(dtype_of(value)):
        return _listed(array, limit)
    shown = iter([_text(dtype_of(value))(item) for item in array.ravel()[:limit].tolist()])
    text = _first_rows(shown, limit, array.shape, 0)[0] if array.ndim else "".join(shown)
    return text + ("..." if limit < array.size and (array.ndim != 1 or limit == 0) else "")


def _is_regular(dtype: DType) -> bool:
    """Whether elements are shown in as many brackets as there are dimensions."""
    is_object = dtype.is_object and dtype is not dtypes.string
    return not (is_object or dtype.is_complex or dtype is dtypes.qint32)


def _listed(array: Array, limit: int) -> str:
    """The first elements, whatever the shape; an object in angle brackets, a number as ``?``."""
    shown = [f"<{item}>" if array.dtype.hasobject else "?" for item in array.ravel()[:limit]]
    return " ".join(shown) + ("..." if limit < array.size else "")


def _first_rows(
    shown: Iterator[str], left: int, shape: tuple[int, ...], depth: int
) -> tuple[str, int]:
    """Text of one part of the array, and how many elements may still follow."""
    if depth == len(shape) - 1:
        count = min(left, shape[depth])
        text = " ".join(next(shown) for _ in range(count))
        return text + ("..." if 0 < count < shape[depth] else ""), left - count
    rows = []
    for _ in range(shape[depth]):
        if left == 0:
            break
        row, left = _first_rows(shown, left, shape, depth + 1)
        rows.append(f"[{row}]")
    return "".join(rows), left


def summarize_ends(value: Value, limit: int) -> str:
    """The first and last ``limit`` elements of each dimension, in the newer form."""
    array = as_array(value)
    if limit < 0 or array.size == 0:
        limit = array.size
    if not _is_regular(dtype_of(value)):
        return f"[{_listed(array, limit)}]" if array.ndim else _listed(array, limit)
    text = _text(dtype_of(value), quote='"')
    if array.ndim == 0:
        return text(array.item()) if limit else "..."
    return _ends(array, limit, 0, text)


def _ends(array: Array, limit: int, depth: int, text: Callable[[Any], str]) -> str:
    """Text of one part of the array, ``depth`` dimensions below the top."""
    if len(array) == 0:
        return "[]"
    gap = "\n" * (array.ndim - 1) + " " * (depth + 1) if array.ndim > 1 else " "
    is_cut = len(array) > 2 * limit
    head, tail = (array[:limit], array[len(array) - limit :]) if is_cut else (array, array[:0])

    def shown(part: Array) -> list[str]:
        if part.ndim == 1:
            return [text(item) for item in part.tolist()]
        return [_ends(row, limit, depth + 1, text) for row in part]

    first = gap.join(shown(head))
    return f"[{first}{gap}{gap.join(['...', *shown(tail)])}]" if is_cut else f"[{first}]"


def _text(dtype: DType, quote: str = "") -> Callable[[Any], str]:
    """How one element, as a Python value, is shown."""
    if dtype is dtypes.string:
        return lambda item: quote + item.decode("utf-8", "replace").translate(_ESCAPES) + quote
    if dtype.is_floating:
        return _short_double if dtype is dtypes.float64 else _short_float
    if dtype.is_quantized:
        return lambda item: str(item[0])
    return lambda item: str(int(item))


def _short_float(item: float) -> str:
    """Six digits, or nine if fewer would mean another float32."""
    short = f"{item:.6g}"
    return short if np.float32(short) == item or item != item else f"{item:.9g}"


def _short_double(item: float) -> str:
    """Fifteen digits, or seventeen if fewer would mean another float64."""
    short = f"{item:.15g}"
    return short if float(short) == item or item != item else f"{item:.17g}"
