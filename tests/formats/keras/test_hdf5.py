"""HDF5 as it is read here is what HDF5's own library reads."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.formats.keras.h5 import open_h5
from penstock.formats.keras.hdf5 import Node, open_hdf5
from penstock.formats.keras.hdf5_bytes import NewerFormError

h5py = pytest.importorskip("h5py")

FOLDER = Path(__file__).resolve().parents[2] / "keras_models"
FILES = sorted(path.name for path in FOLDER.glob("*.*.*") if path.suffix in (".gz", ".keras"))


def content_of(name: str) -> bytes:
    """The HDF5 file in a file of the folder."""
    content = (FOLDER / name).read_bytes()
    if name.endswith(".gz"):
        return gzip.decompress(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read("model.weights.h5")


def plain(value: Any) -> Any:
    """What h5py gives for an attribute, in Python's own types."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


def compare(mine: Node, theirs: Any) -> int:
    """Check that two trees are equal; returns how many arrays there are."""
    assert {name: mine.attribute(name) for name in mine.attributes} == {
        name: plain(value) for name, value in theirs.attrs.items()
    }
    if isinstance(theirs, h5py.Dataset):
        np.testing.assert_array_equal(mine.array(), theirs[()])
        return 1
    assert set(mine.children) == set(theirs)
    below = {name: child for name, child in mine.children.items() if child is not None}
    return sum(compare(child, theirs[name]) for name, child in below.items())


def written(libver: str, members: int) -> bytes:
    """A file with arrays of all kinds, written for some versions of the library."""
    made = io.BytesIO()
    rng = np.random.default_rng(7)
    with h5py.File(made, "w", libver=libver) as file:
        for number in range(members):
            file[f"a/b{number}"] = np.arange(6.0).reshape(2, 3) + number
        packed = {"chunks": (7, 5), "compression": "gzip", "shuffle": True}
        file.create_dataset("packed", data=rng.random((30, 17), np.float32), **packed)
        file.create_dataset("summed", data=np.arange(1000), chunks=(100,), fletcher32=True)
        file["scalar"] = np.float32(3)
        file["none"] = np.zeros((0, 3), np.float16)
        file["bytes"] = np.arange(3, dtype=">i4")
        file.attrs["text"] = "hällo"
        file.attrs["texts"] = [b"ab", b"c"]
    return made.getvalue()


@pytest.mark.parametrize("name", FILES)
def test_files_of_keras_are_read_as_by_h5py(name: str) -> None:
    """Every group, attribute and array of every model is what h5py says it is."""
    content = content_of(name)
    with h5py.File(io.BytesIO(content)) as theirs:
        compare(open_hdf5(content), theirs)


@pytest.mark.parametrize(("libver", "members"), [("earliest", 40), ("v108", 3)])
def test_packed_and_large_files_are_read_as_by_h5py(libver: str, members: int) -> None:
    """Arrays in packed pieces, in other orders of bytes, and groups of two levels are read."""
    content = written(libver, members)
    with h5py.File(io.BytesIO(content)) as theirs:
        assert compare(open_hdf5(content), theirs) == members + 5


def test_newer_forms_are_left_to_h5py() -> None:
    """Large groups in the layout of HDF5 1.8 are read by h5py, behind the same face."""
    content = written("v108", 40)
    with pytest.raises(NewerFormError):
        open_hdf5(content)

    file = open_h5(content, "it")
    assert file.attribute("text") == "hällo"
    assert file.array("a/b39").tolist() == (np.arange(6.0).reshape(2, 3) + 39).tolist()
    assert "a/b40" not in file
