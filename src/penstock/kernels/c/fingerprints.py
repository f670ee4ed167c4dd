"""FarmHash's fingerprints of many texts, by the library in C.

In:   texts.
Out:  a number of 64 bits for each; None where there is no library.
Not:  says what the function is: that is ``kernels/values/fingerprints.py``.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.library import loaded


def farmhash64_in_c(texts: Sequence[bytes]) -> Array | None:
    """Fingerprint64 of each text, as uint64; None if that is for others to do."""
    function = _function()
    if function is None:
        return None
    count = len(texts)
    sizes = np.fromiter(map(len, texts), np.int64, count)
    result = np.empty(count, np.uint64)
    function(b"".join(texts), address(sizes), count, address(result))
    return result


@functools.cache
def _function() -> Any:
    library = loaded()
    if library is None or sys.byteorder != "little":
        return None
    function, pointer = library.penstock_fingerprints, ctypes.c_void_p
    function.argtypes = ctypes.c_char_p, pointer, ctypes.c_int64, pointer
    function.restype = None
    return function
