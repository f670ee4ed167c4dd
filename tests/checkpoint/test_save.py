"""Checkpoints of our own, and the moments in which a process may be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core.files import FileSystem
from support.checkpoint_values import mixed


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """All types, strings, rank 0 and no elements; folders are made."""
    tensors = mixed(newer=True)
    prefix = ps.checkpoint.save(tmp_path / "a" / "b" / "ck", tensors)
    found = ps.checkpoint.load(prefix)

    assert set(found) == set(tensors)
    for name, value in tensors.items():
        if np.asarray(value).dtype.hasobject:
            assert np.array_equal(np.asarray(found[name], object), value)
        else:
            assert np.asarray(found[name]).tobytes() == np.asarray(value).tobytes()


def test_plain_python_values_are_tensors(tmp_path: Path) -> None:
    """Numbers, texts and lists have numpy's types; texts are UTF-8."""
    prefix = ps.checkpoint.save(
        tmp_path / "ck", {"n": 3, "t": "ü", "l": [[1.5], [2.5]], "z": [b"a\0", "b"]}
    )
    found = ps.checkpoint.load(prefix)

    assert found["z"].tolist() == [b"a\0", b"b"]
    assert (found["n"], found["t"], found["l"].tolist()) == (3, "ü".encode(), [[1.5], [2.5]])
    assert found.dtype("n") is ps.dtypes.int64


def test_a_loaded_checkpoint_can_be_saved(tmp_path: Path) -> None:
    """With its objects, and over itself, though its arrays are views of the file."""
    prefix = ps.checkpoint.save_objects(tmp_path / "ck", {"a/b": np.arange(9.0), "s": "text"})
    first = ps.checkpoint.load(prefix)
    ps.checkpoint.save(
        prefix,
        {**first, "a/b/.ATTRIBUTES/VARIABLE_VALUE": -first["a/b/.ATTRIBUTES/VARIABLE_VALUE"]},
    )
    second = ps.checkpoint.load(prefix)

    graph = second.object_graph()
    assert graph is not None
    assert second[graph.key(graph.find("a/b"))].tolist() == (-np.arange(9.0)).tolist()
    assert second[graph.key(graph.find("s"))] == b"text"


def test_tensors_are_aligned(tmp_path: Path) -> None:
    """Each begins at a multiple of 64 bytes, whatever stands before it."""
    prefix = ps.checkpoint.save(
        tmp_path / "ck", {"a": b"x", "b": np.ones(3), "c": [True], "d": np.ones(2)}
    )
    found = ps.checkpoint.load(prefix)

    assert all(found[name].ctypes.data % 64 == 0 for name in "bd")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("", 1, "no name of a tensor"),
        ("\0x", 1, "no name of a tensor"),
        ("x", object(), "x: cannot be saved"),
        ("x", [[1], [2, 3]], "x: cannot be saved: rows differ"),
        ("x", np.datetime64("2020"), "x: cannot be saved"),
        ("x", None, "x: cannot be saved"),
    ],
)
def test_what_is_no_tensor_is_refused(tmp_path: Path, name: str, value: Any, says: str) -> None:
    """The error says which, and nothing is written."""
    with pytest.raises(errors.InvalidArgumentError, match=says):
        ps.checkpoint.save(tmp_path / "ck", {"fine": 1, name: value})

    assert not list(tmp_path.iterdir())


# -- killed ----------------------------------------------------------------------------

KILLED = """
import os, sys
import numpy as np
import penstock as ps
from penstock.core.files import FileSystem

countdown = int(sys.argv[2])

def dying(method):
    def call(*args):
        global countdown
        countdown -= 1
        if countdown < 0:
            os._exit(9)
        return method(*args)
    return call

for name in ("publish", "write", "remove", "move"):
    setattr(FileSystem, name, dying(getattr(FileSystem, name)))
if sys.argv[3] == "save":
    ps.checkpoint.save(sys.argv[1], {"a": np.full(1000, 2.0), "b": [2, 2]})
else:
    from penstock.defs.bundle_writer import merge_bundles
    merge_bundles([sys.argv[1] + "_part0", sys.argv[1] + "_part1"], sys.argv[1], FileSystem())
"""


def generation(prefix: Path) -> float:
    """Which checkpoint is there: all its tensors say so, and their checksums are right."""
    found = ps.checkpoint.load(prefix)
    values = {float(number) for name in found for number in np.unique(found[name])}
    assert len(values) == 1
    assert set(found) == {"a", "b"}
    return values.pop()


