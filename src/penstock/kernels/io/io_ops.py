"""Files: reading, writing and finding them.

In:   names and patterns of files, contents.
Out:  contents, names.
Not:  knows no formats; checkpoints stand in ``checkpoint_ops``.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re

from penstock.core.values import Array, Value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.files import path_in, read_file, write_file
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.strings import items_of, string_array


@kernel("ReadFile")
def make_read_file(_attrs: Attrs) -> Kernel:
    """Everything in a file."""
    return lambda filename: read_file(path_in(filename, "filename"))


@kernel("WriteFile")
def make_write_file(_attrs: Attrs) -> Kernel:
    """Nothing; the file is written, and the folders that it needs are made."""

    def compute(filename: Value, contents: Value) -> None:
        if shape_of(contents) != ():
            raise InvalidArgumentError(
                f"Contents tensor must be scalar, but had shape: {shape_text(shape_of(contents))}"
            )
        write_file(path_in(filename, "filename"), items_of(contents)[0])

    return compute


@kernel("MatchingFiles")
def make_matching_files(_attrs: Attrs) -> Kernel:
    """Names of all files and folders that fit a pattern, in alphabetical order."""

    def compute(patterns: Value) -> Array:
        names = sorted(name for item in items_of(patterns) for name in _matches(item))
        return string_array(names, (len(names),))

    return compute


def _matches(pattern: bytes) -> list[bytes]:
    """Names that fit; ``*`` and ``?`` stand for anything but a slash, dots included."""
    # In TensorFlow's patterns a leading caret may negate a set, as in regular expressions.
    folder, name = os.path.split(os.fsdecode(pattern.replace(b"[^", b"[!")))
    if not glob.has_magic(folder + name):
        return [pattern] if os.path.lexists(os.fsdecode(pattern)) else []
    folders = glob.glob(folder, include_hidden=True) if glob.has_magic(folder) else [folder]
    fits = re.compile(fnmatch.translate(name)).match
    return [
        os.fsencode(os.path.join(place, entry))
        for place in folders
        if os.path.isdir(place or ".")
        for entry in os.listdir(place or ".")
        if fits(entry)
    ]


def _scalars(names: tuple[str, ...], values: tuple[Value, ...]) -> tuple[Value, ...]:
    """The values, which must be scalars."""
    for name, value in zip(names, values, strict=True):
        if shape_of(value) != ():
            raise InvalidArgumentError(
                f"{name} must be a scalar, got shape {shape_text(shape_of(value))}"
            )
    return values


@kernel("ShardedFilename")
def make_sharded_filename(_attrs: Attrs) -> Kernel:
    """The name of one of several files: ``base-00002-of-00010``."""

    def compute(*inputs: Value) -> bytes:
        base, shard, count = _scalars(("basename", "shard", "num_shards"), inputs)
        return items_of(base)[0] + b"-%05d-of-%05d" % (int(shard), int(count))

    return compute


@kernel("ShardedFilespec")
def make_sharded_filespec(_attrs: Attrs) -> Kernel:
    """A pattern for the names of several files: ``base-?????-of-00010``."""

    def compute(*inputs: Value) -> bytes:
        base, count = _scalars(("basename", "num_shards"), inputs)
        return items_of(base)[0] + b"-?????-of-%05d" % int(count)

    return compute
