"""All sessions of the process can be reset at once, as in TensorFlow 1."""

from __future__ import annotations

import pytest

from penstock import Session, errors
from support.graphs import graph_def

GRAPH = """
    v = VarHandleOp[dtype=float32; shape=; shared_name=v; container=c]
    one = Const[value=1.0; dtype=float32]
    init = AssignVariableOp[dtype=float32](v, one)
    read = ReadVariableOp[dtype=float32](v)
"""


@pytest.mark.parametrize("containers", [None, ["c"], ["of nobody"]])
def test_reset_closes_every_session(containers: list[str] | None) -> None:
    """Whatever the containers, the sessions are closed, and new ones start afresh."""
    sessions = [Session(graph_def(GRAPH)) for _ in range(2)]
    for session in sessions:
        session.run("init")
    Session.reset("", containers)

    for session in sessions:
        with pytest.raises(errors.CancelledError, match=r"Session has been closed\."):
            session.run("read:0")
    with Session(graph_def(GRAPH)) as fresh, pytest.raises(errors.FailedPreconditionError):
        fresh.run("read:0")


def test_containers_can_be_cleared_alone() -> None:
    """A session drops one container's resources and goes on."""
    with Session(graph_def(GRAPH)) as session:
        session.run("init")
        session.resources.cleanup(["another"])
        assert session.run("read:0") == 1
        session.resources.cleanup(["c"])

        with pytest.raises(errors.FailedPreconditionError):
            session.run("read:0")


def test_other_processes_are_out_of_reach() -> None:
    """A target that is not this process is refused, and nothing is closed."""
    with Session(graph_def(GRAPH)) as session:
        with pytest.raises(errors.NotFoundError, match="No session factory registered"):
            Session.reset("http://somewhere:2222")

        session.run("init")
