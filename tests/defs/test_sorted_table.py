"""Sorted tables: what is written is read back, and damage is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.defs.sorted_table import read_table, write_table
from penstock.errors import DataLossError

ITEMS = [(b"%05d" % n, b"v" * (n % 50)) for n in range(20_000)]


@given(st.dictionaries(st.binary(max_size=8), st.binary(max_size=40), max_size=60))
def test_round_trip(items: dict[bytes, bytes]) -> None:
    """Any keys and values survive, the empty ones included."""
    listed = sorted(items.items())

    assert list(read_table(write_table(listed))) == listed


def test_many_blocks() -> None:
    """A table that does not fit into one block keeps its order."""
    file = write_table(ITEMS)

    assert len(file) > 2 * (256 << 10)
    assert list(read_table(file)) == ITEMS


@pytest.mark.parametrize("at", [0, 100, 300_000, -60, -1])
def test_damage_is_noticed(at: int) -> None:
    """A byte that changed, in a block, the index or the footer, is an error."""
    file = bytearray(write_table(ITEMS))
    file[at] ^= 0x55

    with pytest.raises(DataLossError):
        list(read_table(bytes(file)))


@pytest.mark.parametrize("size", [0, 7, 47, 1000])
def test_cut_files_are_noticed(size: int) -> None:
    """A file that ends too early is an error."""
    with pytest.raises(DataLossError):
        list(read_table(write_table(ITEMS)[:size]))
