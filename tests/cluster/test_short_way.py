"""Steps that come again and again take a short way, with the same answers and the same errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")

import penstock as ps
from penstock.cluster import Server
from penstock.cluster.brief import BriefRequests
from penstock.cluster.short_way import ShortWay
from support.clusters import new_cluster, serving

#: More steps than it takes until they are known to be brief.
TIMES = 6


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A cluster of one task, which is told that no step takes any time."""
    note = BriefRequests.note

    def note_no_time(
        self: BriefRequests, kind: Any, size: int, _seconds: float, *, is_straight: bool
    ) -> None:
        note(self, kind, size, 0.0, is_straight=is_straight)

    monkeypatch.setattr(BriefRequests, "note", note_no_time)
    with serving(new_cluster(worker=1)) as servers:
        yield servers[0]


def short_ways(server: Server) -> list[ShortWay | None]:
    """Those that the only session has."""
    (client,) = server.master._clients.values()
    return list(client.session.short_ways._known.values())


def test_answers_are_those_of_a_session_here(server: Server) -> None:
    """What is fetched twice, what is fed and fetched, text, empty arrays, numbers of many types."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [None], name="x")
        n = ps.placeholder(ps.dtypes.int8, [], name="n")
        text = ps.placeholder(ps.dtypes.string, None, name="text")
        fetches = [
            x * x, n, x * x, ps.ops.StringLength(input=text), text,
            ps.ops.Cast(x=x, DstT=ps.dtypes.qint8), n + n,
        ]  # fmt: skip
    with ps.Session(graph) as here, ps.Session(graph, target=server.target) as there:
        for turn in range(TIMES):
            feeds: dict[Any, Any] = {x: np.arange(turn * 1.0), n: turn, text: [b"a" * turn, b""]}
            for one, other in zip(here.run(fetches, feeds), there.run(fetches, feeds), strict=True):
                np.testing.assert_array_equal(one, other, strict=True)
        # Larger requests than the last are not brief; of equal ones the short way was learnt.
        for _ in range(TIMES):
            there.run(fetches, feeds)
        assert [type(way) for way in short_ways(server)] == [ShortWay]


def test_a_dead_fetch_is_an_error(server: Server) -> None:
    """The same as of a session here; where it is alive, it has its value."""
    graph = ps.Graph()
    with graph.as_default():
        which = ps.placeholder(ps.dtypes.bool_, [], name="which")
        off, on = ps.ops.Switch(data=ps.constant(3.0), pred=which, name="switch")
        y, z = ps.identity(on, name="y"), ps.identity(off, name="z")
    with ps.Session(graph) as here, ps.Session(graph, target=server.target) as there:
        for _ in range(TIMES):
            assert there.run(y, {which: True}) == 3.0
        assert [type(way) for way in short_ways(server)] == [ShortWay]
        with pytest.raises(ps.errors.InvalidArgumentError, match="y:0 is dead") as expected:
            here.run(y, {which: False})
        with pytest.raises(ps.errors.InvalidArgumentError, match="y:0 is dead") as seen:
            there.run(y, {which: False})
        assert expected.value.reason in seen.value.reason
        assert there.run(z, {which: False}) == 3.0


def test_part_of_a_run_is_no_step_of_the_same_names(server: Server) -> None:
    """A partial run goes on, however often such a step was run before."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [None], name="x")
        y = x * x
        z = y + y
    with ps.Session(graph, target=server.target) as session:
        for _ in range(TIMES):
            session.run(y, {x: np.ones(1000)})  # so that what follows is no larger
        run = session.partial_run_setup([y, z], [x])
        assert session.partial_run(run, y, {x: [3.0]}) == [9.0]
        assert session.partial_run(run, z) == [18.0]
