"""Graphs, sessions, models and metadata show themselves in notebooks, and as text."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.core.html import table

EVIL = "<script>alert(1)</script>"


class Page(HTMLParser):
    """The texts of the cells and titles of some HTML, whose elements must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """One more element."""
        assert attrs == []
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        """It ends where it should."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """What is read."""
        self.texts.append(data)


def shown(thing: Any) -> Page:
    """What a notebook shows."""
    return Page(thing._repr_html_())


def adding() -> ps.Graph:
    """A variable plus what is fed."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [None, 3], name="x")
        v = ps.Variable(np.zeros(3, np.float32), name="v")
        ps.global_variables_initializer()
        ps.ops.add_v2(x, v.read_value(), name="y")
    return graph


def test_a_graph_shows_its_ends() -> None:
    """What is to be fed, with type and shape; what is to be fetched; which ops there are."""
    graph = adding()
    texts = shown(graph).texts
    assert f"Graph: {len(graph)} nodes" in texts
    for row in (["x:0", "float32", "[?,3]"], ["y:0", "AddV2", "float32"]):
        at = texts.index(row[0])
        assert texts[at : at + 3] == row
    assert repr(graph) == f"<Graph: {len(graph)} nodes>"


def test_a_session_shows_what_it_keeps() -> None:
    """Options that are no defaults, variables by name and size; and whether it is open."""
    graph = adding()
    with ps.Session(graph, config=ps.Config(tier=ps.Tier.DATAFLOW)) as session:
        session.run("v/Assign")
        texts = shown(session).texts
        at = texts.index("v")
        assert texts[at + 1] == "Var"
        assert texts[at + 3] == "12 bytes"
        assert "tier" in texts
        assert "open" in texts[0]
    assert "closed" in shown(session).texts[0]


def test_metadata_show_the_longest_first() -> None:
    """With bytes: a product of 256 by 256 takes longer than a negation."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [256, 256], name="x")
        ps.ops.neg(ps.ops.mat_mul(x, x, name="product"), name="negative")
    metadata = ps.RunMetadata()
    with ps.Session(graph) as session:
        options = ps.RunOptions(trace_level=ps.RunOptions.FULL_TRACE)
        session.run("negative:0", {"x:0": np.ones((256, 256), np.float32)}, options, metadata)
    texts = shown(metadata).texts
    assert texts.index("product") < texts.index("negative")
    assert "262,144" in texts
    assert "records of nodes" in texts[0]


def test_a_model_shows_its_signatures(tmp_path: Path) -> None:
    """Names, types and shapes of what it takes and gives."""
    graph = ps.Graph()
    with graph.as_default():
        ps.ops.neg(ps.placeholder(ps.dtypes.float32, [2], name="x"), name="y")
    signatures = {"serving_default": ({"given": "x"}, {"made": "y"})}
    ps.saved_model.save(tmp_path / "model", signatures, graph=graph)
    with ps.load_model(tmp_path / "model") as model:
        texts = shown(model).texts
    assert "serving_default" in texts
    assert texts[texts.index("given") - 1] == "takes"
    assert texts[texts.index("made") - 1] == "gives"


def test_names_are_text_and_nothing_else() -> None:
    """No name of a model becomes an element, or a command of a terminal."""
    page = Page(table(EVIL, [EVIL], [[EVIL], ["\x1b[2J"]]))
    assert "script" not in page.seen
    assert page.texts.count(EVIL) == 3
    assert not any("\x1b" in text for text in page.texts)


@pytest.mark.parametrize("count", [20, 21, 5_000])
def test_long_tables_are_cut(count: int) -> None:
    """After 20 rows, with how many more there are."""
    texts = Page(table("", ["n"], ([n] for n in range(count)))).texts
    assert len(texts) == 1 + 20 + (count > 20)
    assert count <= 20 or texts[-1] == f"… and {count - 20:,} more"
