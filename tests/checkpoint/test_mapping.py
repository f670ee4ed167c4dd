"""Tensors are pages of their file, which processes share; those that cannot be are copied."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.core.values import Array
from penstock.defs.schema import BundleEntryProto
from penstock.defs.sorted_table import read_table, write_table
from penstock.defs.tensor_bundle import HEADER_KEY


def _mapping(array: Array) -> list[str]:
    """The line of this process's mappings in which an array lies, in words."""
    address = array.__array_interface__["data"][0]
    for line in Path("/proc/self/maps").read_text("utf-8").splitlines():
        first, _, last = line.split()[0].partition("-")
        if int(first, 16) <= address < int(last, 16):
            return line.split()
    raise AssertionError("the array lies nowhere")


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is mapped")
def test_a_tensor_is_pages_of_the_file_without_leave_to_write(tmp_path: Path) -> None:
    """The pages are the file's own, so that all processes that load it have them once."""
    ps.checkpoint.save(tmp_path / "ck", {"large": np.arange(100_000.0)})

    words = _mapping(ps.checkpoint.load(tmp_path / "ck")["large"])

    assert words[1][:3] in ("r--", "r-x")
    assert words[-1] == str(tmp_path / "ck.data-00000-of-00001")


def test_a_tensor_at_an_odd_place_is_copied_and_right(tmp_path: Path) -> None:
    """What lies where its type may not lie has the same elements in memory of its own."""
    values = np.arange(1000.0)
    prefix = tmp_path / "ck"
    ps.checkpoint.save(prefix, {"a": values})
    _move_by(prefix, 3)

    found = ps.checkpoint.load(prefix)["a"]

    assert found.flags.aligned
    assert not found.flags.writeable
    assert np.array_equal(found, values)


def _move_by(prefix: Path, distance: int) -> None:
    """Put bytes in front of all data, and say in the index where it is now."""
    data = prefix.with_name(f"{prefix.name}.data-00000-of-00001")
    data.write_bytes(bytes(distance) + data.read_bytes())
    index = prefix.with_name(f"{prefix.name}.index")
    entries = dict(read_table(index.read_bytes()))
    for key in entries.keys() - {HEADER_KEY}:
        entry = BundleEntryProto.FromString(entries[key])
        entry.offset += distance
        entries[key] = entry.SerializeToString()
    index.write_bytes(write_table(sorted(entries.items())))


def test_a_variable_is_copied_when_it_is_first_written_in_place(tmp_path: Path) -> None:
    """An update changes the variable, and neither the file nor who else reads it."""
    ps.checkpoint.save(tmp_path / "ck", {"a": np.zeros(1000)})
    path = tmp_path / "ck.data-00000-of-00001"
    before = path.read_bytes()
    other = ps.checkpoint.load(tmp_path / "ck")["a"]
    with ps.Graph().as_default():
        handle = ps.ops.var_handle_op(dtype="float64", shape=[1000], shared_name="a")
        restored = ps.ops.restore_v2(str(tmp_path / "ck"), ["a"], [""], dtypes=["float64"])[0]
        restore = ps.ops.assign_variable_op(handle, restored)
        update = ps.ops.resource_scatter_add(handle, [3], ps.constant([7.0], "float64"))
        value = ps.ops.read_variable_op(handle, dtype="float64")
        with ps.Session() as session:
            session.run(restore)
            session.run(update)
            after = session.run(value)

    assert after.sum() == after[3] == 7
    assert not other.any()
    assert path.read_bytes() == before
