"""Objects of a checkpoint, and walks along their edges."""

from __future__ import annotations

import pytest

from penstock.checkpoint import ObjectGraph, ObjectNode, SlotVariable
from penstock.defs.schema import TrackableObjectGraph
from penstock.errors import DataLossError, InvalidArgumentError


def variable(key: str) -> ObjectNode:
    """An object that keeps a tensor."""
    return ObjectNode({}, {"VARIABLE_VALUE": key})


def test_a_graph_survives_being_written() -> None:
    """Children, keys, slots and savers are what they were."""
    graph = ObjectGraph(
        [
            ObjectNode({"a": 1, "self": 0}, slot_variables=(SlotVariable(1, "momentum", 2),)),
            ObjectNode({}, {"VARIABLE_VALUE": "a/x"}, {"VARIABLE_VALUE": "called"}),
            ObjectNode(registered_saver=("Package.Saver", "name")),
        ]
    )

    assert list(ObjectGraph.parse(graph.serialized())) == list(graph)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xff", b"\x0a\x04\x0a\x02\x08\x05", b"\x0a\x06\x0a\x04\x08\x00\x12\xff"]
)
def test_damage_is_noticed(content: bytes) -> None:
    """Nothing, no message, and an edge to where no object is."""
    with pytest.raises(DataLossError, match="_CHECKPOINTABLE_OBJECT_GRAPH"):
        ObjectGraph.parse(content)


def test_a_negative_number_is_no_object() -> None:
    """It does not count from the end, as it would in a list of Python."""
    proto = TrackableObjectGraph()
    proto.nodes.add().children.add(node_id=-1, local_name="a")

    with pytest.raises(DataLossError, match="leads to object -1"):
        ObjectGraph.parse(proto.SerializeToString())


def test_paths_end_in_cycles() -> None:
    """Each object has its shortest path, also if it leads back to where it came from."""
    graph = ObjectGraph(
        [ObjectNode({"long": 1, "short": 2}), ObjectNode({"on": 2, "back": 0}), variable("v")]
    )

    assert graph.paths() == {0: (), 1: ("long",), 2: ("short",)}
    assert list(graph.variables()) == [(("short",), "v")]


def test_a_chain_of_many_objects_is_refused() -> None:
    """Their paths would take memory by the square of their number."""
    chain = [ObjectNode({"next": at + 1}) for at in range(100_000)]

    with pytest.raises(DataLossError, match="more than 1000 deep"):
        ObjectGraph([*chain, ObjectNode()]).paths()


def test_another_graph_is_walked_in_step() -> None:
    """Objects correspond by the edges that lead to them, whatever their numbers and keys are."""
    saved = ObjectGraph.of_paths(["model/a/kernel", "model/b/kernel", "optimizer/rate"])
    theirs = {
        10: {"model": 7, "signatures": 3},
        7: {"b": 1, "a": 2, "parent": 10, "alias": 2},
        1: {"kernel": 5},
        2: {"kernel": 6},
        3: {"model": 8},
    }

    found = saved.beside(lambda node: theirs.get(node, {}).items(), root=10)

    assert {node: saved.paths()[own] for node, own in found.items()} == {
        10: (),
        7: ("model",),
        1: ("model", "b"),
        2: ("model", "a"),
        5: ("model", "b", "kernel"),
        6: ("model", "a", "kernel"),
    }


def test_walks_in_step_end_in_cycles() -> None:
    """And the nearer way counts where two lead to one of their objects."""
    saved = ObjectGraph(
        [ObjectNode({"a": 1, "b": 2}), ObjectNode({"b": 3, "up": 0}), *[ObjectNode()] * 2]
    )
    theirs = {0: [("a", 1), ("b", 2)], 1: [("up", 0), ("b", 2)]}

    assert saved.beside(lambda node: theirs.get(node, [])) == {0: 0, 1: 1, 2: 2}


def test_edges_have_names() -> None:
    """A path with an empty edge is none."""
    with pytest.raises(InvalidArgumentError, match="an edge without a name"):
        ObjectGraph.of_paths(["a//b"])
