"""The library of ``kernels/c``: whether it is there, and its functions.

In:   nothing.
Out:  the library as ctypes has it, loaded when it is first asked for; None if there is none.
Not:  checks no array: a wrong number in ``Convolution`` is a wrong place in memory.

It was built when Penstock was installed.  One that was built of other sources is not used.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any, Final

from penstock.core.forks import in_children

#: As in ``convolution.h``.
_LAYOUT: Final = 24
_LIBRARY: Final = os.path.join(os.path.dirname(__file__), "kernels.clib")
#: The library, once it was asked for.  Only grows; each access is one operation of the list.
_loaded: Final[list[Any]] = []

_POINTERS: Final = ("images", "framed", "filters", "packing", "bias", "added", "out")
_LIMITS: Final = ("low", "high")
_NUMBERS: Final = (
    *("planes", "image_rows", "image_columns", "depth"),
    *("image_step", "row_step", "column_step"),
    *("planes_before", "rows_before", "columns_before"),
    *("framed_planes", "framed_rows", "framed_columns", "framed_column_step"),
    *("row_stride", "column_stride", "row_dilation", "column_dilation"),
    *("batch", "rows", "columns", "count"),
    *("window_planes", "window_rows", "window_columns"),
    *("out_image_step", "out_row_step", "out_column_step"),
    "filters_step",
    *("seen_image_step", "seen_row_step", "seen_column_step"),
    *("element_plane_step", "element_row_step", "element_column_step"),
)


class Convolution(ctypes.Structure):
    """The structure of that name in ``convolution.h``, which says what the fields are."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _POINTERS),
        *((name, ctypes.c_float) for name in _LIMITS),
        *((name, ctypes.c_int64) for name in _NUMBERS),
    )


class Packing(ctypes.Structure):
    """The structure of that name in ``convolution.h``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("filters", "packed")),
        *((name, ctypes.c_int64) for name in ("batch", "elements", "depth", "count")),
        *((name, ctypes.c_int64) for name in ("batch_step", "element_step", "filter_step")),
        ("packed_step", ctypes.c_int64),
    )


class Pooling(ctypes.Structure):
    """The structure of that name in ``pooling.h``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("images", "gradients", "filters", "parts", "out")),
        *((name, ctypes.c_int64) for name in ("batch", "image_rows", "image_columns", "depth")),
        *((name, ctypes.c_int64) for name in ("rows", "columns", "window_rows", "window_columns")),
        *((name, ctypes.c_int64) for name in ("row_stride", "column_stride")),
        *((name, ctypes.c_int64) for name in ("rows_before", "columns_before", "way")),
    )


class Rows(ctypes.Structure):
    """The structure of that name in ``rows.h``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("from_", "to", "also_to")),
        *((name, ctypes.c_void_p) for name in ("added", "scale", "offset")),
        *((name, ctypes.c_int64) for name in ("count", "length", "is_centered", "way")),
        *((name, ctypes.c_float) for name in ("epsilon", "factor")),
    )


class Columns(ctypes.Structure):
    """The structure of that name in ``columns.h``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("from_", "other")),
        *((name, ctypes.c_void_p) for name in ("mean", "scale", "offset", "factor", "to")),
        *((name, ctypes.c_int64) for name in ("count", "length", "rows_in_piece")),
    )


class Segments(ctypes.Structure):
    """The structure of that name in ``segments.h``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("rows", "end", "gathered", "weights")),
        *((name, ctypes.c_void_p) for name in ("starts", "sums")),
        *((name, ctypes.c_int64) for name in ("count", "length")),
    )


class Philox(ctypes.Structure):
    """The structure of that name in ``philox.h``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("offsets", "numbers")),
        *((name, ctypes.c_int64) for name in ("count", "step", "way")),
        *((name, ctypes.c_uint64) for name in ("key", "low", "high")),
    )


class Blend(ctypes.Structure):
    """The structure of that name in ``resizing.h``."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("first", "second", "parts"))


class Resizing(ctypes.Structure):
    """The structure of that name in ``resizing.h``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("images", "out", "spare")),
        *((name, Blend) for name in ("by_row", "by_column")),
        *((name, ctypes.c_int64) for name in ("batch", "image_rows", "image_columns", "depth")),
        *((name, ctypes.c_int64) for name in ("rows", "columns", "band", "is_of_bytes")),
    )


class Conversion(ctypes.Structure):
    """The structure of that name in ``narrow.h``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("from_", "to")),
        *((name, ctypes.c_int64) for name in ("count", "way")),
    )


class Extremes(ctypes.Structure):
    """The structure of that name in ``extremes.h``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("from_", "to")),
        *((name, ctypes.c_int64) for name in ("outer", "length", "inner", "is_least")),
    )


