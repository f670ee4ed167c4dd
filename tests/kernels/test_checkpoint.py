"""Checkpoints: files of TensorFlow, and files of our own."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock import errors
from penstock.core import dtypes
from penstock.core.files import FileSystem
from penstock.defs.bundle_writer import merge_bundles
from penstock.defs.schema import BundleHeaderProto
from penstock.defs.sorted_table import read_table, write_table
from support.ops import run_op

#: Written by TensorFlow: a bool, int32, bfloat16 [1], float16 [1], complex128 [1], a string,
#: strings [2,2] and uint16 [1] called a to h.
MIXED_INDEX = (
    "AAAGCAEaAggBAAELYQgKEgAoATUFKyhDAAENYggDEgAgASgENdnGnEMAARFjCA4SBBICCAEgBSgCNX2z/5MAARFkCB"
    "MSBBICCAEgBygCNc3GC6UAARFlCBISBBICCAEgCSgQNSVZNV4AAQ1mCAcSACAZKAg15tsphAABFWcIBxIIEgIIAhIC"
    "CAIgISgNNcQ4wHgAARFoCBESBBICCAEgLigCNfEAsh8AAAAAAQAAAADGK0tqAAAAAAEAAAAAwPKhsAABA2kArwEAAA"
    "AAAQAAAAB0/X+6tAEIwQEPAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAFf7gIskdUfb"
)
MIXED_DATA = "AQUAAACAPwA+AAAAAAAA8D8AAAAAAAAAQANjP38oc3RyAQIAAsjGbdxhYmJjYwcA"
#: Written by TensorFlow: [1, 2, 3, 4] in two parts of two, called a.
PARTS_INDEX = (
    "AAAGCAEaAggBAAgPAGEAAQEBgIIIARIEEgIIAigINVk85TUGAhGCgggBEgQSAggCIAgoCDViCpdrAAEWYQgBEgQS"
    "AggEOgQKAhACOgYKBAgCEAIAAAAAAQAAAAC17dVVAAAAAAEAAAAAwPKhsAABAmIAWwAAAAABAAAAAJN0zMtgCG0O"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAV/uAiyR1R9s="
)
PARTS_DATA = "AACAPwAAAEAAAEBAAACAQA=="
#: Written by TensorFlow: [[1, 2], [3, 4]] in two rows, whose parts are "0,1:-" and "1,1:-".
ROWS_INDEX = (
    "AAAGCAEaAggBAAoTAGEAAQECgIGAfwgBEggSAggBEgIIAigINVk85TUGBBWBgYB/CAESCBICCAESAggCIAgoCDVi"
    "CpdrAAEeYQgBEggSAggCEgIIAjoGCgIQAQoAOggKBAgBEAEKAAAAAAABAAAAAGbFp+8AAAAAAQAAAADA8qGwAAEC"
    "YgBvAAAAAAEAAAAA3dNvfnQIgQEOAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABX+4CLJHVH2w=="
)


def strings(*items: bytes) -> Any:
    """A vector of strings."""
    return np.array(items, object)


def store(prefix: Path, index: str, data: str) -> bytes:
    """Put recorded files where they belong."""
    Path(f"{prefix}.index").write_bytes(base64.b64decode(index))
    Path(f"{prefix}.data-00000-of-00001").write_bytes(base64.b64decode(data))
    return bytes(prefix)


def save(prefix: Path, tensors: dict[bytes, Any], slices: Any = None) -> None:
    """Write a checkpoint."""
    names = strings(*tensors)
    parts = strings(*(slices or [b""] * len(tensors)))
    run_op("SaveV2", bytes(prefix), names, parts, list(tensors.values()))


def restore(prefix: Path, *wanted: tuple[bytes, Any], part: bytes = b"") -> Any:
    """Read tensors of these names and types."""
    names, types = zip(*wanted, strict=True)
    parts = strings(*[part] * len(names))
    return run_op("RestoreV2", bytes(prefix), strings(*names), parts, dtypes=types)


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """Where a checkpoint may be written."""
    return tmp_path / "ckpt"


def test_reads_what_tensorflow_wrote(prefix: Path) -> None:
    """All kinds of types, at rank 0 and above."""
    store(prefix, MIXED_INDEX, MIXED_DATA)

    a, b, c, d, e, f, g, h = restore(
        prefix,
        (b"a", dtypes.bool_), (b"b", dtypes.int32), (b"c", dtypes.bfloat16),
        (b"d", dtypes.float16), (b"e", dtypes.complex128), (b"f", dtypes.string),
        (b"g", dtypes.string), (b"h", dtypes.uint16),
    )  # fmt: skip

    assert (a, b, f) == (True, 5, b"str")
    assert (c.tolist(), d.tolist(), e.tolist(), h.tolist()) == ([1], [1.5], [1 + 2j], [7])
    assert g.tolist() == [[b"a", b"bb"], [b"", b"cc"]]


def test_reads_parts_that_tensorflow_wrote(prefix: Path) -> None:
    """A tensor that was saved in parts is put together, and cut in other ways."""
    store(prefix, PARTS_INDEX, PARTS_DATA)

    assert restore(prefix, (b"a", dtypes.float32))[0].tolist() == [1, 2, 3, 4]
    assert restore(prefix, (b"a", dtypes.float32), part=b"4 1,2")[0].tolist() == [2, 3]


def test_writes_parts_under_tensorflows_keys(prefix: Path) -> None:
    """Our files of the same parts are those of TensorFlow but for the index of blocks."""
    run_op(
        "SaveV2",
        bytes(prefix),
        strings(b"a", b"a"),
        strings(b"4 0,2", b"4 2,2"),
        [np.float32([1, 2]), np.float32([3, 4])],
    )

    data = Path(f"{prefix}.data-00000-of-00001").read_bytes()
    index = Path(f"{prefix}.index").read_bytes()
    assert data == base64.b64decode(PARTS_DATA)
    assert index[:90] == base64.b64decode(PARTS_INDEX)[:90]


def test_parts_may_be_whole_in_some_dimensions(prefix: Path) -> None:
    """A dimension that is not cut is named so, in what we read and in what we write."""
    store(prefix, ROWS_INDEX, PARTS_DATA)
    assert restore(prefix, (b"a", dtypes.float32))[0].tolist() == [[1, 2], [3, 4]]

    ours = prefix.with_name("ours")
    run_op(
        "SaveV2",
        bytes(ours),
        strings(b"a", b"a"),
        strings(b"2 2 0,1:-", b"2 2 1,1:-"),
        [np.float32([[1, 2]]), np.float32([[3, 4]])],
    )
    index = Path(f"{ours}.index").read_bytes()
    assert index[:110] == base64.b64decode(ROWS_INDEX)[:110]


@pytest.mark.parametrize(
    "value",
    [
        np.float32(1.5),
        np.zeros((0, 3), np.int64),
        np.array([1.5], ml_dtypes.bfloat16),
        np.arange(100_000, dtype=np.float64).reshape(100, 1000).T,
        np.array([b"", b"x" * 100_000, b"\0"], object),
        np.zeros(3, dtypes.qint8.numpy),
    ],
    ids=["scalar", "empty", "bfloat16", "transposed", "strings", "quantised"],
)
def test_round_trip(prefix: Path, value: Any) -> None:
    """What is saved is what is restored, bit by bit."""
    save(prefix, {b"name": value})

    (out,) = restore(prefix, (b"name", dtypes.as_dtype(dtypes.of_numpy(value.dtype))))

    assert out.dtype == value.dtype
    assert out.shape == value.shape
    assert out.tolist() == value.tolist()


def test_large_numbers_in_keys_of_parts(prefix: Path) -> None:
    """Parts far inside large tensors are found again."""
    value = np.arange(20, dtype=np.int8).reshape(2, 10)
    save(prefix, {b"\xffn\0": value}, [b"1000 100000 998,2:70000,10"])

    with pytest.raises(errors.InvalidArgumentError, match="not have sufficient slices"):
        restore(prefix, (b"\xffn\0", dtypes.int8))
    save(prefix, {b"m": value}, [b"2 10 -:-"])
    assert restore(prefix, (b"m", dtypes.int8))[0].tolist() == value.tolist()


@pytest.mark.parametrize(
    ("name", "dtype", "part", "error", "text"),
    [
        (b"zz", dtypes.float32, b"", errors.NotFoundError, "Key zz not found in checkpoint"),
        (b"a", dtypes.int32, b"", errors.InvalidArgumentError,
         "expected dtype int32 does not equal original dtype float"),
        (b"a", dtypes.float32, b"3 0,1", errors.InvalidArgumentError,
         r"spec \[3\] does not match the shape stored in checkpoint: \[2\]"),
        (b"a", dtypes.float32, b"2 1,5", errors.InternalError,
         r"Extent in dimension 0 out of bounds: shape = \[2\], slice = 1,5"),
        (b"a", dtypes.float32, b"xx", errors.InvalidArgumentError, "least two elements"),
        (b"a", dtypes.float32, b"2 0,x", errors.InvalidArgumentError, "pair of numbers or '-'"),
        (b"a", dtypes.float32, b"2 0,1:0,1", errors.InvalidArgumentError, "Mismatching ranks"),
    ],
)  # fmt: skip
def test_refusals(
    prefix: Path, name: bytes, dtype: Any, part: bytes, error: type[Exception], text: str
) -> None:
    """Missing names, other types and parts that do not fit have TensorFlow's codes."""
    save(prefix, {b"a": np.float32([1, 2])})

    with pytest.raises(error, match=text):
        restore(prefix, (name, dtype), part=part)


