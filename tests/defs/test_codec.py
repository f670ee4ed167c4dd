"""A graph is read from whatever it is stored in, and damage is reported as such."""

from __future__ import annotations

import gzip
import inspect
import os
import tracemalloc
from pathlib import Path

import pytest
from google.protobuf import text_format

from penstock.defs.codec import load_graph_def
from penstock.defs.schema import GraphDef
from penstock.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
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


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_graphs_larger_than_allowed(tmp_path: Path, packed: bool) -> None:
    """The bound is on the graph itself, however small the file is that it comes in."""
    content = GRAPH.SerializeToString()
    path = tmp_path / "graph.pb"
    path.write_bytes(gzip.compress(content) if packed else content)

    assert load_graph_def(path, max_bytes=len(content)) == GRAPH
    for source in (path, path.read_bytes()):
        with pytest.raises(ResourceExhaustedError, match=f"more than {len(content) - 1} bytes"):
            load_graph_def(source, max_bytes=len(content) - 1)


def test_a_bomb() -> None:
    """What unpacks to a thousand times its size is not unpacked beyond the bound."""
    bomb = gzip.compress(bytes(1 << 26), mtime=0) * 100
    tracemalloc.start()
    try:
        with pytest.raises(ResourceExhaustedError, match="unpacks to more than 1000000 bytes"):
            load_graph_def(bomb, max_bytes=1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_the_bound_is_what_protobuf_takes() -> None:
    """Nobody who says nothing is given more than 2 GiB."""
    assert inspect.signature(load_graph_def).parameters["max_bytes"].default == 2 << 30


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_files_that_would_never_end(tmp_path: Path) -> None:
    """A FIFO that nobody writes to, and a device, are refused at once."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, Path("/dev/zero")):
        with pytest.raises(FailedPreconditionError, match=f"{path}; Not a regular file"):
            load_graph_def(path)


def test_graphs_of_other_file_systems() -> None:
    """A path with a scheme is no folder of this machine; that of files is."""
    with pytest.raises(UnimplementedError, match="File system scheme 'gs' not implemented"):
        load_graph_def("gs://bucket/graph.pb")
    with pytest.raises(NotFoundError, match=r"There is no file file:///no/graph\.pb"):
        load_graph_def("file:///no/graph.pb")
