"""Files: reading, writing and finding them.

In:   names and patterns of files, contents.
Out:  contents, names.
Not:  knows no formats; checkpoints stand in ``checkpoint_ops``.
"""

from __future__ import annotations

import os

from penstock.core.values import Array, Value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.paths import path_in
from penstock.kernels.values.strings import items_of, string_array


@kernel("ReadFile")
def make_read_file(attrs: Attrs) -> Kernel:
    """Everything in a file."""
    files = attrs.host.files
    return lambda filename: files.read(path_in(filename, "filename"))


@kernel("WriteFile")
def make_write_file(attrs: Attrs) -> Kernel:
    """Nothing; the file is written, and the folders that it needs are made."""
    files = attrs.host.files

    def compute(filename: Value, contents: Value) -> None:
        if shape_of(contents) != ():
            raise InvalidArgumentError(
                f"Contents tensor must be scalar, but had shape: {shape_text(shape_of(contents))}"
            )
        files.write(path_in(filename, "filename"), items_of(contents)[0])

    return compute


@kernel("MatchingFiles")
def make_matching_files(attrs: Attrs) -> Kernel:
    """Names of all files and folders that fit a pattern, in alphabetical order."""
    files = attrs.host.files

    def compute(patterns: Value) -> Array:
        found = [files.matching(os.fsdecode(pattern)) for pattern in items_of(patterns)]
        names = sorted(os.fsencode(name) for names in found for name in names)
        return string_array(names, (len(names),))

    return compute


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
