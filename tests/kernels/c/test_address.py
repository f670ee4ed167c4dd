"""Addresses are those that numpy tells, and identities those that ``id`` does."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.c import address as module
from penstock.kernels.c.address import address, identities


class Own(np.ndarray):
    """An array of a class of one's own."""


def arrays() -> list[Array]:
    """Own memory, views, no elements, no axes, somebody else's class and memory."""
    whole = np.arange(24.0).reshape(2, 3, 4)
    frozen = whole.copy()
    frozen.flags.writeable = False
    return [
        whole,
        whole[1:, ::-1, 2],
        whole.T,
        frozen,
        np.empty((0, 3)),
        np.array(7),
        whole.view(Own),
        np.frombuffer(b"abcdefgh", np.uint8)[3:],
    ]


@pytest.mark.parametrize("array", arrays())
def test_the_first_element_is_there(array: Array) -> None:
    """Whatever the array is."""
    assert address(array) == array.__array_interface__["data"][0]


def test_it_is_read_where_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython's arrays are; where something else would be found, numpy is asked."""
    assert module._can_be_read() == (sys.implementation.name == "cpython")
    monkeypatch.setattr(module, "_read", lambda _array: 1)
    assert not module._can_be_read()


@pytest.mark.parametrize("implementation", ["cpython", "another"])
def test_identities(implementation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of all objects, in the array's order, where Python's objects have addresses."""
    monkeypatch.setattr(sys.implementation, "name", implementation)
    objects = np.empty((3, 4), object)
    for place, index in enumerate(np.ndindex(3, 4)):
        objects[index] = [b"", None, f"{place}", place][place % 4]
    for given in (objects, objects.T, objects[:, ::2], objects[:0]):
        found = identities(given)
        if implementation != "cpython":
            assert found is None
        else:
            assert found is not None
            assert found.tolist() == [id(one) for one in given.flat]
