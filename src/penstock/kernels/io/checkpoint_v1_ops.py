"""Checkpoints of TensorFlow's first version: saving tensors and restoring them.

In:   names of files and tensors, shapes and parts, tensors.
Out:  tensors.
Not:  knows no variables; the format stands in ``defs.saved_slices``.
"""

from __future__ import annotations

import os

from penstock.core.dtypes import DType
from penstock.core.files import FileSystem, folder_of
from penstock.core.values import Value, shape_of
from penstock.defs.saved_slices import Saved, Stored, read_slices, write_slices
from penstock.defs.tensor_slices import all_of, parse_shape_and_slice
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.strings import items_of


@kernel("Save", "SaveSlices")
def make_save(attrs: Attrs) -> Kernel:
    """Nothing; the tensors, or parts of tensors, stand in a file."""
    types, has_slices = attrs.list("T"), attrs.op.name == "SaveSlices"
    files = attrs.host.files

    def save(filename: Value, names: Value, *inputs: Value) -> None:
        path = os.fsdecode(_only(filename, 0, "filename"))
        keys = items_of(names)
        parts = items_of(inputs[0]) if has_slices else [b""] * len(keys)
        values = inputs[1:] if has_slices else inputs
        if len(keys) != len(values):
            raise InvalidArgumentError(
                f"Expected totally {len(keys) + 2 + has_slices} inputs as input #1 (which is a "
                f"string tensor of saved names) contains {len(keys)} names, but received "
                f"{len(values) + 2 + has_slices} inputs"
            )
        if len(parts) != len(keys):
            raise InvalidArgumentError(
                f"Expected {len(keys)} elements for the tensor shapes and slices but got "
                f"{len(parts)}"
            )
        contents = write_slices(list(map(_saved, keys, parts, types, values)))
        files.make_folder(folder_of(path))
        with files.create(path) as file:
            file.write(contents)

    return save


def _only(value: Value, number: int, name: str) -> bytes:
    items = items_of(value)
    if len(items) != 1:
        raise InvalidArgumentError(
            f"Input {number} ({name}) must be a string scalar; got a tensor of "
            f"{len(items)} elements"
        )
    return items[0]


def _saved(name: bytes, text: bytes, dtype: DType, value: Value) -> Saved:
    shape = shape_of(value)
    if not text:
        return Saved(name, shape, all_of(shape), dtype, as_array(value))
    whole, part = parse_shape_and_slice(text.decode("utf-8", "replace"))
    part = part or all_of(whole)
    if part.lengths != shape:
        raise InvalidArgumentError(
            "Slice in shape_and_slice specification does not match the shape of the tensor to  "
            f"save: {text.decode('utf-8', 'replace')}, tensor: {shape_text(shape)}"
        )
    return Saved(name, whole, part, dtype, as_array(value))


@kernel("Restore", "RestoreSlice")
def make_restore(attrs: Attrs) -> Kernel:
    """A tensor, or a part of it, from the files that a pattern means."""
    dtype, files = attrs.dtype("dt"), attrs.host.files

    def restore(pattern: Value, name: Value, part: Value = b"") -> Value:
        path = os.fsdecode(_only(pattern, 0, "file_pattern"))
        names, parts = items_of(name), items_of(part)
        if not names or not parts:
            raise InvalidArgumentError("Input 1 (file_pattern) must be a have at least 1 element")
        return restored(open_slices(path, files), path, names[0], parts[0], dtype)

    return restore


def open_slices(pattern: str, files: FileSystem) -> dict[bytes, Stored]:
    """The tensors of the files that a pattern means; raises NotFoundError if there is none."""
    paths = files.matching(pattern)
    if not paths:
        raise NotFoundError(
            "Unsuccessful TensorSliceReader constructor: Failed to find any matching files "
            f"for {pattern}"
        )
    return read_slices(map(files.read, paths))


def restored(
    found: dict[bytes, Stored], pattern: str, name: bytes, text: bytes, dtype: DType
) -> Value:
    """A tensor, or a part of it, that must have the type and sizes that are expected."""
    shown, stored = name.decode("utf-8", "replace"), found.get(name)
    if stored is None:
        raise NotFoundError(f'Tensor name "{shown}" not found in checkpoint files {pattern}')
    if stored.dtype is not dtype:
        raise InvalidArgumentError(
            f"Expected to restore a tensor of type {type_text(dtype)}, got a tensor of type "
            f"{type_text(stored.dtype)} instead: tensor_name = {shown}"
        )
    if not text:
        return stored.read(None)
    shape, part = parse_shape_and_slice(text.decode("utf-8", "replace"))
    if shape != stored.shape:
        raise InvalidArgumentError(
            "Shape in shape_and_slice spec does not match the shape in the save file: "
            f"{shape_text(shape)}, save file shape: {shape_text(stored.shape)}"
        )
    return stored.read(part)
