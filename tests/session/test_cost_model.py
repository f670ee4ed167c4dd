"""The cost graph: in which runs it comes, and what is in it.

The runs are those in which TensorFlow 2.21 fills ``RunMetadata.cost_graph``.
"""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.defs.schema import ConfigProto
from support.graphs import graph_def
from support.loops import counting_loop
from support.sketch import sketch

GRAPH = """
    x = Placeholder
    y = Neg(x)
    z = Add(y, x) @/device:CPU:1
    out = Neg(z)
"""


def config(every: int, after: int, **options: Any) -> ps.Config:
    """A configuration of two devices that builds a cost model."""
    graph_options = ps.GraphOptions(build_cost_model=every, build_cost_model_after=after)
    return ps.Config(graph_options=graph_options, device_count={"CPU": 2}, **options)


def filled(session: ps.Session, fetch: str, runs: int) -> list[int]:
    """The numbers of the runs that gave a cost graph; each gives statistics as well."""
    found = []
    for number in range(runs):
        metadata = ps.RunMetadata()
        session.run(fetch, {"x:0": [1.0, 2.0]}, None, metadata)
        assert bool(metadata.cost_graph.node) is bool(metadata.step_stats.dev_stats)
        if metadata.cost_graph.node:
            found.append(number)
    return found


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize(
    ("every", "after", "runs"),
    [
        (0, 0, []),
        (1, 0, [0, 1, 2, 3, 4, 5, 6, 7]),
        (2, 0, [1, 3, 5, 7]),
        (3, 0, [2, 5]),
        (1, 2, [2, 3, 4, 5, 6, 7]),
        (2, 1, [2, 4, 6]),
        (2, 2, [3, 5, 7]),
        (3, 2, [4, 7]),
        (1, 5, [5, 6, 7]),
        (0, 2, []),
        (-1, 0, []),
        (2, -1, [0, 2, 4, 6]),
    ],
)
def test_the_runs_that_are_measured(every: int, after: int, runs: list[int], tier: ps.Tier) -> None:
    """One of so many runs from the first that counts; each request counts its own."""
    with ps.Session(graph_def(GRAPH), config=config(every, after, tier=tier)) as session:
        assert filled(session, "out:0", 8) == runs
        assert filled(session, "y:0", 2) == [number for number in runs if number < 2]


def test_runs_of_callables_do_not_count() -> None:
    """They have executors of their own, and no metadata."""
    with ps.Session(graph_def(GRAPH), config=config(2, 0)) as session:
        call = session.make_callable("out:0", ["x:0"])
        assert call(3.0) == 0.0
        assert filled(session, "out:0", 4) == [1, 3]


def test_a_message_asks_for_it() -> None:
    """The fields of GraphOptions in a ConfigProto mean the same."""
    proto = ConfigProto(device_count={"CPU": 2})
    proto.graph_options.build_cost_model = 2
    proto.graph_options.build_cost_model_after = 1
    with ps.Session(graph_def(GRAPH), config=proto) as session:
        assert filled(session, "out:0", 5) == [2, 4]


def test_all_nodes_are_in_it() -> None:
    """Each partition has a source, a sink and its nodes, by numbers; inputs refer to these."""
    metadata = ps.RunMetadata()
    options = ps.RunOptions(output_partition_graphs=True)
    with ps.Session(graph_def(GRAPH), config=config(1, 0)) as session:
        session.run("out:0", {"x:0": [1.0, 2.0]}, options, metadata)

    nodes = list(metadata.cost_graph.node)
    assert [node.id for node in nodes] == list(range(len(nodes)))
    by_name = {(node.device[-5:], node.name): node for node in nodes}
    for graph in metadata.partition_graphs:
        for node in graph.node:
            entry = by_name[node.device[-5:], node.name]
            before = [nodes[info.preceding_node].name for info in entry.input_info]
            assert before == [text.partition(":")[0] for text in node.input if text[0] != "^"]
            assert entry.is_final is (node.op == "_Send")
    assert [node.name for node in nodes].count("_SOURCE") == 2
    z = by_name["CPU:1", "z"]
    assert (z.output_info[0].size, z.output_info[0].dtype) == (8, 1)
    assert [dim.size for dim in z.output_info[0].shape.dim] == [2]
    (received,) = [node for node in nodes if node.id == z.input_info[0].preceding_node]
    assert (received.output_info[0].size, received.output_info[0].shape.unknown_rank) == (-1, True)


def test_the_dearest_activation_counts() -> None:
    """In a loop a node costs what its longest turn cost, and as much as in any run before."""
    metadata, costs = ps.RunMetadata(), []
    with ps.Session(sketch(counting_loop()), config=config(1, 0)) as session:
        for limit in (50, 1, 2):
            session.run("exit:0", {"limit": limit}, None, metadata)
            found = {node.name: node.compute_cost for node in metadata.cost_graph.node}
            records = metadata.step_stats.dev_stats[0].node_stats
            turns = [r.op_end_rel_nanos for r in records if r.node_name == "sum"]
            assert len(turns) == limit
            costs.append(found["sum"])
            assert costs[-1] >= max(turns) // 1000
    assert costs == sorted(costs)
