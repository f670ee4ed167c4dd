"""Paths in values.

In:   strings of the graph.
Out:  paths, for the file system of the kernel's ``Host``.
Not:  registers no kernel; touches no file.
"""

from __future__ import annotations

import os

from penstock.core.values import Value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.values.arrays import shape_text


def path_in(value: Value, what: str) -> str:
    """The path in a scalar."""
    if shape_of(value) != ():
        raise InvalidArgumentError(
            f"Input {what} tensor must be scalar, but had shape: {shape_text(shape_of(value))}"
        )
    text = value if isinstance(value, bytes) else value.item()
    return os.fsdecode(text)
