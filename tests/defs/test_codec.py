"""A graph is read from whatever it is stored in, and damage is reported as such."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from google.protobuf import text_format

from penstock.defs.codec import load_graph_def
from penstock.defs.schema import GraphDef
from penstock.errors import InvalidArgumentError, NotFoundError, OpError
from support.graphs import graph_def

GRAPH = graph_def("x = Placeholder\ny = Neg(x)")


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("form", ["binary", "text"])
def test_formats_are_told_apart_by_content(tmp_path: Path, form: str, packed: bool) -> None:
    """Binary and text, gzip or not, whatever the file is called."""
    content = GRAPH.SerializeToString()
    if form == "text":
        content = text_format.MessageToString(GRAPH).encode()
    path = tmp_path / "graph.anything"
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)

    assert load_graph_def(path) == GRAPH
    assert load_graph_def(str(path)) == GRAPH
    assert load_graph_def(path.read_bytes()) == GRAPH


def test_messages_are_copied() -> None:
    """What is read does not change when the caller goes on with its message."""
    mine = graph_def("x = Placeholder\ny = Neg(x)")
    read = load_graph_def(mine)
    mine.node[0].name = "changed"

    assert read == GRAPH


def test_gzip_files_may_have_several_members() -> None:
    """What was packed in pieces, or put together from packed files, is read to its end."""
    content = GRAPH.SerializeToString()
    packed = gzip.compress(content[:7]) + gzip.compress(content[7:]) + bytes(3)

    assert load_graph_def(packed) == GRAPH


def test_text_with_comments_and_leading_blank_lines() -> None:
    """Text is recognised by failing to be binary, not by its first character."""
    text = b"\n# a comment\nnode { name: 'x' op: 'NoOp' }\n"

    assert load_graph_def(text).node[0].name == "x"


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe nonsense",
        b"node { name: ",
        b"hello, world",
        gzip.compress(b"\x0a" * 100, mtime=0)[:-10],
        b"\x1f\x8b\x08\x00garbage",
    ],
)
def test_other_content_is_refused(content: bytes) -> None:
    """What is no graph is an InvalidArgumentError that says so."""
    with pytest.raises(InvalidArgumentError, match=r"GraphDef|gzip"):
        load_graph_def(content)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    """A path that leads nowhere, or to a folder, is named."""
    with pytest.raises(NotFoundError, match=r"nowhere.pb"):
        load_graph_def(tmp_path / "nowhere.pb")
    with pytest.raises(InvalidArgumentError, match="is a folder"):
        load_graph_def(tmp_path)


@pytest.mark.parametrize(
    "path", ["a\0b", "x" * 5000, "/dev/null/graph.pb", 'node { name: "a" op: "NoOp" }' * 50]
)
def test_impossible_paths(path: str) -> None:
    """A path that no file can have is an error of Penstock's, not of Python's."""
    with pytest.raises(OpError):
        load_graph_def(path)


def test_things_that_hold_no_graph() -> None:
    """An object of some other kind is refused by its type."""
    with pytest.raises(InvalidArgumentError, match="from a list"):
        load_graph_def([GRAPH])


def test_deeply_nested_text_is_refused_without_a_crash() -> None:
    """Ten thousand levels of nesting are an error like any other."""
    text = b"node { attr { value { list { func { " + b"attr { value { func { " * 10_000

    with pytest.raises(InvalidArgumentError):
        load_graph_def(text)


def test_messages_live_in_their_own_pool() -> None:
    """TensorFlow's classes of the same names may be imported in the same process."""
    from google.protobuf import descriptor_pool

    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName(GraphDef.DESCRIPTOR.full_name)
