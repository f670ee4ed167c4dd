"""Only what a request needs is left, with its feeds and fetches as nodes."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core import dtypes
from penstock.errors import InvalidArgumentError, NotFoundError, OpError
from penstock.graph.graph import Graph, Versions
from penstock.graph.stages import Placed, Pruned
from penstock.passes.prune import ClientDevice, Medium, Request, prune
from support.graphs import graph, lines

CLIENT = ClientDevice("/job:localhost/replica:0/task:0/device:CPU:0")
CHAIN = """
    x = Placeholder
    w = VariableV2
    a = Neg(x)
    b = Add(a, w)
    c = Neg(b)
    p = Placeholder
    d = Neg(p, ^p)
    s = NoOp(^a, ^x)
"""


def pruned(text: str, **request: Any) -> Pruned:
    """Prune a graph that lies on one device."""
    return prune(placed(graph(text)), Request(**request), CLIENT)


def placed(made: Graph) -> Placed:
    """Everything on the client's device."""
    return Placed(made, {node.id: CLIENT.name for node in made})


def test_targets_keep_what_they_depend_on() -> None:
    """Data and control inputs are followed backwards; nothing else stays."""
    assert lines(pruned(CHAIN, targets=("s",)).graph) == [
        "x = Placeholder",
        "a = Neg(x)",
        "s = NoOp(^a, ^x)",
    ]


def test_feeds_replace_producers() -> None:
    """What lies only behind a fed endpoint is not run."""
    got = pruned(CHAIN, feeds=("a:0",), fetches=("b:0",))

    assert lines(got.graph) == [
        "w = VariableV2",
        "b = Add(_arg_a_0_0, w)",
        "_arg_a_0_0 = _Arg",
        "_retval_b_0_0 = _Retval(b)",
    ]
    assert got.feed_types == (dtypes.float32,)
    assert got.fetch_types == (dtypes.float32,)


def test_fed_references_become_values() -> None:
    """Feeding a variable's reference feeds its value type."""
    assert pruned(CHAIN, feeds=("w:0",), fetches=("c:0",)).feed_types == (dtypes.float32,)


def test_control_edges_leave_fed_placeholders_only() -> None:
    """A fed node that is no placeholder still runs when something must wait for it."""
    got = lines(pruned(CHAIN, feeds=("a:0", "x:0", "p:0"), fetches=("d:0",), targets=("s",)).graph)

    assert "s = NoOp(^_arg_x_0_1, ^a)" in got
    assert "d = Neg(_arg_p_0_2, ^_arg_p_0_2)" in got


def test_a_fetch_behind_a_feed_sees_it() -> None:
    """Feeds are wired before fetches."""
    got = lines(pruned(CHAIN, feeds=("b:0",), fetches=("c:0",)).graph)

    assert got == ["c = Neg(_arg_b_0_0)", "_arg_b_0_0 = _Arg", "_retval_c_0_0 = _Retval(c)"]


def test_unneeded_feeds_are_legal() -> None:
    """A feed that reaches nothing is left out."""
    assert lines(pruned(CHAIN, feeds=("p:0",), targets=("w",)).graph) == ["w = VariableV2"]


def test_the_rendezvous_medium_uses_recv_and_send() -> None:
    """Partial runs hand feeds and fetches over by the endpoint's name."""
    got = pruned(CHAIN, feeds=("a:0",), fetches=("b:0",), medium=Medium.RENDEZVOUS)

    assert "_recv_a_0 = _Recv" in lines(got.graph)
    send = got.graph.node("_send_b_0")
    assert send.attrs["tensor_name"] == b"b:0"
    assert send.attrs["client_terminated"] is True


def test_long_chains_need_no_stack() -> None:
    """Depth is limited by memory, not by recursion; a feed in the middle cuts it."""
    text = "n0 = Placeholder\n" + "\n".join(f"n{i} = Neg(n{i - 1})" for i in range(1, 20001))
    got = pruned(text, feeds=("n10000:0",), fetches=("n20000:0",))

    assert len(got.graph) == 10002


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        ({}, InvalidArgumentError, "Must specify at least one target to fetch or execute."),
        ({"feeds": ("a:0", "a:0"), "fetches": ("b:0",)}, InvalidArgumentError, "more than once"),
        ({"feeds": ("a:0",), "fetches": ("a:0",)}, InvalidArgumentError, "both fed and fetched"),
        ({"feeds": ("z:0",), "fetches": ("b:0",)}, NotFoundError, "unable to find feed output z:0"),
        ({"feeds": ("a:3",), "fetches": ("b:0",)}, InvalidArgumentError, "output index < 1"),
        ({"fetches": ("z:0",)}, NotFoundError, "FetchOutputs node z:0: not found"),
        ({"fetches": ("s:0",)}, InvalidArgumentError, "which produces no output"),
        ({"fetches": ("a:3",)}, InvalidArgumentError, "output index too large, must be < 1"),
        ({"targets": ("z", "a", "y")}, NotFoundError, "target nodes not found: z y"),
    ],
)  # fmt: skip
def test_bad_requests(request_: dict[str, Any], error: type[OpError], message: str) -> None:
    """Each mistake has TensorFlow's code and phrase."""
    with pytest.raises(error, match=message):
        pruned(CHAIN, **request_)


def test_nodes_without_a_device_harm_only_who_needs_them() -> None:
    """A node that no kernel supports is refused when somebody needs it."""
    made = graph(CHAIN)
    devices = {n.id: CLIENT.name for n in made if n.name != "b"}
    some = Placed(made, devices)

    assert len(prune(some, Request(targets=("a",)), CLIENT).graph) == 2
    with pytest.raises(InvalidArgumentError, match="No OpKernel was registered"):
        prune(some, Request(targets=("c",)), CLIENT)


def test_fetched_references_are_values() -> None:
    """What is fetched of a variable's reference is of its value type."""
    got = pruned(CHAIN, fetches=("w:0",))

    assert got.fetch_types == (dtypes.float32,)
    assert not got.fetch_types[0].is_ref


def test_the_clients_transfers_bear_its_incarnation() -> None:
    """Both ends of what the client feeds and fetches agree on its device's life."""
    client = ClientDevice(CLIENT.name, 99)
    request = Request(feeds=("a:0",), fetches=("b:0",), medium=Medium.RENDEZVOUS)
    got = prune(placed(graph(CHAIN)), request, client).graph

    ends = [got.node("_recv_a_0"), got.node("_send_b_0")]
    assert [node.attrs["send_device_incarnation"] for node in ends] == [99, 99]


def test_what_is_left_is_of_the_graphs_versions() -> None:
    """Kernels that depend on who made the graph do so after pruning."""
    made = graph(CHAIN)
    made.versions = Versions(producer=27, min_consumer=5)

    assert prune(placed(made), Request(targets=("s",)), CLIENT).graph.versions == made.versions
