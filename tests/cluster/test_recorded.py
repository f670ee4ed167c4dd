"""What TensorFlow's tasks and Penstock's said to each other once, played without TensorFlow.

``recorded`` has been made by ``tools/record_exchanges.py``.  Where TensorFlow asked, the same is
asked again, and the answers must mean what they meant; where it answered, it answers again, and
must be asked for the same.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

grpc = pytest.importorskip("grpc")

import penstock as ps
from cluster.recorded.client import ask
from penstock.cluster import Server
from penstock.cluster.services import request_class, response_class
from penstock.defs.schema import GraphDef, TensorProto
from penstock.defs.tensors import from_proto
from support.clusters import free_ports, new_cluster, serving
from support.exchanges import Event, Names, Player, StandIn, meaning, read

HERE = Path(__file__).parent / "recorded"


def recorded(name: str) -> list[Event]:
    """The events of one direction."""
    return read(HERE / f"{name}.jsonl")


def port_of(server: Server) -> int:
    """Where a server listens."""
    return int(server.target.rpartition(":")[2])


def test_tensorflows_client_asks_us() -> None:
    """Its requests, to our master with two tasks: answers mean what TensorFlow's client took."""
    events = recorded("tensorflows_client")
    with serving(new_cluster(worker=2)) as servers:
        assert Player(events, 0, port_of(servers[0])).play() == len(events) // 2 >= 10


def test_tensorflows_master_asks_us() -> None:
    """Its requests to our worker, which asks it for values in turn."""
    events = recorded("tensorflows_master")
    with standing_in(events, 0) as other:
        (own,) = free_ports(1)
        cluster = {"worker": [f"127.0.0.1:{other.port}", f"127.0.0.1:{own}"]}
        with Server(cluster, "worker", 1, grace_seconds=0) as server:
            assert Player(events, 1, port_of(server)).play() > 30
        assert other.strange == []
        assert "RecvTensor" not in other.left


class standing_in:  # noqa: N801  (used as a function)
    """A stand-in for a task, until the block ends."""

    def __init__(self, events: list[Event], task: int) -> None:
        self._server = StandIn(events, task)

    def __enter__(self) -> StandIn:
        return self._server

    def __exit__(self, *_raised: object) -> None:
        self._server.close()


def test_our_client_asks_tensorflow() -> None:
    """Our client's requests mean what those meant that TensorFlow's master answered."""
    with standing_in(recorded("our_client"), 0) as master:
        with ps.Session(
            str(HERE / "graph.pb"), target=f"grpc://127.0.0.1:{master.port}"
        ) as session:
            ask(session, ps.errors.OpError)
        assert (master.strange, master.left) == ([], [])


def test_our_master_asks_tensorflow() -> None:
    """So do our master's to a worker; whoever asked for what it sent is not there."""
    with standing_in(recorded("our_master"), 1) as worker:
        (own,) = free_ports(1)
        cluster = {"worker": [f"127.0.0.1:{own}", f"127.0.0.1:{worker.port}"]}
        with Server(cluster, "worker", 0, grace_seconds=0) as server:
            with ps.Session(str(HERE / "graph.pb"), target=server.target) as session:
                ask(session, ps.errors.OpError)
        assert worker.strange == []
        # Who waited longer asked whether it is there; and the step whose own part failed at once
        # may be over before the other one is asked.
        assert not Counter(worker.left) - Counter(["GetStatus", "RunGraph", "RecvTensor"])


@pytest.mark.parametrize("name", ["tensorflows_client", "our_client"])
def test_answers_are_those_of_a_session_of_one_process(name: str) -> None:
    """Whoever asked, and whoever answered: the values are the graph's."""
    session, wanted = ps.Session(local_graph()), []
    for step in steps():
        feeds = {"x:0": np.float32(step["feed"])} if "feed" in step else {}
        try:
            values = session.run([*step.get("fetch", ()), *step.get("run", ())], feeds)
        except ps.errors.OpError as error:
            wanted.append(int(error.code))
        else:
            wanted.append([np.asarray(value).tolist() for value in values if value is not None])
    got = []
    for event in recorded(name):
        if event.is_answer and event.method == "RunStep":
            answer = event.message
            values = {
                one.name: np.asarray(from_proto(one.tensor)).tolist() for one in answer.tensor
            }
            fetches = steps()[len(got)].get("fetch", [])
            got.append(answer.status_code or [values[fetch] for fetch in fetches])
    assert got == wanted


def steps() -> list[dict]:  # type: ignore[type-arg]
    """What is asked."""
    found: list[dict] = json.loads((HERE / "steps.json").read_text())  # type: ignore[type-arg]
    return found


def local_graph() -> Any:
    """The graph, without its devices."""
    graph = GraphDef.FromString((HERE / "graph.pb").read_bytes())
    for node in graph.node:
        node.device = ""
    return graph


def test_all_directions_have_what_matters() -> None:
    """A master's requests to a worker, and a client's to a master."""
    for name in ("our_client", "tensorflows_client"):
        found = Counter(event.method for event in recorded(name))
        assert found["CreateSession"] == found["CloseSession"] == 2
        assert found["RunStep"] == 2 * len(steps())
    for name in ("our_master", "tensorflows_master"):
        found = Counter(event.method for event in recorded(name))
        for method in ("CreateWorkerSession", "RegisterGraph", "RunGraph", "DeleteWorkerSession"):
            assert found[method] >= 2, (name, method)
        assert found["RecvTensor"] >= 2


# -- what compares them ------------------------------------------------------------------------


def test_handles_and_numbers_of_a_life_mean_nothing() -> None:
    """As long as equal ones stand for equal ones."""
    run = request_class("RunGraph")
    first = [run(session_handle="a", step_id=7), run(session_handle="b", step_id=8)]
    other = [run(session_handle="x", step_id=1), run(session_handle="y", step_id=2)]
    mixed = [run(session_handle="x", step_id=1), run(session_handle="x", step_id=2)]
    assert said(first) == said(other) != said(mixed)


def said(messages: list[object]) -> list[object]:
    """The meaning of messages in order."""
    names = Names()
    return [meaning(message, names) for message in messages]


def test_values_and_names_mean_something() -> None:
    """Other values, names or codes are another meaning; another way to write a tensor is not."""
    step = request_class("RunStep")
    one, same, other = step(), step(), step()
    one.feed.add(name="x").tensor.CopyFrom(TensorProto(dtype=1, float_val=[1.0]))
    same.feed.add(name="x").tensor.CopyFrom(
        TensorProto(dtype=1, tensor_content=np.float32(1.0).tobytes())
    )
    other.feed.add(name="x").tensor.CopyFrom(TensorProto(dtype=1, float_val=[2.0]))
    assert said([one]) == said([same]) != said([other])
    answer = response_class("RunStep")
    assert said([answer(status_code=3)]) != said([answer(status_code=4)])


def test_a_stand_in_notices_what_it_was_not_asked_before() -> None:
    """Another feed than that which was recorded."""
    with standing_in(recorded("our_client"), 0) as master:
        target = f"grpc://127.0.0.1:{master.port}"
        with ps.Session(str(HERE / "graph.pb"), target=target) as session:
            session.run("init")
            with pytest.raises(ps.errors.DataLossError):
                session.run("z:0", {"x:0": 12345.0})
        assert len(master.strange) == 1
