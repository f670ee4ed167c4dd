"""Checkpoints of the first version: a file of TensorFlow, and files of our own."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.core import dtypes
from penstock.defs.sorted_table import read_table
from support.ops import run_op

#: Written by TensorFlow's SaveSlices: the tensors of ``ITEMS``.
WRITTEN = base64.b64decode(
    "AAC0AQqxAQoVCgFhEggSAggCEgIIAhgBIgQKAAoACgkKAWISABgDIgAKDwoBYxIEEgIIAhgHIgIKAAoPCgFkEgQSAg"
    "gCGAoiAgoACg8KAWUSBBICCAIYEyICCgAKDwoBZhIEEgIIARgIIgIKAAoPCgFnEgQSAggBGAQiAgoACg8KAWgSBBIC"
    "CAEYCyICCgAKIwoBcBIIEgIIAhICCAIYAiIGCgIQAQoAIgoKBAgBEAEKAhACEgIIAQAKHwBhAAEBAoB/gH8SHQoBYR"
    "IECgAKABoSKhAAAIA/AAAAwAAAQEAAAIBAAQQVYgABABITCgFiEgAaDDoK+f//////////AQEHEWMAAQEBgH8SDwoB"
    "YxICCgAaBkICaGlCAAEHD2QAAQEBgH8SDQoBZBICCgAaBFoCAQABBxJlAAEBAYB/EhAKAWUSAgoAGgdqBYB8gIABAQ"
    "cVZgABAQGAfxITCgFmEgIKABoKSggAAIA/AAAAQAEHD2cAAQEBgH8SDQoBZxICCgAaBDoCyAEBBw5oAAEBAYB/EgwK"
    "AWgSAgoAGgM6AQMBCSFwAAEBAoCBgH8SHwoBcBIGCgIQAQoAGhIyEAAAAAAAAPA/AAAAAAAAAEAGBCWBgYCCEiMKAX"
    "ASCgoECAEQAQoCEAIaEjIQAAAAAAAACEAAAAAAAAAQQAAAAAABAAAAALucUpwAAAAAAQAAAADA8qGwAAEDAQCBBAAA"
    "AAABAAAAAMLviziGBAiTBA8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAV/uAiyR1R9s="
)
ITEMS: list[tuple[bytes, bytes, Any]] = [
    (b"a", b"", np.float32([[1, -2], [3, 4]])),
    (b"b", b"", np.int32(-7)),
    (b"c", b"", np.array([b"hi", b""], object)),
    (b"d", b"", np.array([True, False])),
    (b"e", b"", np.float16([1.5, 2])),
    (b"f", b"", np.complex64([1 + 2j])),
    (b"g", b"", np.uint8([200])),
    (b"h", b"", np.int8([3]).view(dtypes.qint8.numpy)),
    (b"p", b"2 2 0,1:-", np.float64([[1, 2]])),
    (b"p", b"2 2 1,1:0,2", np.float64([[3, 4]])),
]


def strings(*items: bytes) -> Any:
    """A vector of strings."""
    return np.array(items, object)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """TensorFlow's file."""
    found = tmp_path / "model.ckpt"
    found.write_bytes(WRITTEN)
    return found


def restore(path: Path, name: bytes, dtype: Any, part: bytes = b"") -> Any:
    """A tensor, or a part of it."""
    if part:
        return run_op("RestoreSlice", bytes(path), name, part, dt=dtype)
    return run_op("Restore", bytes(path), name, dt=dtype)


@pytest.mark.parametrize("item", ITEMS[:8], ids=lambda item: item[0].decode())
def test_reads_what_tensorflow_wrote(item: tuple[bytes, bytes, Any], path: Path) -> None:
    """Every type, at rank 0 and above."""
    name, _, value = item
    kinds = {b"c": dtypes.string, b"h": dtypes.qint8}
    got = restore(path, name, kinds.get(name) or dtypes.as_dtype(value.dtype.name))

    assert got.dtype == value.dtype
    assert got.tolist() == value.tolist()


def test_parts_are_put_together_and_cut(path: Path) -> None:
    """A tensor in two parts, as a whole and one of its columns."""
    assert restore(path, b"p", dtypes.float64).tolist() == [[1, 2], [3, 4]]
    assert restore(path, b"p", dtypes.float64, b"2 2 -:1,1").tolist() == [[2], [4]]