def test_missing_files(prefix: Path) -> None:
    """No index and no data file are both NOT_FOUND; so is a folder to save to."""
    with pytest.raises(errors.NotFoundError, match="Failed to find any matching files"):
        restore(prefix, (b"a", dtypes.float32))
    save(prefix, {b"a": np.float32([1, 2])})
    Path(f"{prefix}.data-00000-of-00001").unlink()
    with pytest.raises(errors.NotFoundError):
        restore(prefix, (b"a", dtypes.float32))
    with pytest.raises(errors.NotFoundError):
        save(prefix / "no" / "folder", {b"a": np.float32(1)})


@pytest.mark.parametrize("change", ["flip", "cut"])
def test_damaged_data_is_noticed(prefix: Path, change: str) -> None:
    """A checksum guards the elements; a file that is too short is OUT_OF_RANGE."""
    save(prefix, {b"a": np.arange(1000.0), b"s": strings(b"abc")})
    path = Path(f"{prefix}.data-00000-of-00001")
    data = bytearray(path.read_bytes())
    path.write_bytes(data[:100] if change == "cut" else bytes(byte ^ 1 for byte in data))

    error = errors.OutOfRangeError if change == "cut" else errors.DataLossError
    with pytest.raises(error):
        restore(prefix, (b"a", dtypes.float64))
    with pytest.raises((errors.OutOfRangeError, errors.DataLossError)):
        restore(prefix, (b"s", dtypes.string))


