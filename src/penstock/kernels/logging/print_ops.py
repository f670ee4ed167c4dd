"""Ops that write text for whoever watches the run.

In:   values, or a finished text.
Out:  the text on standard error, or where the attributes want it; Print returns its input.
Not:  formats nothing, printing does.

The text is the graph's, and goes to a file or a pipe as it is.  A terminal would obey the control
sequences in it, so there they are shown as escapes.
"""

from __future__ import annotations

import sys
from itertools import count
from typing import Final, TextIO

import numpy as np

from penstock.core.values import Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.printing import summarize
from penstock.printable import printable_lines

_STREAMS: Final = ("stdout", "stderr", "log(info)", "log(warning)", "log(error)")


@kernel("Print", cost=Cost.CHEAP)
def make_print(attrs: Attrs) -> Kernel:
    """The first input; shows the others on standard error, the first few times."""
    message, first_n = attrs.str("message"), attrs.int("first_n")
    limit = attrs.int("summarize")
    calls = count()  # its next() is atomic, so that steps may share it

    def print_(value: Value, *data: Value) -> Value:
        if first_n < 0 or next(calls) < first_n:
            shown = "".join(f"[{summarize(item, limit)}]" for item in data)
            _write(sys.stderr, f"{message}{shown}\n")
        return value

    return print_


@kernel("PrintV2", cost=Cost.CHEAP)
def make_print_v2(attrs: Attrs) -> Kernel:
    """Nothing; writes the text to a stream, or adds it to a file."""
    stream, end = attrs.str("output_stream"), attrs.str("end")
    path = stream.removeprefix("file://") if stream.startswith("file://") else ""
    files = attrs.host.files
    if not path and stream not in _STREAMS:
        raise InvalidArgumentError(
            f"Unknown output stream: {stream}, Valid streams are: {' '.join(_STREAMS)}"
        )

    def print_v2(text: Value) -> None:
        if isinstance(text, np.ndarray) and text.ndim:
            raise InvalidArgumentError(
                f"Input is expected to be scalar, but got {shape_text(text.shape)}"
            )
        line = (text if isinstance(text, bytes) else text[()]).decode("utf-8", "replace") + end
        if path:
            files.extend(path, line.encode())
        else:
            _write(sys.stdout if stream == "stdout" else sys.stderr, line)

    return print_v2


def _write(stream: TextIO, text: str) -> None:
    stream.write(printable_lines(text) if stream.isatty() else text)
