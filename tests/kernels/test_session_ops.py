"""Tensors stay in the session under handles that were fetched."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import Session, errors
from penstock.defs.schema import ResourceHandleProto
from support.sketch import CPU, sketch

GRAPH = """
    x = Const() value=[1.0,2.0]
    h = GetSessionHandle(x)
    copy = Identity(h)
    as_resource = GetSessionHandleV2(x)
    handle = Placeholder() dtype=string
    tensor = GetSessionTensor(handle) dtype=float32
    as_int = GetSessionTensor(handle) dtype=int32
    delete = DeleteSessionTensor(handle)
"""


@pytest.fixture
def session() -> Session:
    """A session over a graph that keeps and finds tensors."""
    return Session(sketch(GRAPH))


def test_tensor_is_found_in_a_later_run(session: Session) -> None:
    """The handle names node, number and device."""
    handle = session.run("h:0")

    assert handle == f"h;0;{CPU}".encode()
    assert session.run("tensor:0", {"handle:0": handle}).tolist() == [1, 2]
    assert session.run("h:0") == f"h;1;{CPU}".encode()


def test_handle_that_was_not_fetched_keeps_nothing(session: Session) -> None:
    """A copy of the handle names a tensor that is gone."""
    handle = session.run("copy:0")

    with pytest.raises(errors.InvalidArgumentError, match="is not in the session store"):
        session.run("tensor:0", {"handle:0": handle})


def test_deleted_tensor_is_gone(session: Session) -> None:
    """Deleting works once."""
    handle = {"handle:0": session.run("h:0")}
    session.run("delete", handle)

    with pytest.raises(errors.InvalidArgumentError, match="is not in the session store"):
        session.run("tensor:0", handle)
    with pytest.raises(errors.InvalidArgumentError, match="Failed to delete a tensor with handle"):
        session.run("delete", handle)


def test_type_must_be_the_kept_one(session: Session) -> None:
    """The node's type is compared with the tensor's."""
    handle = session.run("h:0")

    with pytest.raises(errors.InternalError, match="does not match declared output type int32"):
        session.run("as_int:0", {"handle:0": handle})


def test_handle_may_be_a_resource(session: Session) -> None:
    """Its name is the handle that finds the tensor; container and type say what it is."""
    message = ResourceHandleProto.FromString(session.run("as_resource:0").tobytes())
    assert (message.container, message.maybe_type_name) == ("TensorHandle", "TensorHandle")
    assert message.device == CPU

    found = session.run("tensor:0", {"handle:0": np.array(message.name.encode(), object)})
    assert found.tolist() == [1, 2]
