"""Values of two steps side by side: what differs first, by how much, and what is kept on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main
from penstock.comparison.collected import collect
from penstock.comparison.difference import difference

FEEDS = {"x:0": np.float32([1, 2, 3])}


def model(scale: float = 2.0, *, has_more: bool = False) -> ps.Graph:
    """A product, its exponential, a loop, a text, and a dead side."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [3], name="x")
        half = ps.ops.mul(x, ps.constant(np.float32(0.5), name="c"), name="half")
        scaled = ps.ops.mul(half, ps.constant(np.float32(scale), name="scale"), name="scaled")
        power = ps.ops.exp(scaled, name="power")
        looped = ps.while_loop(
            lambda i, _: i < 3, lambda i, v: (i + 1, v * 2.0), [ps.constant(np.int32(0)), power],
            name="loop",
        )  # fmt: skip
        _, dead = ps.ops.Switch(data=x, pred=ps.constant(False, name="no"), name="switch")
        ps.ops.neg(dead, name="dead")
        ps.ops.as_string(x, name="text")
        out = ps.ops.sum(looped[1], 0, name="out")
        if has_more:
            ps.ops.neg(out, name="more")
    return graph


FETCHES = ["out:0", "text:0"]


def test_the_first_node_that_differs() -> None:
    """Before it all is equal; the constant itself is named first, and then what comes of it."""
    found = ps.compare(model(), model(2.5), FETCHES, FEEDS)
    assert not found
    names = [one.key for one in found.differences]
    assert names[0] == "scale:0"
    assert "half:0" not in names
    assert "scaled:0" in names
    assert any(name.startswith("loop/mul:0@loop") and name.endswith("[2]") for name in names)
    assert found.first is not None
    assert found.first.difference.absolute == 0.5
    assert "text:0" not in names
    same = ps.compare(model(), model(), FETCHES, FEEDS)
    assert same
    assert same.compared > 20
    assert not same.only_in_one
    assert not same.only_in_other


def test_what_only_one_has() -> None:
    """Nodes of one graph alone are no difference, but said."""
    found = ps.compare(model(), model(has_more=True), [*FETCHES], FEEDS)
    assert found
    whole = ps.compare(model(has_more=True), model(), ["out:0"], FEEDS)
    assert whole
    partly = ps.compare(model(), {"out:0": 1.0, "elsewhere:0": 2.0}, FETCHES, FEEDS)
    assert partly.only_in_other == ("elsewhere:0",)
    assert partly.compared == 1
    nothing = ps.compare(model(), {}, FETCHES, FEEDS)
    assert not nothing


def test_a_tolerance() -> None:
    """Rounding may be allowed."""
    assert not ps.compare(model(), model(2.000001), ["out:0"], FEEDS)
    assert ps.compare(model(), model(2.000001), ["out:0"], FEEDS, rtol=1e-3)
    with pytest.raises(ps.errors.InvalidArgumentError):
        ps.compare(model(), model(), ["out:0"], FEEDS, rtol=-1.0)


def test_values_are_kept_on_disk(tmp_path: Path) -> None:
    """As a checkpoint, with texts and iterations; a comparison reads it."""
    count = ps.dump_all(model(), FETCHES, tmp_path / "values", FEEDS)
    store = ps.checkpoint.load(str(tmp_path / "values"))
    assert len(list(store)) == count
    np.testing.assert_array_equal(store["half:0"], np.float32([0.5, 1, 1.5]))
    assert [bytes(one)[:1] for one in store["text:0"]] == [b"1", b"2", b"3"]
    assert "dead:0" not in list(store)
    assert ps.compare(model(), tmp_path / "values", FETCHES, FEEDS)
    assert not ps.compare(model(3.0), tmp_path / "values", FETCHES, FEEDS)


def test_tiers_agree() -> None:
    """And are really two: everything outside of loops is fetched from compiled functions."""
    found = ps.compare_tiers(model(), FETCHES, FEEDS)
    assert found
    assert found.compared >= 8


def test_a_session_has_its_variables() -> None:
    """What it computes is what its own state says; the values are copies."""
    graph = ps.Graph()
    with graph.as_default():
        v = ps.Variable(np.float32([1, 1]), name="v")
        read = ps.ops.identity(v.value(), name="before")
        with ps.control_dependencies([read]):
            added = v.assign_add(np.float32([1, 2]))
        init = ps.global_variables_initializer()
    with ps.Session(graph) as session:
        session.run(init)
        values = {one.key: one for one in collect(session, [read, added])}
    assert values["before:0"].value.tolist() == [1, 1]


def test_values_are_bounded() -> None:
    """More bytes than are allowed are refused, and not kept."""
    with pytest.raises(ps.errors.ResourceExhaustedError, match="more than are kept"):
        collect(model(), FETCHES, FEEDS, max_bytes=40)


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (np.float32([1, np.nan]), np.float32([1, np.nan]), None),
        (np.float32([1, 2]), np.float32([1, np.nan]), "1 of 2 elements differ, most at [1]"),
        (np.float32([1, 2]), np.float64([1, 2]), "types differ: float32 and float64"),
        (np.float32([1, 2]), np.float32([[1, 2]]), "shapes differ: [2] and [1, 2]"),
        (np.int32([1, 2]), np.int32([1, 3]), "first at [1]"),
        (np.array([b"a", b"b"], object), np.array([b"a", b"c"], object), "first at [1]"),
        (np.float32(1), np.nextafter(np.float32(1), np.float32(2)), "1 units in the last place"),
        (np.float32(-0.0), np.float32(0.0), None),
        (np.float32(-1e-45), np.float32(1e-45), "2 units in the last place"),
        (np.complex64(1j), np.complex64(2j), "1 of 1 elements differ"),
        (np.float32(np.inf), np.float32(np.inf), None),
    ],
)
def test_differences(one: Any, other: Any, text: str | None) -> None:
    """Types, shapes, numbers, texts; NaN equals NaN."""
    found = difference(one, other)
    if text is None:
        assert found is None
    else:
        assert found is not None
        assert text in found.text


def test_the_command(tmp_path: Path) -> None:
    """Two graphs, a graph and kept values, two tiers; the status says whether all is equal."""
    paths = []
    for number, scale in enumerate((2.0, 2.5)):
        paths.append(tmp_path / f"{number}.pb")
        paths[-1].write_bytes(ps.graph_to_def(model(scale)).SerializeToString())
    ps.dump_all(model(), FETCHES, tmp_path / "kept", FEEDS)
    request = ["--fetch", "out", "--feed", "x:0=[1,2,3]"]

    def run(*args: Any) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["compare", *map(str, args), *request])
        return done.exit_code, done.output

    status, text = run(*paths)
    assert status == 1
    assert "first  scale:0 (Const): 1 of 1 elements differ" in text
    assert run(paths[0], tmp_path / "kept")[0] == 0
    assert run(paths[1], tmp_path / "kept")[0] == 1
    assert run(paths[0], "--tiers")[0] == 0
    assert run(paths[0])[0] == 2
    status, text = run(*paths, "--format", "json")
    assert json.loads(text)["differences"][0]["absolute"] == 0.5
