"""Saving tensors to checkpoints and restoring them.

In:   a prefix of file names, names of tensors, shapes and parts, tensors.
Out:  tensors.
Not:  knows no variables; the format stands in ``defs.tensor_bundle``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from penstock.core.dtypes import DType
from penstock.core.files import FileSystem, folder_of
from penstock.core.values import Value, shape_of
from penstock.defs.bundle_reader import BundleReader
from penstock.defs.bundle_writer import BundleWriter, merge_bundles
from penstock.defs.tensor_bundle import index_path
from penstock.defs.tensor_slices import parse_shape_and_slice
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.io.checkpoint_v1_ops import open_slices, restored
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.strings import items_of


def _prefix(value: Value) -> str:
    items = items_of(value)
    if len(items) != 1:
        raise InvalidArgumentError(
            f"Input prefix should be a single string, got shape {shape_text(shape_of(value))}"
        )
    return os.fsdecode(items[0])


def _names(names: Value, slices: Value) -> tuple[list[bytes], list[str]]:
    """Names of tensors, and for each the shape and the part that is meant."""
    if len(shape_of(names)) != 1 or len(shape_of(slices)) != 1:
        raise InvalidArgumentError(
            "Input tensor_names and shape_and_slices should be vectors, got shapes "
            f"{shape_text(shape_of(names))} and {shape_text(shape_of(slices))}"
        )
    if names.size != slices.size:
        raise InvalidArgumentError(
            "tensor_names and shape_and_slices have different number of elements: "
            f"{names.size} vs. {slices.size}"
        )
    return items_of(names), [item.decode("utf-8", "replace") for item in items_of(slices)]


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "replace")


@kernel("SaveV2")
def make_save(attrs: Attrs) -> Kernel:
    """Nothing; the tensors stand in a checkpoint."""
    types, files = attrs.list("dtypes"), attrs.host.files

    def save(prefix: Value, names: Value, slices: Value, *tensors: Value) -> None:
        path = _prefix(prefix)
        keys, parts = _names(names, slices)
        if len(keys) != len(tensors):
            raise InvalidArgumentError(f"Got {len(keys)} tensor names but {len(tensors)} tensors.")
        if b"" in keys:
            raise InvalidArgumentError("A tensor without a name cannot be saved")
        files.make_folder(folder_of(path))
        with BundleWriter(path, files) as writer:
            for item in sorted(zip(keys, parts, tensors, types, strict=True), key=lambda i: i[0]):
                _save(writer, *item)

    return save


def _save(writer: BundleWriter, name: bytes, text: str, value: Value, dtype: DType) -> None:
    shape, part = parse_shape_and_slice(text) if text else (shape_of(value), None)
    if (part.lengths if part else shape) != shape_of(value):
        raise InvalidArgumentError(
            "Slice in shape_and_slice specification does not match the shape of the tensor "
            f"to save: {text}, tensor: {shape_text(shape_of(value))}"
        )
    if part is None:
        writer.add(name, value, dtype)
    else:
        writer.add_slice(name, value, dtype, shape, part)


@kernel("RestoreV2")
def make_restore(attrs: Attrs) -> Kernel:
    """Tensors from a checkpoint of either version."""
    types, files = attrs.list("dtypes"), attrs.host.files

    def restore(prefix: Value, names: Value, slices: Value) -> tuple[Value, ...]:
        path = _prefix(prefix)
        keys, parts = _names(names, slices)
        if len(keys) != len(types):
            raise InvalidArgumentError(
                f"Got {len(keys)} tensor names, but {len(types)} expected dtypes."
            )
        if not files.exists(index_path(path)):
            found = open_slices(path, files)
            texts = [text.encode() for text in parts]
            return tuple(
                restored(found, path, *item) for item in zip(keys, texts, types, strict=True)
            )
        reader = BundleReader(path, files)
        for key in keys:
            reader.entry(key)
        return tuple(map(_restore, [reader] * len(keys), keys, parts, types))

    return restore


def _restore(reader: BundleReader, name: bytes, text: str, dtype: DType) -> Value:
    stored = reader.dtype(name)
    if stored is not dtype:
        raise InvalidArgumentError(
            f"tensor_name = {_shown(name)}; expected dtype {type_text(dtype)} does not equal "
            f"original dtype {type_text(stored)}"
        )
    if not text:
        return reader.read(name)
    shape, part = parse_shape_and_slice(text)
    if shape != reader.shape(name):
        raise InvalidArgumentError(
            f"tensor_name = {_shown(name)}; shape in shape_and_slice spec {shape_text(shape)} "
            f"does not match the shape stored in checkpoint: {shape_text(reader.shape(name))}"
        )
    return reader.read(name, part)


@kernel("MergeV2Checkpoints")
def make_merge_checkpoints(attrs: Attrs) -> Kernel:
    """Nothing; several checkpoints became one."""
    deletes, allows_missing = attrs.bool("delete_old_dirs"), attrs.bool("allow_missing_files")
    files = attrs.host.files

    def merge(prefixes: Value, destination: Value) -> None:
        paths = [os.fsdecode(item) for item in as_array(prefixes).flat]
        target = _prefix(destination)
        present = _present(paths, files, allows_missing=allows_missing)
        files.make_folder(folder_of(target))
        merge_bundles(present, target, files)
        if deletes:
            _delete_folders(present, target, files)

    return merge


def _present(paths: Sequence[str], files: FileSystem, *, allows_missing: bool) -> list[str]:
    """The checkpoints that are there; at least one of them must be."""
    present = [path for path in paths if files.exists(index_path(path))]
    if len(present) < len(paths) and not allows_missing:
        missing = next(path for path in paths if path not in present)
        raise InvalidArgumentError(
            f"allow_missing_files was set to false and {missing} did not exist."
        )
    if not present:
        raise InvalidArgumentError(
            "At least one prefix checkpoint file must exist, but none existed."
        )
    return present


def _delete_folders(paths: Sequence[str], target: str, files: FileSystem) -> None:
    """Remove the folders of old checkpoints, if nothing else is in them."""
    for folder in sorted({folder_of(path) for path in paths} - {folder_of(target), ""}):
        files.remove_empty_folder(folder)