def test_failed_save_leaves_the_old_checkpoint(prefix: Path) -> None:
    """Files are replaced only when all is written, and nothing else is left behind."""
    save(prefix, {b"a": np.float32([1])})
    with pytest.raises(errors.InvalidArgumentError, match="Adding duplicate key: a"):
        run_op(
            "SaveV2",
            bytes(prefix),
            strings(b"a", b"a"),
            strings(b"", b""),
            [np.float32([2]), np.float32([3])],
        )

    assert restore(prefix, (b"a", dtypes.float32))[0].tolist() == [1]
    assert len(list(prefix.parent.iterdir())) == 2


def test_counts_must_agree(prefix: Path) -> None:
    """As many names as parts, and as many tensors."""
    with pytest.raises(errors.InvalidArgumentError, match=r"different number of elements: 1 vs. 2"):
        run_op("SaveV2", bytes(prefix), strings(b"a"), strings(b"", b""), [np.float32(1)])
    with pytest.raises(errors.InvalidArgumentError, match="Got 2 tensor names but 1 tensors"):
        run_op("SaveV2", bytes(prefix), strings(b"a", b"b"), strings(b"", b""), [np.float32(1)])
    with pytest.raises(errors.InvalidArgumentError, match="does not match the shape of the tensor"):
        save(prefix, {b"a": np.float32([1, 2])}, [b"4 0,3"])


