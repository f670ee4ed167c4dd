"""The page holds what it says, and lets nobody else say anything."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main
from penstock.reporting.facts import Report
from penstock.reporting.make_report import write
from penstock.reporting.write_page import module_names, page_of
from reporting.graphs import FEEDS, looping, named_by_a_stranger

PAGE = Path(ps.__file__).parent / "reporting" / "page"


def held(page: str) -> dict[str, Any]:
    """What a page holds, unpacked."""
    [data] = re.findall(r'<script type="text/plain" id="report">(.*?)</script>', page)
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(data)))
    return found


def test_its_policy_allows_its_own_script_and_style_and_nothing_else() -> None:
    """Both by their digests; nothing is loaded from anywhere."""
    page = page_of(Report("t", ps.report(looping()).graph))
    [policy] = re.findall(r'Content-Security-Policy" content="(.*?)"', page)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        [text] = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'"
    assert set(rules) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|src=|href=", page)


def test_texts_of_a_model_are_no_markup() -> None:
    """What somebody put into names and attributes is in the data, and nowhere else."""
    page = page_of(ps.report(named_by_a_stranger(), title="<b>"))
    assert "onerror" not in page
    assert "<b>" not in page
    assert any("onerror" in text for text in held(page)["strings"])


def test_no_module_makes_markup_or_code_of_text() -> None:
    """What could do so is used nowhere."""
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|DOMParser"
    )
    for name in module_names():
        assert not re.search(forbidden, (PAGE / name).read_text("utf-8")), name


def test_every_module_is_on_the_page_and_introduces_itself() -> None:
    """None is forgotten; each says what comes in, what goes out, and what it does not do."""
    names = module_names()
    assert sorted(names) == sorted(path.name for path in PAGE.glob("*.js"))
    for name in names:
        text = (PAGE / name).read_text("utf-8")
        assert re.match(
            r"// .*\n//\n// In:   .*\n(?://.*\n)*?// Out:  .*\n(?://.*\n)*?// Not:  ", text
        )
        assert len(text.splitlines()) <= 250, name
        assert max(map(len, text.splitlines())) <= 100, name


def test_no_values_are_in_it(tmp_path: Path) -> None:
    """Neither constants nor feeds nor fetches; not even where they are said to be summarised."""
    graph = ps.Graph()
    with graph.as_default():
        weights = np.float32([1234.5, 8765.25, 4321.125, 5678.75])
        x = ps.placeholder(ps.dtypes.float32, [4], name="x")
        ps.ops.mul(x, ps.constant(weights, name="w"), name="out")
        ps.constant(b"my secret", name="text")
    feeds = {"x:0": np.float32([0.6789, 1, 1, 1])}
    path = tmp_path / "report.html"
    ps.report(graph, "out:0", feeds, path=path)
    columns = held(path.read_text("utf-8"))
    assert columns["summaries"] is None
    text = json.dumps(columns)
    # With their points: times are whole numbers, in which any four digits may follow each other.
    for value in ("1234.5", "8765.25", "0.6789", "secret", str(tmp_path)):
        assert value not in text
    assert [one[0] for one in columns["contents"] if one[1]] == [
        "graph", "times", "generated Python",
    ]  # fmt: skip


def test_edges_and_times_can_be_read_back() -> None:
    """The columns give the facts that they were made of."""
    found = ps.report(looping(), "out:0", FEEDS, values=True)
    columns = held(page_of(found))
    nodes, sources, slots = columns["nodes"], columns["nodes"]["sources"], columns["nodes"]["slots"]
    first = 0
    for number, node in enumerate(found.graph.nodes):
        last = first + nodes["inputs"][number]
        edges = [(number - sources[at], slots[at]) for at in range(first, last)]
        assert tuple(edges) == node.inputs
        assert nodes["name"][number] == node.name
        assert columns["strings"][nodes["op"][number]] == node.op
        first = last
    assert found.step is not None
    assert found.summaries is not None
    starts = np.cumsum(columns["step"]["activities"]["start"]).tolist()
    assert starts == [one.start for one in found.step.activities]
    assert columns["summaries"]["mean"] == [one.mean for one in found.summaries]


def test_the_same_report_is_the_same_file(tmp_path: Path) -> None:
    """Nothing in it depends on when or where it was written."""
    found = ps.report(looping(), "out:0", FEEDS)
    for name in ("one.html", "other.html"):
        write(found, tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "other.html").read_bytes()


def test_the_command(tmp_path: Path) -> None:
    """It says what the file holds; the times for Model Explorer are those of the report's nodes."""
    model, page, data = (tmp_path / name for name in ("m.pb", "r.html", "n.json"))
    model.write_bytes(ps.graph_to_def(looping()).SerializeToString())
    command = f"report {model} --feed x:0=[1,2,3,4] --fetch out --values --warm-up 1 -o {page}"
    done = CliRunner().invoke(main, f"{command} --node-data {data}".split())
    assert done.exit_code == 0, done.output
    assert "it contains graph, times, value summaries, generated Python; not weights" in done.output
    columns = held(page.read_text("utf-8"))
    assert columns["title"] == "m.pb"
    results = json.loads(data.read_text("utf-8"))["results"]
    costs = columns["step"]["costs"]
    assert results["model/loop/mul"]["value"] > 0
    by_name = {
        columns["nodes"]["name"][number]: nanos / 1e6
        for number, nanos in zip(costs["name"], costs["nanos"], strict=True)
        if number < len(columns["nodes"]["name"])
    }
    assert {name: one["value"] for name, one in results.items()}.items() <= by_name.items()


def test_the_command_without_a_step(tmp_path: Path) -> None:
    """The graph alone; there are no times for Model Explorer then."""
    model, page = tmp_path / "m.pb", tmp_path / "r.html"
    model.write_bytes(ps.graph_to_def(looping()).SerializeToString())
    done = CliRunner().invoke(main, ["report", str(model), "-o", str(page)])
    assert done.exit_code == 0, done.output
    assert held(page.read_text("utf-8"))["step"] is None
    command = ["report", str(model), "-o", str(page), "--node-data", str(tmp_path / "n.json")]
    assert "Nothing was run" in CliRunner().invoke(main, command).output
