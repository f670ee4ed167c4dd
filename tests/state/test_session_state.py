"""Tensors outlive their run only under handles that were fetched."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.errors import InvalidArgumentError
from penstock.state.session_state import SessionState, TensorStore


@pytest.fixture
def session() -> SessionState:
    """A session that keeps nothing yet."""
    return SessionState()


def test_kept_tensor_is_found(session: SessionState) -> None:
    """It is the same array, made read-only since others will read it."""
    array = np.arange(3)
    session.add("x;0;cpu", array)

    assert session.get("x;0;cpu") is array
    assert not array.flags.writeable


def test_handle_is_used_once(session: SessionState) -> None:
    """A second tensor under the same handle is refused, and the first stays."""
    session.add("x;0;cpu", 1)

    with pytest.raises(InvalidArgumentError, match="Failed to add a tensor with handle 'x;0;cpu'"):
        session.add("x;0;cpu", 2)
    assert session.get("x;0;cpu") == 1


def test_unknown_handle_is_named(session: SessionState) -> None:
    """Reading and deleting what is not kept says which handle it was."""
    with pytest.raises(InvalidArgumentError) as caught:
        session.get("h")
    assert caught.value.reason == "The tensor with handle 'h' is not in the session store."

    with pytest.raises(InvalidArgumentError) as caught:
        session.delete("h")
    assert caught.value.reason == (
        "Failed to delete a tensor with handle 'h' in the session store."
    )


def test_deleted_tensor_is_gone(session: SessionState) -> None:
    """After deleting, the handle means nothing."""
    session.add("h", b"text")
    session.delete("h")

    with pytest.raises(InvalidArgumentError):
        session.get("h")
    with pytest.raises(InvalidArgumentError):
        session.delete("h")


def test_ids_are_unique(session: SessionState) -> None:
    """Every handle of a session gets a number of its own."""
    assert [session.new_id() for _ in range(3)] == [0, 1, 2]


def test_only_fetched_handles_keep_their_tensors(session: SessionState) -> None:
    """A step may put up several tensors; those move whose node was fetched."""
    store = TensorStore()
    store.add("a", "a;0;cpu", 1)
    store.add("b", "b;1;cpu", 2)
    store.save_tensors(["b:0", "other"], session)

    assert session.get("b;1;cpu") == 2
    with pytest.raises(InvalidArgumentError):
        session.get("a;0;cpu")


def test_node_puts_up_one_tensor_in_a_step() -> None:
    """A second one, as in a loop, has no handle that could be fetched beside the first."""
    store = TensorStore()
    store.add("a", "a;0;cpu", 1)

    with pytest.raises(InvalidArgumentError, match="Failed to add a tensor with name 'a'"):
        store.add("a", "a;1;cpu", 2)
