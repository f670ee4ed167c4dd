"""Large contents beside the definition that they were taken out of."""

from __future__ import annotations

import gzip
import itertools
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError

import penstock as ps
from penstock.core import dtypes
from penstock.defs.attrs import from_proto
from penstock.defs.codec import load_apart, load_graph_def
from penstock.defs.large_contents import LARGE, WORTHWHILE, take_out
from penstock.defs.schema import GraphDef, Message
from penstock.defs.tensors import to_content_proto, to_proto
from penstock.errors import InvalidArgumentError

WEIGHTS = np.arange(WORTHWHILE // 4, dtype=np.float32).reshape(4, -1)


def constant(graph: Message, name: str, value: Any, **other: bytes) -> Message:
    """Add a constant of some numbers, and perhaps fields of other attributes."""
    node = graph.node.add(name=name, op="Const")
    array = np.asarray(value)
    node.attr["dtype"].type = dtypes.of_numpy(array.dtype).number
    node.attr["value"].tensor.CopyFrom(to_proto(array))
    for key, text in other.items():
        node.attr[key].s = text
    return node


def with_weights() -> Message:
    """A definition of three constants and a sum, of which one constant is large."""
    graph = GraphDef()
    graph.versions.producer = 1087
    constant(graph, "one", np.float32(1))
    constant(graph, "weights", WEIGHTS, _class=b"loc:@one")
    constant(graph, "few", np.arange(4, dtype=np.float32))
    node = graph.node.add(name="sum", op="AddV2", input=["weights", "one"])
    node.attr["T"].type = dtypes.float32.number
    graph.node.add(name="gone", op="NoOp", input=["^sum"])
    return graph


def put_back(rest: bytes, contents: Any) -> Message:
    """The definition as it was."""
    graph = GraphDef.FromString(rest)
    for position, content in contents.items():
        tensor = graph.node[position].attr["value"].tensor
        assert not tensor.tensor_content
        tensor.tensor_content = bytes(content)
    return graph


def test_only_what_is_large_is_taken_out() -> None:
    """All else stays where it is, and the contents are those of the bytes, not copies."""
    graph = with_weights()
    content = graph.SerializeToString()
    rest, contents = take_out(content)
    assert list(contents) == [1]
    assert contents[1] == WEIGHTS.tobytes()
    assert contents[1].obj is content
    assert len(rest) < len(content) - WEIGHTS.nbytes
    assert put_back(rest, contents) == graph


@pytest.mark.parametrize("form", ["bytes", "path", "gzip"])
def test_a_graph_of_a_session_has_them(form: str, tmp_path: Path) -> None:
    """Values, and the definition that is made of the graph, are what they were."""
    graph = with_weights()
    content = graph.SerializeToString()
    source: Any = gzip.compress(content, 1) if form == "gzip" else content
    if form == "path":
        source = tmp_path / "graph.pb"
        source.write_bytes(content)
    assert list(load_apart(source)[1]) == [1]
    with ps.Session(source) as session:
        np.testing.assert_array_equal(session.run("sum:0"), WEIGHTS + 1)
        value = session.run("weights:0")
        np.testing.assert_array_equal(value, WEIGHTS)
        assert value.flags.aligned
        found = session.graph.as_graph_def()
    assert [node.attr["value"] for node in found.node] == [n.attr["value"] for n in graph.node]


def test_whatever_takes_a_definition_has_them() -> None:
    """A graph that it is added to, under other names, one that goes on, and a pickled one."""
    content = with_weights().SerializeToString()
    graph = ps.Graph()
    graph.import_graph_def(content, name="a")
    again = pickle.loads(pickle.dumps(graph))
    for each in (graph, again):
        with ps.Session(each) as session:
            np.testing.assert_array_equal(session.run("a/sum:0"), WEIGHTS + 1)
    with ps.Session(ps.Graph()) as session:
        session.extend(content)
        np.testing.assert_array_equal(session.run("sum:0"), WEIGHTS + 1)


def test_a_value_is_one_object_as_long_as_somebody_has_it() -> None:
    """It is decoded again when it is gone, and cannot be written to."""
    graph = with_weights()
    attr = from_proto(graph.node[1].attr["value"])
    large = attr.with_content(memoryview(WEIGHTS.tobytes()))
    value = large.value
    assert large.value is value
    assert not value.flags.writeable
    del value
    np.testing.assert_array_equal(large.value, WEIGHTS)
    assert (large.dtype, large.shape, large.scalar_bytes) == (attr.dtype, attr.shape, None)
    assert large.proto == attr.proto


def test_a_content_that_does_not_fit() -> None:
    """It is refused as one in its place would be, and by the name of its node."""
    graph = with_weights()
    graph.node[1].attr["value"].tensor.tensor_content = bytes(WORTHWHILE + 1)
    with ps.Session(graph.SerializeToString()) as session:
        with pytest.raises(InvalidArgumentError, match=f"{WORTHWHILE + 1} bytes do not hold"):
            session.run("sum:0")
        assert session.run("one:0") == 1


def _twice(tensor: Message) -> bytes:
    return bytes(tensor.SerializeToString()) * 2


def _node(op: str, value: bytes, name: str = "value", more: bytes = b"") -> bytes:
    """A definition of one node with an attribute; names and values shorter than 128 bytes."""
    entry = b"\x0a" + bytes([len(name)]) + name.encode() + b"\x12" + bytes([len(value)]) + value
    node = b"\x0a\x01n\x12" + bytes([len(op)]) + op.encode() + b"\x2a" + bytes([len(entry)]) + entry
    return b"\x0a" + bytes([len(node + more)]) + node + more


NUMBERS = to_proto(np.arange(6, dtype=np.int32))
TENSOR = NUMBERS.SerializeToString()
TEXTS = to_content_proto(np.array([b"abcdefghij", b"klmnop"], object), dtypes.string)


def _value(tensor: bytes) -> bytes:
    return b"\x42" + bytes([len(tensor)]) + tensor


@pytest.mark.parametrize(
    ("content", "is_cut"),
    [
        (_node("Const", _value(TENSOR)), True),
        (_node("Const", _value(TENSOR) * 2), False),  # the second tensor is merged into the first
        (_node("Const", _value(_twice(NUMBERS))), False),
        (_node("Const", _value(TENSOR) + b"\x18\x01"), False),  # an integer instead, which counts
        (_node("Const", _value(TENSOR), "other"), False),
        (_node("Placeholder", _value(TENSOR)), False),
        (_node("Const", _value(TEXTS.SerializeToString())), False),
        (_node("Const", _value(TENSOR), more=b"\x12\x01X"), False),  # the last op counts
        (_node("Const", _value(TENSOR), more=_node("Const", _value(TENSOR))[6:]), False),
        (_node("Const", _value(TENSOR[2:])), False),  # of no type
        (_node("Const", _value(TENSOR))[:-1], False),
        (_node("Const", _value(TENSOR)) + b"\x0a\x7f", True),  # protobuf refuses the rest
        (b"", False),
    ],
)
def test_what_is_unusual_stays(content: bytes, is_cut: bool) -> None:
    """Whatever protobuf makes of it is made of what is left, too."""
    rest, contents = take_out(content, worthwhile=0, large=16)
    assert bool(contents) == is_cut
    if is_cut:
        rest, whole = rest.removesuffix(b"\x0a\x7f"), content.removesuffix(b"\x0a\x7f")
        assert put_back(rest, contents) == GraphDef.FromString(whole)
    else:
        assert rest == content


def test_damaged_definitions_are_what_they_were() -> None:
    """Bytes that change, are missing, or come twice: the same message, or the same refusal."""
    graph = GraphDef()
    constant(graph, "a", np.arange(20, dtype=np.int32), _class=b"loc:@b")
    constant(graph, "b", np.linspace(0, 1, 9), _output_shapes=b"x")
    good = graph.SerializeToString()
    chance = random.Random(7)
    outcomes = {True: 0, False: 0}
    for _ in range(3000):
        bad = bytearray(good)
        at = chance.randrange(len(bad))
        change = chance.choice([b"", bad[at : at + 9] * 2, *([bytes([chance.randrange(64)])] * 6)])
        bad[at : at + (1 if len(change) == 1 else chance.randint(1, 4))] = change
        rest, contents = take_out(bytes(bad), worthwhile=0, large=32)
        wanted, found = _parsed(bytes(bad)), _parsed(rest)
        assert (wanted is None) == (found is None)
        if wanted is not None:
            assert put_back(rest, contents).SerializeToString(deterministic=True) == (
                wanted.SerializeToString(deterministic=True)
            )
            outcomes[len(contents) == 2] += 1
    assert min(outcomes.values()) > 20


def _parsed(content: bytes) -> Message | None:
    try:
        return GraphDef.FromString(content)
    except (DecodeError, ValueError):
        return None


def test_bounds() -> None:
    """Small definitions and small contents are not worth it."""
    small = GraphDef()
    constant(small, "c", np.zeros(LARGE, np.uint8))
    assert take_out(small.SerializeToString()) == (small.SerializeToString(), {})
    for index in itertools.count():
        constant(small, f"c{index}", np.zeros(LARGE // 2, np.uint8))
        if small.ByteSize() > WORTHWHILE:
            break
    assert list(take_out(small.SerializeToString())[1]) == [0]


def test_errors_speak_of_all_of_it(tmp_path: Path) -> None:
    """What was taken out is not missed by who counts bytes."""
    content = with_weights().SerializeToString() + b"\x0a\x7f"
    path = tmp_path / "cut.pb"
    path.write_bytes(content)
    for source in (content, path):
        with pytest.raises(InvalidArgumentError) as apart:
            load_apart(source)
        with pytest.raises(InvalidArgumentError) as whole:
            load_graph_def(source)
        assert str(apart.value) == str(whole.value)