#: A matrix of four rows, of which the first two were saved in one part and the others in another.
MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3)
UPPER, LOWER = b"4 3 0,2:-", b"4 3 2,2:-"


@pytest.mark.parametrize("spec", [b"4 3 0,2:-", b"4 3 1,1:-", b"4 3 0,2:1,2", b"4 3 0,2:0,3"])
def test_a_part_of_what_was_saved(prefix: Path, spec: bytes) -> None:
    """Of a tensor that is not complete, what is there can be restored."""
    save(prefix, {b"m": MATRIX[:2]}, [UPPER])
    places = {b"4 3 1,1:-": np.s_[1:2], b"4 3 0,2:1,2": np.s_[:2, 1:]}.get(spec, np.s_[:2])

    assert restore(prefix, (b"m", dtypes.float32), part=spec)[0].tolist() == MATRIX[places].tolist()


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (b"", "-:-"),
        (b"4 3 -:-", "-:-"),
        (b"4 3 0,3:-", "0,3:-"),
        (b"4 3 -:0,2", "-:0,2"),
        (b"4 3 2,2:-", "2,2:-"),
    ],
)
def test_a_part_that_was_not_saved(prefix: Path, spec: bytes, says: str) -> None:
    """What is missing is an error that says what was wanted, as TensorFlow spells it."""
    save(prefix, {b"m": MATRIX[:2]}, [UPPER])
    with pytest.raises(errors.InvalidArgumentError) as caught:
        restore(prefix, (b"m", dtypes.float32), part=spec)

    assert caught.value.reason == (
        f"Does not have sufficient slices for partitioned tensor m to restore in slice_spec: {says}"
    )


@pytest.mark.parametrize("spec", [b"", b"4 3 1,2:-", b"4 3 0,3:0,1", b"4 3 2,2:-"])
def test_parts_are_put_together(prefix: Path, spec: bytes) -> None:
    """What is wanted may lie across the parts that were saved."""
    both = np.array([b"m", b"m"], object), np.array([UPPER, LOWER], object)
    run_op("SaveV2", bytes(prefix), *both, [MATRIX[:2], MATRIX[2:]])
    places = {b"": np.s_[:], b"4 3 1,2:-": np.s_[1:3], b"4 3 0,3:0,1": np.s_[:3, :1]}

    (got,) = restore(prefix, (b"m", dtypes.float32), part=spec)
    assert got.tolist() == MATRIX[places.get(spec, np.s_[2:])].tolist()


def test_parts_that_overlap(prefix: Path) -> None:
    """A row that was saved twice cannot be restored, since nobody knows which is meant."""
    both = np.array([b"m", b"m"], object), np.array([b"4 3 0,3:-", LOWER], object)
    run_op("SaveV2", bytes(prefix), *both, [MATRIX[:3], MATRIX[2:]])
    says = "Overlapping slices: existing slice = 0,3:-, new slice = 2,2:-"
    for spec in (b"", LOWER):
        with pytest.raises(errors.InternalError, match=says):
            restore(prefix, (b"m", dtypes.float32), part=spec)


