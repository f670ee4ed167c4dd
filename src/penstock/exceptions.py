"""What Python raises, as canonical errors.

In:   an exception of any kind: of numpy, of the operating system, of the user's code.
Out:  the ``OpError`` for it, and whether a traceback may show where it comes from.
Not:  raises nothing.
"""

from __future__ import annotations

import errno
import math
import re
from collections.abc import Iterable
from typing import Any, Final

from penstock.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)
from penstock.printable import printable_lines


def shown_cause(cause: BaseException) -> BaseException | None:
    """What to raise an error from: ``cause``, if a traceback may show its text; or else None.

    The text of a Python error may quote a graph or a file, and tracebacks show it as it is.  The
    error that it becomes says the same with escapes.
    """
    try:
        text = str(cause)
    except Exception:  # noqa: BLE001  (an exception may fail to say what it is)
        return None
    return cause if isinstance(cause, OpError) or printable_lines(text) == text else None


def from_exception(cause: BaseException) -> OpError:
    """The canonical error for what a kernel raised.

    Kernels raise plain Python errors for what is wrong with their inputs; only the
    executor, which calls this, turns them into canonical ones.
    """
    if isinstance(cause, OpError):
        return cause
    if not isinstance(cause, Exception):  # SystemExit, KeyboardInterrupt, GeneratorExit
        return UnknownError(f"{type(cause).__name__}: {cause}")
    if isinstance(cause, MemoryError):
        return _out_of_memory(cause)
    text = _reworded(str(cause)) or _WITHOUT_TEXT.get(type(cause)) or type(cause).__name__
    if isinstance(cause, OSError) and cause.errno in _BY_ERRNO:
        return _BY_ERRNO[cause.errno](text)
    for kind, cls in _CANONICAL:
        if isinstance(cause, kind):
            return cls(text)
    return InternalError(
        f"{type(cause).__name__}: {text}",
        next_step="a kernel raised an unexpected Python exception; please report it",
    )


#: What Python's own errors mean that mostly say nothing.
_WITHOUT_TEXT: Final[dict[type[BaseException], str]] = {
    RecursionError: "something is nested too deep"
}


def no_memory_for(shape: Iterable[int], dtype: Any) -> ResourceExhaustedError:
    """The error of an array for which there is no memory; ``dtype`` is numpy's, or has its size."""
    sizes = tuple(map(int, shape))
    return ResourceExhaustedError(
        f"OOM when allocating tensor with shape[{','.join(map(str, sizes))}] and type {dtype}, "
        f"which takes {math.prod(sizes) * dtype.itemsize:,} bytes"
    )


def _out_of_memory(cause: MemoryError) -> ResourceExhaustedError:
    """What a kernel could not get; numpy says for which array."""
    shape, dtype = getattr(cause, "shape", None), getattr(cause, "dtype", None)
    if isinstance(shape, tuple) and hasattr(dtype, "itemsize"):
        return no_memory_for(shape, dtype)
    text = str(cause)
    return ResourceExhaustedError(f"Out of memory: {text}" if text else "Out of memory")


def _reworded(text: str) -> str:
    """The text, but in TensorFlow's words where numpy could not broadcast.

    Arithmetic kernels are bare operators for speed, so nobody else could say it.
    """
    if "could not be broadcast" not in text and "cannot be broadcast" not in text:
        return text
    shapes = [f"[{sizes}]" for sizes in re.findall(r"\(([\d,]*?),?\)", text)]
    return f"Incompatible shapes: {' vs. '.join(shapes)}" if shapes else text


_CANONICAL: Final[tuple[tuple[type[Exception], type[OpError]], ...]] = (
    (NotImplementedError, UnimplementedError),
    (FileNotFoundError, NotFoundError),  # those that users' kernels raise have no number
    (PermissionError, PermissionDeniedError),
    (FileExistsError, AlreadyExistsError),
    (OSError, UnknownError),
    (ArithmeticError, InvalidArgumentError),
    (ValueError, InvalidArgumentError),  # includes numpy's LinAlgError and unicode errors
    (TypeError, InvalidArgumentError),
    (IndexError, InvalidArgumentError),
)

#: What the operating system's errors are, by their names; not every system has all of them.
_ERRNO_NAMES: Final[dict[type[OpError], str]] = {
    InvalidArgumentError: "EINVAL ENAMETOOLONG E2BIG EDESTADDRREQ EDOM EFAULT EILSEQ ENOTSOCK "
    "ENOTTY ESPIPE",
    DeadlineExceededError: "ETIMEDOUT",
    NotFoundError: "ENODEV ENOENT ENXIO ESRCH",
    AlreadyExistsError: "EEXIST EADDRNOTAVAIL EALREADY",
    PermissionDeniedError: "EPERM EACCES EROFS",
    FailedPreconditionError: "ENOTEMPTY EISDIR ENOTDIR EBADF EBUSY ECHILD ENOTBLK EPIPE ETXTBSY",
    ResourceExhaustedError: "ENOSPC EDQUOT EMFILE EMLINK ENFILE ENOBUFS ENOMEM EUSERS",
    OutOfRangeError: "EFBIG EOVERFLOW ERANGE",
    UnimplementedError: "ENOSYS ENOTSUP EXDEV",
    UnavailableError: "EAGAIN EINTR ENOLCK ENOLINK",
    AbortedError: "EDEADLK ESTALE",
    CancelledError: "ECANCELED",
}
_BY_ERRNO: Final[dict[int, type[OpError]]] = {
    number: kind
    for kind, names in _ERRNO_NAMES.items()
    for name in names.split()
    if (number := getattr(errno, name, None)) is not None
}
