"""A server works on uvloop's event loop, and without uvloop on asyncio's."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("grpc")

import penstock as ps
from penstock.cluster.event_loop import new_event_loop
from support.clusters import new_cluster, serving


def kind_of_loop() -> str:
    """The package that a new loop is from."""
    loop = new_event_loop()
    loop.close()
    return type(loop).__module__.partition(".")[0]


def test_uvloop_gives_the_loop() -> None:
    """Where it is installed, it is what servers run on."""
    pytest.importorskip("uvloop")
    assert kind_of_loop() == "uvloop"


def test_a_server_works_without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its absence costs time and nothing else."""
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert kind_of_loop() == "asyncio"
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        with ps.device("/job:worker/task:1"):
            y = x * x
    with (
        serving(new_cluster(worker=2)) as servers,
        ps.Session(graph, target=servers[0].target) as session,
    ):
        assert session.run(y, {x: 3.0}) == 9.0
