"""What nodes are called whose author gives no name."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.builder.names import proposed_name
from penstock.catalogue.registry import all_ops
from penstock.core.names import is_legal_name

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
TRANSFER = {
    "tensor_name": "x",
    "send_device": CPU,
    "send_device_incarnation": 1,
    "recv_device": CPU,
}


def test_every_op_proposes_a_name_that_can_be_imported() -> None:
    """The ops of the runtime itself, too, whose names begin with an underscore."""
    refused = [op for op in all_ops() if not is_legal_name(proposed_name(op))]
    changed = [op for op in all_ops() if proposed_name(op) != op]

    assert refused == []
    assert changed == [op for op in all_ops() if op.startswith("_")]
    assert len(changed) > 100


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("_Recv", "Recv"),
        ("__inference_f_12", "inference_f_12"),
        ("f[x=1]", "f_x_1_"),
        ("_", "node"),
        ("été", "t_"),
        ("日本", "node"),
        ("a>", "node"),
        ("Namespace>TestStringOutput", "Namespace>TestStringOutput"),
    ],
)
def test_names_are_made_legal(op: str, name: str) -> None:
    """Functions may be called anything; what a node must not be called is left out."""
    assert proposed_name(op) == name


def test_a_graph_of_the_runtimes_own_ops_is_read_back() -> None:
    """What the builder makes without names, the importer takes, and gives the same graph."""
    graph = ps.Graph()
    with graph.as_default(), ps.name_scope("s"):
        x = ps.ops._recv("float32", **TRANSFER)
        ps.ops._send(x, **TRANSFER)
        ps.ops._send(x, **TRANSFER)
    proto = ps.graph_to_def(graph)

    assert [node.name for node in proto.node] == ["s/Recv", "s/Send", "s/Send_1"]
    with ps.Session(proto) as session:
        assert ps.graph_to_def(session.graph) == proto


def test_outside_of_scopes_they_are_legal_as_well() -> None:
    """At the outermost level nothing stands before the name."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.ops._recv("float32", **TRANSFER)

    assert x.name == "Recv:0"
    ps.Session(ps.graph_to_def(graph)).close()