class Along(ctypes.Structure):
    """The structure of that name in ``crops.h``."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("lower", "upper", "part", "is_inside"))


class Crops(ctypes.Structure):
    """The structure of that name in ``crops.h``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("images", "owners", "out")),
        *((name, Along) for name in ("by_row", "by_column")),
        *((name, ctypes.c_int64) for name in ("count", "rows", "columns")),
        *((name, ctypes.c_int64) for name in ("image_rows", "image_columns", "depth")),
        ("outside", ctypes.c_float),
    )


class Colors(ctypes.Structure):
    """The structure of that name in ``colors.h``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("from_", "to")),
        *((name, ctypes.c_int64) for name in ("count", "way")),
        ("amount", ctypes.c_float),
    )


class Weighing(ctypes.Structure):
    """The structure of that name in ``weighing.h``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("from_", "to", "sources", "weights")),
        *((name, ctypes.c_int64) for name in ("outer", "before", "after", "taps", "length")),
    )


#: Those whose sizes tell whether a library is of these sources.
_STRUCTURES: Final = (
    *(Convolution, Packing, Pooling, Rows, Columns, Segments, Philox, Resizing, Conversion),
    *(Extremes, Crops, Colors, Weighing),
)


class Library:
    """Functions in C, with one kind of vectors."""

    def __init__(self, functions: Any, kind: int) -> None:
        """Declare them.

        Args:
            functions: the loaded library.
            kind: a number below what ``penstock_kinds`` says.

        """
        self._kind: Final = kind
        functions.penstock_widest.restype = ctypes.c_int64
        #: How many places are read side by side, if there are so many.
        self.widest: Final[int] = functions.penstock_widest(kind)
        self._packed_bytes: Final = functions.penstock_packed_bytes
        self._packed_bytes.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
        self._packed_bytes.restype = ctypes.c_int64

        def working(name: str, work: type[ctypes.Structure], gives: Any = None) -> Any:
            """A function that does some work, with so many threads besides."""
            function = getattr(functions, f"penstock_{name}")
            function.argtypes = ctypes.c_int, ctypes.POINTER(work), ctypes.c_int
            function.restype = gives
            return function

        self._pack: Final = working("pack", Packing)
        self._transform_filters: Final = working("transform_filters", Packing)
        self._convolve: Final = working("convolve", Convolution)
        self._correlate: Final = working("correlate", Convolution)
        self._slide: Final = working("slide", Convolution)
        self._winograd: Final = working("winograd", Convolution, ctypes.c_int)
        self._pool: Final = working("pool", Pooling)
        self._softmax: Final = working("softmax", Rows)
        self._log_softmax: Final = working("log_softmax", Rows)
        self._prediction: Final = working("prediction", Rows)
        self._moments: Final = working("moments", Rows)
        self._sums: Final = working("sums", Rows)
        self._reduce: Final = working("reduce", Rows)
        self._normalize: Final = working("normalize", Rows)
        self._column_sums: Final = working("column_sums", Columns)
        self._scale_columns: Final = working("scale_columns", Columns)
        self._send_back: Final = working("send_back", Columns)
        self._segments: Final = working("segments", Segments)
        self._philox: Final = working("philox", Philox)
        self._resize: Final = working("resize", Resizing)
        self._narrow: Final = working("narrow", Conversion)
        self._extremes: Final = working("extremes", Extremes)
        self._crop: Final = working("crop", Crops)
        self._weigh: Final = working("weigh", Weighing)
        self._recolor: Final = working("recolor", Colors)

    def packed_bytes(self, elements: int, count: int) -> int:
        """Bytes that so many filters of so many elements take when they are packed."""
        size: int = self._packed_bytes(self._kind, elements, count)
        return size

    def pack(self, packing: Packing, helpers: int) -> None:
        """Put filters into the order in which they are read."""
        self._pack(self._kind, packing, helpers)

    def convolve(self, convolution: Convolution, helpers: int) -> None:
        """Windows over all of the depth, with filters that are packed, or are to be."""
        self._convolve(self._kind, convolution, helpers)

    def transform_filters(self, packing: Packing, helpers: int) -> None:
        """Make 36 numbers of the nine of each channel and filter, for ``winograd``."""
        self._transform_filters(self._kind, packing, helpers)

    def winograd(self, convolution: Convolution, helpers: int) -> bool:
        """Windows of three by three, with fewer products; false if a sum is not finite.

        Results are of no use then.
        """
        return bool(self._winograd(self._kind, convolution, helpers))

    def correlate(self, convolution: Convolution, helpers: int) -> None:
        """The gradient of filters; gradients of places stand for these."""
        self._correlate(self._kind, convolution, helpers)

    def pool(self, pooling: Pooling, helpers: int) -> None:
        """The greatest or the mean under windows, or their gradients."""
        self._pool(self._kind, pooling, helpers)

    def softmax(self, rows: Rows, helpers: int) -> None:
        """Of each row times a factor."""
        self._softmax(self._kind, rows, helpers)

    def log_softmax(self, rows: Rows, helpers: int) -> None:
        """The logarithm of the softmax of each row."""
        self._log_softmax(self._kind, rows, helpers)

    def prediction(self, rows: Rows, helpers: int) -> None:
        """The softmax; and the sum of what was divided by it, and the largest number."""
        self._prediction(self._kind, rows, helpers)

    def sums(self, rows: Rows, helpers: int) -> None:
        """The sum of each row."""
        self._sums(self._kind, rows, helpers)

    def reduce(self, rows: Rows, helpers: int) -> None:
        """What each row of few numbers comes to."""
        self._reduce(self._kind, rows, helpers)

    def moments(self, rows: Rows, helpers: int) -> None:
        """The mean of each row, and its variance."""
        self._moments(self._kind, rows, helpers)

    def normalize(self, rows: Rows, helpers: int) -> None:
        """Each row with mean 0 and variance 1, times a scale and plus an offset."""
        self._normalize(self._kind, rows, helpers)

    def sum_columns(self, columns: Columns, helpers: int) -> None:
        """Sums by channel of each piece of rows."""
        self._column_sums(self._kind, columns, helpers)

    def scale_columns(self, columns: Columns, helpers: int) -> None:
        """Rows less means, times a scale and plus an offset by channel."""
        self._scale_columns(self._kind, columns, helpers)

    def send_back(self, columns: Columns, helpers: int) -> None:
        """Gradients less what goes through means and variances, times a factor by channel."""
        self._send_back(self._kind, columns, helpers)

    def sum_segments(self, segments: Segments, helpers: int) -> None:
        """The sums of gathered rows, segment by segment."""
        self._segments(self._kind, segments, helpers)

    def draw_numbers(self, philox: Philox, helpers: int) -> None:
        """Random words, or numbers made of them, four for each value of a counter."""
        self._philox(self._kind, philox, helpers)

    def resize(self, resizing: Resizing, helpers: int) -> None:
        """Images of another size."""
        self._resize(self._kind, resizing, helpers)

    def convert(self, conversion: Conversion, helpers: int) -> None:
        """Numbers of another width."""
        self._narrow(self._kind, conversion, helpers)

    def find_extremes(self, extremes: Extremes, helpers: int) -> None:
        """Where the greatest or the least number of each row is."""
        self._extremes(self._kind, extremes, helpers)

    def crop(self, crops: Crops, helpers: int) -> None:
        """Parts of images."""
        self._crop(self._kind, crops, helpers)

    def recolor(self, colors: Colors, helpers: int) -> None:
        """Pixels with other colours."""
        self._recolor(self._kind, colors, helpers)

    def weigh(self, weighing: Weighing, helpers: int) -> None:
        """Rows that are weighed and added up."""
        self._weigh(self._kind, weighing, helpers)

    def slide(self, convolution: Convolution, helpers: int) -> None:
        """Windows of one channel each, with filters as they are."""
        self._slide(self._kind, convolution, helpers)


@functools.cache
def library() -> Library | None:
    """The library, with the longest vectors that the processor has."""
    functions = loaded()
    return None if functions is None else Library(functions, functions.penstock_kinds() - 1)


@functools.cache
def loaded() -> Any:
    """The library as it is; None if there is none."""
    functions = load(_LIBRARY)
    if functions is not None:
        in_children(functions.penstock_forget_threads)
        _loaded.append(functions)
    return functions


def is_loaded() -> bool:
    """Whether somebody has asked for the library, and there is one."""
    return bool(_loaded)


def load(path: str | os.PathLike[str], layout: int = _LAYOUT) -> Any:
    """A library at a path; None if there is none, or one of other sources."""
    try:
        functions = ctypes.CDLL(os.fspath(path))
        ask = functions.penstock_layout
    except (OSError, AttributeError):
        return None
    ask.restype = ctypes.c_int64
    convolution, *others = map(ctypes.sizeof, _STRUCTURES)
    return functions if ask() == (layout * 4096 + convolution) * 4096 + sum(others) else None