def test_the_folder_is_made(tmp_path: Path) -> None:
    """The folder that a checkpoint goes into is made, by all ops that write one; not those above.

    Sharded savers count on that: they save to a folder of their own, and merge what is there.
    """
    merged = tmp_path / "new" / "merged"
    save(tmp_path / "shards" / "a", {b"a": np.float32(1)})
    run_op("MergeV2Checkpoints", strings(bytes(tmp_path / "shards" / "a")), bytes(merged))
    assert restore(merged, (b"a", dtypes.float32)) == (1,)
    run_op("Save", bytes(tmp_path / "old" / "v1"), strings(b"a"), [np.float32(2)])
    assert (tmp_path / "old" / "v1").is_file()

    for op, rest in (("SaveV2", (strings(b"a"), strings(b""))), ("Save", (strings(b"a"),))):
        path = tmp_path / op / "deeper" / "model"
        with pytest.raises(errors.NotFoundError, match="No such file or directory"):
            run_op(op, bytes(path), *rest, [np.float32(1)])
        assert not (tmp_path / op).exists()


def test_paths_with_a_scheme(tmp_path: Path) -> None:
    """``file://`` is this machine, whatever is done; other schemes are UNIMPLEMENTED."""
    prefix = f"file://{tmp_path}/new/model".encode()
    run_op("SaveV2", prefix, strings(b"a"), strings(b""), [np.float32(1)])
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "model.data-00000-of-00001",
        "model.index",
    ]
    merged = f"file://{tmp_path}/merged".encode()
    run_op("MergeV2Checkpoints", strings(prefix), merged)
    assert not (tmp_path / "new").exists()
    assert run_op("RestoreV2", merged, strings(b"a"), strings(b""), dtypes=(dtypes.float32,)) == (
        1,
    )

    for op, inputs in (
        ("SaveV2", (strings(b"a"), strings(b""), [np.float32(1)])),
        ("Save", (strings(b"a"), [np.float32(1)])),
    ):
        with pytest.raises(errors.UnimplementedError, match="File system scheme 'gs'"):
            run_op(op, b"gs://bucket/model", *inputs)
    with pytest.raises(errors.UnimplementedError, match="File system scheme 'gs'"):
        run_op("RestoreV2", b"gs://b/m", strings(b"a"), strings(b""), dtypes=(dtypes.float32,))


def test_a_failed_merge_moves_nothing(tmp_path: Path) -> None:
    """If there is no room for the merged index, the shards are as they were."""

    class FullDisk(FileSystem):
        def draft(self, path: str) -> Any:
            raise errors.ResourceExhaustedError(f"{path}; No space left on device")

    first = tmp_path / "first"
    save(first, {b"a": np.float32(1)})
    with pytest.raises(errors.ResourceExhaustedError):
        merge_bundles([str(first)], str(tmp_path / "out"), FullDisk())

    assert restore(first, (b"a", dtypes.float32)) == (1,)


def test_merging(tmp_path: Path) -> None:
    """Shards become one checkpoint, and their folder goes if it is empty."""
    (tmp_path / "parts").mkdir()
    first, second = tmp_path / "parts" / "p1", tmp_path / "parts" / "p2"
    save(first, {b"a": np.float32([1]), b"m": np.float32([1])})
    save(second, {b"b": np.float32([2])})
    target = tmp_path / "out" / "ckpt"
    both = strings(bytes(first), bytes(second))

    run_op("MergeV2Checkpoints", both, bytes(target))

    a, b = restore(target, (b"a", dtypes.float32), (b"b", dtypes.float32))
    assert (a.tolist(), b.tolist()) == ([1], [2])
    assert not (tmp_path / "parts").exists()
    with pytest.raises(errors.InvalidArgumentError, match="allow_missing_files was set to false"):
        run_op("MergeV2Checkpoints", both, bytes(target))
    with pytest.raises(errors.InvalidArgumentError, match="At least one prefix checkpoint"):
        run_op("MergeV2Checkpoints", both, bytes(target), allow_missing_files=True)


def turned(prefix: Path, index: str, data: str) -> None:
    """Put recorded files where they belong, with an index that says that numbers are big-endian."""
    store(prefix, index, data)
    path = Path(f"{prefix}.index")
    entries = dict(read_table(path.read_bytes()))
    header = BundleHeaderProto.FromString(entries[b""])
    header.endianness = header.BIG
    path.write_bytes(write_table(sorted({**entries, b"": header.SerializeToString()}.items())))


