"""What stands in the files of records in ``tests/records/files``, which TensorFlow wrote."""

from __future__ import annotations

from typing import Any, Final

import numpy as np


def texts(*items: bytes) -> Any:
    """A vector of strings."""
    array = np.empty(len(items), object)
    array[:] = items
    return array


#: Nothing, little, zeros, and more than is cut into lanes for its checksum.
RECORDS: Final = (b"abc", b"", bytes(50), bytes(range(256)) * 20)
EXAMPLES: Final = (
    {
        "floats": np.float32([1.5, -0.0, 3e38]),
        "ints": np.int64([2**63 - 1, -(2**63), 0]),
        "texts": texts(b"a", b"\xff\x00", "ü".encode()),
    },
    {"ü/name": np.int64([7]), "none": texts()},
    {},
)
CONTEXT: Final = {"length": np.int64([2]), "title": texts(b"two steps")}
STEPS: Final = {
    "words": [texts(b"a", b"b"), texts()],
    "numbers": [np.float32([1]), np.float32([2, 3])],
}
