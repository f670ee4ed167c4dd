"""What was fetched: printed for people, or written for programs.

In:   values by the name of what was fetched.
Out:  text on stdout, or a .npy or .npz file.
Not:  pickles nothing.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from penstock.cli.layout import columns
from penstock.core.values import Array, Value, dtype_of, shape_of
from penstock.errors import InvalidArgumentError
from penstock.exceptions import from_exception
from penstock.printable import printable
from penstock.session.handles import handle_in

_SUFFIXES = (".npy", ".npz")


def print_values(results: Mapping[str, Value]) -> None:
    """Each value with its name, type and shape; on one line if there is room."""
    for name, given in results.items():
        value = _readable(given)
        shape = shape_of(value)
        sizes = f"[{','.join(map(str, shape))}]" if isinstance(value, np.ndarray) else ""
        head = f"{click.style(printable(name), bold=True)}  {dtype_of(value)}{sizes}"
        body = _text(value)
        is_short = "\n" not in body and len(click.unstyle(head)) + len(body) + 2 <= columns()
        click.echo(f"{head}  {body}" if is_short else f"{head}\n{body}")


def _readable(value: Value) -> Value:
    """A value as people read it: a handle rather than the bytes of its message."""
    handle = handle_in(value)
    return value if handle is None else handle


def _text(value: Value) -> str:
    if not isinstance(value, np.ndarray):
        return _number(value) if isinstance(value, np.floating) else str(value)
    # Numbers of all sizes in one column: numpy alone would write 0.0 or 1.0e+00.
    shown = value.ravel()[:1000] if value.dtype.kind == "f" else ()
    width = max((len(_number(item)) for item in shown), default=0)
    return np.array2string(
        value,
        max_line_width=columns(),
        threshold=1000,
        edgeitems=4,
        formatter={"float_kind": lambda item: _number(item).rjust(width)},
    )


def _number(value: Any) -> str:
    return f"{value:.5g}"


def check_path(path: Path, count: int, what: str = "--fetch") -> None:
    """Refuse a file that could not be written, before anything has run.

    ``what`` is that of which there are ``count``.

    Raises:
        click.UsageError: the suffix, or the directory, is wrong.

    """
    if path.suffix not in _SUFFIXES or (path.suffix == ".npy" and count != 1):
        raise click.UsageError(f"--out takes a .npz file, or a .npy file for a single {what}")
    if not path.absolute().parent.is_dir():
        raise click.UsageError(f"there is no directory {path.absolute().parent}")


def write_values(path: Path, results: Mapping[str, Value]) -> None:
    """One .npy, or a .npz with an array per fetch."""
    arrays = {name: _as_saved(name, value) for name, value in results.items()}
    try:
        if path.suffix == ".npy":
            np.save(path, next(iter(arrays.values())), allow_pickle=False)
        else:
            _write_npz(path, arrays)
    except OSError as cause:
        raise from_exception(cause) from cause
    click.echo(f"wrote {path}", err=True)


def _write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    """What ``np.savez`` writes; but that one takes names as arguments, and has some of its own."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _as_saved(name: str, value: Value) -> Array:
    """The value as numpy can write it: strings get a fixed length."""
    value = _readable(value)
    array = np.asarray(value)
    if not array.dtype.hasobject:
        return array
    if all(isinstance(item, bytes) for item in array.flat):
        return array.astype(np.bytes_)
    raise InvalidArgumentError(f"{name} is a {dtype_of(value)}, which no file can hold")