def test_writes_the_same_messages(tmp_path: Path) -> None:
    """Our file of these tensors has TensorFlow's keys and messages."""
    names, parts, values = zip(*ITEMS, strict=True)
    path = tmp_path / "made" / "ours"
    run_op("SaveSlices", bytes(path), strings(*names), strings(*parts), list(values))

    assert list(read_table(path.read_bytes())) == list(read_table(WRITTEN))


def test_tensors_may_be_spread_over_files(tmp_path: Path) -> None:
    """A pattern means all files, each with some of the parts."""
    for at, value in enumerate(([1.0, 2.0], [3.0])):
        part = (b"3 0,2", b"3 2,1")[at]
        path = tmp_path / f"shard-{at}-of-2"
        arguments = strings(b"x"), strings(part), [np.float32(value)]
        run_op("SaveSlices", bytes(path), *arguments)

    assert restore(tmp_path / "shard-?-of-2", b"x", dtypes.float32).tolist() == [1, 2, 3]
    with pytest.raises(errors.InvalidArgumentError, match="Error copying slice data"):
        restore(tmp_path / "shard-0-of-2", b"x", dtypes.float32)
    assert restore(tmp_path / "shard-0-of-2", b"x", dtypes.float32, b"3 1,1").tolist() == [2]


def test_save_without_parts(tmp_path: Path) -> None:
    """Save writes whole tensors, of which Restore takes the last of a name."""
    values = [np.float32([1]), np.float32([2])]
    run_op("Save", bytes(tmp_path / "x"), strings(b"a", b"a"), values)

    assert restore(tmp_path / "x", b"a", dtypes.float32).tolist() == [2]


def test_the_newer_op_reads_old_files(path: Path) -> None:
    """RestoreV2 turns to the old format where there is no index."""
    names, parts = strings(b"b", b"p"), strings(b"", b"2 2 1,1:-")
    types = (dtypes.int32, dtypes.float64)
    b, p = run_op("RestoreV2", bytes(path), names, parts, dtypes=types)

    assert b == -7
    assert p.tolist() == [[3, 4]]


@pytest.mark.parametrize(
    ("name", "dtype", "part", "error", "says"),
    [
        (b"zz", dtypes.float32, b"", errors.NotFoundError, 'Tensor name "zz" not found in ch'),
        (
            b"a",
            dtypes.float64,
            b"",
            errors.InvalidArgumentError,
            "Expected to restore a tensor of type double, got a tensor of type float instead",
        ),
        (
            b"a",
            dtypes.float32,
            b"3 2 -:-",
            errors.InvalidArgumentError,
            r"does not match the shape in the save file: \[3,2\], save file shape: \[2,2\]",
        ),
    ],
)
def test_what_is_not_there(
    name: bytes, dtype: Any, part: bytes, error: type[Exception], says: str, path: Path
) -> None:
    """Names, types and sizes that a file does not have are told with TensorFlow's words."""
    with pytest.raises(error, match=says):
        restore(path, name, dtype, part)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    """No file that fits the pattern."""
    with pytest.raises(errors.NotFoundError, match="Failed to find any matching files"):
        restore(tmp_path / "none", b"a", dtypes.float32)


def test_files_that_contradict_each_other(path: Path) -> None:
    """A tensor has the same sizes in all files."""
    run_op("Save", bytes(path) + b"2", strings(b"a"), [np.float32([1])])

    with pytest.raises(errors.InternalError, match=r"tensor a: existing = \[2,2\], new = \[1\]"):
        restore(path.with_name("model*"), b"a", dtypes.float32)


def test_types_that_the_format_does_not_have(tmp_path: Path) -> None:
    """bfloat16 came later."""
    value = np.zeros(1, dtypes.bfloat16.numpy)
    with pytest.raises(errors.UnimplementedError, match="bfloat16 not yet supported"):
        run_op("Save", bytes(tmp_path / "x"), strings(b"a"), [value])


def test_damaged_files(path: Path) -> None:
    """A changed byte is noticed."""
    path.write_bytes(WRITTEN[:40] + b"?" + WRITTEN[41:])

    with pytest.raises(errors.DataLossError):
        restore(path, b"a", dtypes.float32)
