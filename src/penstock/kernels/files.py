"""Reading and writing files, with TensorFlow's errors.

In:   paths, as strings of the graph.
Out:  bytes; or NotFoundError and its kin, which begin with the path.
Not:  registers no kernel; knows no formats, and no file systems but the machine's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from penstock.core.values import Value, shape_of
from penstock.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    UnknownError,
    shown_cause,
)
from penstock.kernels.arrays import shape_text

_ERRORS: Final[tuple[tuple[type[OSError], type[OpError]], ...]] = (
    (FileNotFoundError, NotFoundError),
    (IsADirectoryError, FailedPreconditionError),
    (NotADirectoryError, FailedPreconditionError),
    (PermissionError, PermissionDeniedError),
    (FileExistsError, AlreadyExistsError),
    (OSError, UnknownError),
)


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Turn what the operating system says about ``path`` into canonical errors."""
    try:
        yield
    except OSError as cause:
        reason = cause.strerror or str(cause)
        for kind, error in _ERRORS:
            if isinstance(cause, kind):
                raise error(f"{path}; {reason}") from shown_cause(cause)
    except ValueError as cause:  # a path that contains a zero
        raise InvalidArgumentError(f"{path!r}; {cause}") from shown_cause(cause)


def path_in(value: Value, what: str) -> str:
    """The path in a scalar."""
    if shape_of(value) != ():
        raise InvalidArgumentError(
            f"Input {what} tensor must be scalar, but had shape: {shape_text(shape_of(value))}"
        )
    text = value if isinstance(value, bytes) else value.item()
    return os.fsdecode(text)


def read_file(path: str) -> bytes:
    """Everything in a file."""
    with file_errors(path), open(path, "rb") as file:
        return file.read()


def write_file(path: str, contents: bytes) -> None:
    """Write a file, and the folders it is in."""
    with file_errors(path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "wb") as file:
            file.write(contents)