@pytest.mark.parametrize("way", ["save", "merge"])
def test_a_killed_process_leaves_a_whole_checkpoint(tmp_path: Path, way: str) -> None:
    """Whenever it is killed, the old checkpoint or the new one is there; the next tidies up."""
    seen = []
    for moment in range(20):
        folder = tmp_path / str(moment)
        prefix = folder / "ck"
        for old in (0, 1):  # the second already has another count of files
            ps.checkpoint.save(prefix, {"a": np.full(1000, old), "b": [old, old]})
        ps.checkpoint.save(f"{prefix}_part0", {"a": np.full(1000, 2.0)})
        ps.checkpoint.save(f"{prefix}_part1", {"b": [2, 2]})
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(prefix), str(moment), way], check=False
        )
        seen.append(generation(prefix))
        if done.returncode == 0:
            break
        assert done.returncode == 9
        ps.checkpoint.save(prefix, {"a": np.full(1000, 3.0), "b": [3, 3]})
        assert generation(prefix) == 3
        names = {
            path.name
            for path in folder.iterdir()
            if "tempstate" not in path.name and "part" not in path.name
        }
        assert len({name.rpartition("-of-")[2] for name in names}) == 2  # one count, one index

    assert seen == sorted(seen)
    assert {seen[0], seen[-1]} == {1, 2}
    assert len(seen) > 3


def test_where_nothing_was_names_are_those_of_tensorflow(tmp_path: Path) -> None:
    """And a checkpoint that is written over leaves one set of files."""
    prefix = tmp_path / "ck"
    ps.checkpoint.save(prefix, {"a": 1})
    assert sorted(os.listdir(tmp_path)) == ["ck.data-00000-of-00001", "ck.index"]
    ps.checkpoint.save(prefix, {"a": 2})
    assert sorted(os.listdir(tmp_path)) == [
        "ck.data-00000-of-00002",
        "ck.data-00001-of-00002",
        "ck.index",
    ]
    ps.checkpoint.save(prefix, {"a": 3})
    assert sorted(os.listdir(tmp_path)) == ["ck.data-00000-of-00001", "ck.index"]


def test_neighbours_are_left_alone(tmp_path: Path) -> None:
    """Files of another prefix, though it begins with this one, stay."""
    for name in ("ck", "ck-1", "xck"):
        ps.checkpoint.save(tmp_path / name, {"a": name})
    ps.checkpoint.save(tmp_path / "ck", {"a": "new"})

    assert ps.checkpoint.load(tmp_path / "ck-1")["a"] == b"ck-1"
    assert ps.checkpoint.load(tmp_path / "xck")["a"] == b"xck"


# -- the state file --------------------------------------------------------------------


def test_the_state_file_is_read_back(tmp_path: Path) -> None:
    """Prefixes in the folder are written relative to it, others as they are."""
    folder = tmp_path / "here"
    for name in ("ck-1", "ck-2"):
        ps.checkpoint.save(folder / name, {"a": name})
    ps.checkpoint.write_state(
        folder, folder / "ck-2", [folder / "ck-1", "/elsewhere/ck"], timestamps=[1, 2, 3.5]
    )
    state = ps.checkpoint.read_state(folder)

    text = (folder / "checkpoint").read_text()
    assert text.startswith('model_checkpoint_path: "ck-2"\n')
    assert state.latest == str(folder / "ck-2")
    assert state.all == (str(folder / "ck-1"), "/elsewhere/ck", str(folder / "ck-2"))
    assert state.timestamps == (1, 2, 3.5)
    assert ps.checkpoint.load(folder)["a"] == b"ck-2"


def test_a_folder_may_have_been_moved(tmp_path: Path) -> None:
    """The file says where the checkpoint was; it is looked for beside that file then."""
    (tmp_path / "old").mkdir()
    prefix = str(tmp_path / "old" / "model.ckpt-7")
    ps.checkpoint.save(prefix, {"v": np.float32(3)})
    (tmp_path / "old" / "checkpoint").write_text(f'model_checkpoint_path: "{prefix}"\n')
    (tmp_path / "old").rename(tmp_path / "new")
    assert ps.checkpoint.latest(tmp_path / "new") == str(tmp_path / "new" / "model.ckpt-7")
    assert ps.checkpoint.load(tmp_path / "new")["v"] == 3


def test_what_is_gone_is_not_the_latest(tmp_path: Path) -> None:
    """A state file may name a checkpoint that was deleted; without one there is no latest."""
    assert ps.checkpoint.latest(tmp_path) is None
    ps.checkpoint.write_state(tmp_path, "gone")
    assert ps.checkpoint.latest(tmp_path) is None
    (tmp_path / "checkpoint").write_text("no: such field")
    with pytest.raises(errors.DataLossError, match="checkpoint: is no CheckpointState"):
        ps.checkpoint.latest(tmp_path)


def test_files_are_reached_in_one_way() -> None:
    """The package's file system is the machine's, with every refusal that it has."""
    with pytest.raises(errors.UnimplementedError, match="scheme 'gs'"):
        ps.checkpoint.load("gs://bucket/ck")
    assert isinstance(FileSystem(), FileSystem)


@pytest.mark.parametrize("value", [b"ends\0\0", ["a\0", b"\0"], "\0", b""])
def test_texts_keep_zeros_at_their_ends(tmp_path: Path, value: Any) -> None:
    """Serialized messages may end so; numpy's own texts cannot."""
    prefix = ps.checkpoint.save(tmp_path / "ck", {"text": value})

    texts = [
        item.encode() if isinstance(item, str) else item for item in np.array([value], object).flat
    ]
    assert np.array([ps.checkpoint.load(prefix)["text"]], object).ravel().tolist() == texts
