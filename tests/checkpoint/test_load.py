"""Checkpoints that TensorFlow wrote, read as mappings."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core.values import keep
from support.checkpoint_values import mixed, objects, table

FILES = Path(__file__).parent / "files"


def same_bits(one: Any, other: Any) -> bool:
    """Whether two values have one type, one shape, and the same bytes."""
    if isinstance(one, bytes):
        return one == np.asarray(other)[()]
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    same: bool = (
        np.array_equal(one, other) if one.dtype.hasobject else one.tobytes() == other.tobytes()
    )
    return same


def copied(tmp_path: Path, name: str) -> Path:
    """The prefix of a checkpoint of ours to be damaged."""
    for file in FILES.glob(f"{name}*"):
        if file.is_file():
            shutil.copy(file, tmp_path)
    return tmp_path / name


@pytest.mark.parametrize(("name", "newer"), [("names", True), ("sharded", True), ("v1", False)])
def test_reads_what_tensorflow_wrote(name: str, newer: bool) -> None:
    """All types, strings, rank 0 and no elements, bit for bit, in one file, in two, and of V1."""
    found = ps.checkpoint.load(FILES / name)
    expected = mixed(newer=newer)

    assert set(found) == set(expected)
    for key, value in expected.items():
        assert same_bits(found[key], value), key
        assert found.dtype(key).numpy == np.asarray(value).dtype
        assert found.shape(key) == np.shape(value)


@pytest.mark.parametrize("name", ["parts", "v1_parts"])
def test_parts_are_put_together(name: str) -> None:
    """A partitioned variable is one tensor, of which any rows can be read."""
    found = ps.checkpoint.load(FILES / name)

    assert list(found) == ["table"]
    assert same_bits(found["table"], table())
    assert found.spec("table").parts == ("0,4:-", "4,3:-", "7,3:-")
    part = found.read("table", (slice(3, 8), slice(1, None)))
    assert same_bits(part, table()[3:8, 1:])


def test_types_and_shapes_need_no_data(tmp_path: Path) -> None:
    """What is known of tensors stands in the index; the data file may be missing."""
    prefix = copied(tmp_path, "names")
    Path(f"{prefix}.data-00000-of-00001").unlink()
    found = ps.checkpoint.load(prefix)

    assert found.shape("types/float32") == (2, 3)
    assert found.spec("types/float32").stored_bytes == 24
    with pytest.raises(errors.NotFoundError, match="data-00000-of-00001"):
        found["types/float32"]


def test_keys_of_objects() -> None:
    """Variables of objects are found by the way to them, whatever they are called."""
    found = ps.checkpoint.load(FILES / "objects" / "ckpt-3")
    graph = found.object_graph()
    assert graph is not None

    for path, value in objects().items():
        key = graph.key(graph.find(path))
        assert key == f"{path}/.ATTRIBUTES/VARIABLE_VALUE"
        assert same_bits(found[key], value)
    odd = graph.find(["net", "odd", "a/b.c"])
    assert graph.key(odd) == "net/odd/a.Sb..c/.ATTRIBUTES/VARIABLE_VALUE"
    assert graph.find("net/again") == graph.find("net/layer")
    with pytest.raises(errors.NotFoundError, match=r"net has no child 'nothing'; it has .*layer"):
        graph.find("net/nothing")
    with pytest.raises(errors.NotFoundError, match="has no VARIABLE_VALUE"):
        graph.key(graph.find("net"))


def test_names_have_no_objects() -> None:
    """A checkpoint of a Saver has keys and no objects."""
    assert ps.checkpoint.load(FILES / "names").object_graph() is None


def test_a_folder_means_its_latest_checkpoint() -> None:
    """The file ``checkpoint`` says which; both kept ones are named as paths."""
    folder = FILES / "objects"
    state = ps.checkpoint.read_state(folder)

    assert ps.checkpoint.latest(folder) == str(folder / "ckpt-3")
    assert ps.checkpoint.load(folder).prefix == str(folder / "ckpt-3")
    assert state.all == (str(folder / "ckpt-2"), str(folder / "ckpt-3"))
    assert len(state.timestamps) == 2
    assert min(state.timestamps) > state.last_preserved > 1e9


@pytest.mark.parametrize("ending", [".index", ".data-00000-of-00001", ".meta"])
def test_any_file_means_its_checkpoint(ending: str) -> None:
    """Whoever completes a name in a shell gets a file, and means the checkpoint."""
    assert len(ps.checkpoint.load(f"{FILES / 'names'}{ending}")) == len(mixed(newer=True))


def test_arrays_are_views_of_the_file(tmp_path: Path) -> None:
    """What lies in the file as in memory is not copied, and may be kept by a variable."""
    ps.checkpoint.save(tmp_path / "ck", {"a": np.arange(1000.0), "b": b"x", "c": np.ones(10)})
    found = ps.checkpoint.load(tmp_path / "ck")

    for name in ("a", "c"):
        array = found[name]
        assert not array.flags.writeable
        assert not array.flags.owndata
        assert keep(array) is array
        assert np.shares_memory(array, found[name])


def test_a_mapped_checkpoint_survives_being_replaced(tmp_path: Path) -> None:
    """Arrays of the old one stay what they were when a new one takes its place."""
    ps.checkpoint.save(tmp_path / "ck", {"a": np.zeros(1000)})
    old = ps.checkpoint.load(tmp_path / "ck")["a"]
    ps.checkpoint.save(tmp_path / "ck", {"a": np.ones(5)})

    assert not old.any()
    assert ps.checkpoint.load(tmp_path / "ck")["a"].tolist() == [1] * 5


# -- what is missing or wrong ----------------------------------------------------------


def test_a_missing_name_is_a_missing_key() -> None:
    """The error is one of a mapping, says what is near, and ``get`` works as ever."""
    found = ps.checkpoint.load(FILES / "names")

    with pytest.raises(KeyError) as caught:
        found["types/float23"]
    assert isinstance(caught.value, errors.NotFoundError)
    assert "did you mean types/float32" in str(caught.value)
    assert found.get("nothing") is None
    assert "nothing" not in found


def test_a_missing_checkpoint_is_not_found() -> None:
    """The error says which are there."""
    with pytest.raises(errors.NotFoundError, match=r"did you mean .*files/names"):
        ps.checkpoint.load(FILES / "nmaes")
    with pytest.raises(errors.NotFoundError, match="no file says which"):
        ps.checkpoint.load(FILES)


def test_a_damaged_tensor_is_named(tmp_path: Path) -> None:
    """A flipped bit gives DATA_LOSS with the key and the file; other tensors can be read."""
    prefix = copied(tmp_path, "names")
    data = Path(f"{prefix}.data-00000-of-00001")
    content = bytearray(data.read_bytes())
    content[content.index(np.float32(1.5).tobytes())] ^= 1
    data.write_bytes(content)
    found = ps.checkpoint.load(prefix)

    with pytest.raises(
        errors.DataLossError, match=r"Checksum does not match.*tensor scalar of .*names"
    ):
        found["scalar"]
    assert found["text"] == b"alone"
    assert np.asarray(found.read("scalar", verify=False)).shape == ()


def test_a_file_that_is_cut_off_is_damage(tmp_path: Path) -> None:
    """A data file that ends too early gives DATA_LOSS with the key."""
    prefix = copied(tmp_path, "names")
    data = Path(f"{prefix}.data-00000-of-00001")
    data.write_bytes(data.read_bytes()[:100])
    found = ps.checkpoint.load(prefix)

    with pytest.raises(errors.DataLossError, match=r"Read less bytes .*tensor texts"):
        found["texts"]


def test_a_damaged_index_is_named(tmp_path: Path) -> None:
    """The error says which file is damaged."""
    prefix = copied(tmp_path, "names")
    index = Path(f"{prefix}.index")
    index.write_bytes(index.read_bytes()[:-9])

    with pytest.raises(errors.DataLossError, match=r"names\.index: not an sstable"):
        ps.checkpoint.load(prefix)


@pytest.mark.parametrize(
    "part", [(slice(0, 2),), (0, slice(None)), (slice(0, 4, 2), slice(None)), "a"]
)
def test_a_part_is_slices(part: Any) -> None:
    """One slice per dimension, without steps."""
    with pytest.raises(errors.InvalidArgumentError, match="no part of a tensor of shape"):
        ps.checkpoint.load(FILES / "parts").read("table", part)


def test_a_prefix_may_end_with_a_slash(tmp_path: Path) -> None:
    """Files whose names begin with nothing are found, whatever else says that it is a folder."""
    prefix = f"{tmp_path}/model/"
    ps.checkpoint.save(prefix, {"v": np.float32(3)})
    assert (tmp_path / "model" / ".index").exists()
    for given in (prefix, f"{prefix}.index"):
        assert ps.checkpoint.load(given)["v"] == 3
    with pytest.raises(ps.errors.NotFoundError, match=r"did you mean .*model/"):
        ps.checkpoint.load(tmp_path / "model")
