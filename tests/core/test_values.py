"""What values are, and what may happen to their memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.values import Ref, freeze, keep


def test_kept_array_is_read_only_and_not_copied() -> None:
    """An array that owns its memory is kept as it is."""
    array = np.arange(3)

    assert keep(array) is array
    assert not array.flags.writeable


def test_kept_view_of_frozen_memory_is_not_copied() -> None:
    """Nobody writes into a constant, so its parts need no memory of their own."""
    constant = freeze(np.arange(6))
    view = constant.reshape((2, 3))[1]

    assert keep(view) is view


def test_kept_view_of_frozen_bytes_is_not_copied() -> None:
    """What was read from a message cannot change either."""
    view = np.frombuffer(b"abcd", np.uint8)

    assert keep(view) is view


@pytest.mark.parametrize("owner", [np.arange(4, dtype=np.uint8), bytearray(4)])
def test_kept_view_of_writable_memory_is_copied(owner: Any) -> None:
    """What others may write into does not change what was kept."""
    view = np.frombuffer(owner, np.uint8)
    view.flags.writeable = False
    kept = keep(view[1:])
    owner[1] = 100

    assert kept[0] != 100
    assert not kept.flags.writeable


def test_scalars_are_kept_as_they_are() -> None:
    """Numbers and text cannot change."""
    number = np.float32(1)

    assert keep(number) is number
    assert keep(b"text") == b"text"


def test_assigned_reference_keeps_its_value() -> None:
    """A place does not change because an array does that was put there."""
    mine = np.arange(3)
    ref = Ref("v", dtypes.int64)
    ref.assign(mine.view())
    mine[0] = 100

    assert ref.value.tolist() == [0, 1, 2]