def test_a_checkpoint_of_another_byte_order_is_turned(prefix: Path) -> None:
    """Numbers are those that TensorFlow reads of the same files; lengths of strings do not fit."""
    turned(prefix, MIXED_INDEX, MIXED_DATA)

    a, b, c, d, e, h = restore(
        prefix,
        (b"a", dtypes.bool_), (b"b", dtypes.int32), (b"c", dtypes.bfloat16),
        (b"d", dtypes.float16), (b"e", dtypes.complex128), (b"h", dtypes.uint16),
    )  # fmt: skip

    assert (a, b, h.tolist()) == (True, 83886080, [1792])
    assert c.astype(float)[0] == pytest.approx(-5.78564e-39, rel=1e-2)
    assert d.astype(float)[0] == pytest.approx(3.7e-06, rel=1e-1)
    assert e.tolist() == [complex(3.03865e-319, 3.16e-322)]
    with pytest.raises(errors.DataLossError, match="another checksum"):
        restore(prefix, (b"f", dtypes.string))


def test_lengths_of_strings_have_a_checksum_of_their_own(prefix: Path) -> None:
    """Lengths that are damaged are noticed before any text is cut by them."""
    save(prefix, {b"s": strings(b"a", b"bc")})
    path = Path(f"{prefix}.data-00000-of-00001")
    data = path.read_bytes()
    assert data[:2] == b"\x01\x02"
    path.write_bytes(b"\x02\x01" + data[2:])

    with pytest.raises(errors.DataLossError, match="lengths of strings have another checksum"):
        restore(prefix, (b"s", dtypes.string))


def test_texts_of_strings_have_a_checksum(prefix: Path) -> None:
    """Whoever changes a text and not its length is noticed, too."""
    save(prefix, {b"s": strings(b"a", b"bc")})
    path = Path(f"{prefix}.data-00000-of-00001")
    path.write_bytes(path.read_bytes()[:-1] + b"d")

    with pytest.raises(errors.DataLossError, match="Checksum does not match"):
        restore(prefix, (b"s", dtypes.string))


@pytest.mark.parametrize(
    ("lower", "part"),
    [
        (MATRIX[2:], b"5 3 2,2:-"),
        (MATRIX[2:].astype(np.float64), LOWER),
        (MATRIX, b""),
    ],
    ids=["another shape", "another type", "whole"],
)
def test_parts_are_of_one_tensor(prefix: Path, lower: Any, part: bytes) -> None:
    """Two parts under one name say the same of the whole; nor is one the whole itself."""
    both = np.array([b"m", b"m"], object), np.array([UPPER, part], object)
    with pytest.raises(errors.InvalidArgumentError, match="Adding duplicate key: m"):
        run_op("SaveV2", bytes(prefix), *both, [MATRIX[:2], lower])


@pytest.mark.parametrize(
    ("lower", "part"),
    [
        (MATRIX[2:], b"5 3 2,2:-"),
        (MATRIX[2:].astype(np.float64), LOWER),
        (MATRIX, b""),
        (MATRIX[2:], LOWER),
    ],
    ids=["another shape", "another type", "whole", "a part of the same"],
)
def test_parts_of_several_checkpoints(tmp_path: Path, lower: Any, part: bytes) -> None:
    """Parts of one tensor in two checkpoints become one; anything else is two tensors."""
    first, second, target = tmp_path / "p1", tmp_path / "p2", tmp_path / "out"
    save(first, {b"m": MATRIX[:2]}, [UPPER])
    save(second, {b"m": lower}, [part])
    both = strings(bytes(first), bytes(second))

    if part == LOWER and lower.dtype == MATRIX.dtype:
        run_op("MergeV2Checkpoints", both, bytes(target))
        assert restore(target, (b"m", dtypes.float32))[0].tolist() == MATRIX.tolist()
    else:
        with pytest.raises(errors.InvalidArgumentError, match="Merging two different tensors"):
            run_op("MergeV2Checkpoints", both, bytes(target))
