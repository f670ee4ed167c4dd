"""A run whose tensors take too much ends at the node that made them, and says so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main
from penstock.core.byte_counts import in_units, parse_bytes

MEGA = 1 << 20


def tiled(count: int) -> ps.Graph:
    """A vector of 1 MiB, many times; and its sum."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [MEGA // 4], name="x")
        wide = ps.ops.tile(x, [count], name="wide")
        ps.ops.sum(wide, 0, name="out")
    return graph


FED = {"x:0": np.ones(MEGA // 4, np.float32)}


@pytest.mark.parametrize("tier", ps.Tier)
def test_the_node_is_named(tier: ps.Tier) -> None:
    """With its size and with what may be, on whichever tier it would have run."""
    config = ps.Config(max_memory_in_bytes=10 * MEGA, tier=tier)
    with ps.Session(tiled(20), config=config) as session:
        with pytest.raises(ps.errors.ResourceExhaustedError) as caught:
            session.run("out:0", FED)
        text = str(caught.value)
        assert "node wide" in text
        assert "It would make 20.0 MiB of tensors, of 10.0 MiB" in text
    with ps.Session(tiled(5), config=config) as session:
        assert session.run("out:0", FED) == 5 * MEGA / 4
        assert session.make_callable("out:0", ["x:0"])(FED["x:0"]) == 5 * MEGA / 4


def test_nothing_is_made_that_is_too_much_by_itself() -> None:
    """A petabyte is refused in words, before anybody asks the system for it."""
    graph = ps.Graph()
    with graph.as_default():
        sizes = ps.placeholder(ps.dtypes.int32, [3], name="sizes")
        ps.ops.fill(sizes, ps.constant(np.float32(1)), name="huge")
    config = ps.Config(max_memory_in_bytes=1 << 60)
    with (
        ps.Session(graph, config=config) as session,
        pytest.raises(ps.errors.ResourceExhaustedError, match=r"It would make 4194304\.0 TiB"),
    ):
        session.run("huge:0", {"sizes:0": [1 << 20] * 3})


def test_many_tensors_are_too_much_together() -> None:
    """None is too large by itself; the error names those that are there."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [MEGA // 4], name="x")
        parts = [ps.ops.tile(ps.ops.mul(x, float(i)), [4], name=f"part{i}") for i in range(3)]
        ps.ops.add_n(parts, name="out")
    with ps.Session(graph, config=ps.Config(max_memory_in_bytes=10 * MEGA)) as session:
        with pytest.raises(ps.errors.ResourceExhaustedError) as caught:
            session.run("out:0", FED)
        assert re.search(r"1\d\.0 MiB of tensors are alive, of 10\.0 MiB", str(caught.value))
        assert "(Tile) 4.0 MiB" in str(caught.value)


def test_functions_count() -> None:
    """What is made in the body of a function that is called is counted as well."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [MEGA // 4], name="x")
        wide = ps.cond(
            ps.ops.less(x[0], 5.0), lambda: ps.ops.sum(ps.ops.tile(x, [20]), 0), lambda: x[0]
        )
        ps.ops.identity(wide, name="out")
    with (
        ps.Session(graph, config=ps.Config(max_memory_in_bytes=10 * MEGA)) as session,
        pytest.raises(ps.errors.ResourceExhaustedError, match="Tile"),
    ):
        session.run("out:0", FED)


def test_what_the_session_keeps_counts() -> None:
    """Two steps with 4 MiB each fit into 6; with a variable of 4 they do not."""
    graph = ps.Graph()
    with graph.as_default():
        v = ps.Variable(np.ones(MEGA, np.float32), name="v")
        initialize = ps.global_variables_initializer()
        x = ps.placeholder(ps.dtypes.float32, [MEGA // 4], name="x")
        ps.ops.sum(ps.ops.tile(x, [4], name="wide"), 0, name="out")
        ps.ops.sum(v.read_value(), 0, name="read")
    with ps.Session(graph, config=ps.Config(max_memory_in_bytes=7 * MEGA)) as session:
        session.run("out:0", FED)
        session.run(initialize)
        with pytest.raises(ps.errors.ResourceExhaustedError, match=r"v:0 \(Var\) 4.0 MiB"):
            session.run("out:0", FED)


def test_who_watches_is_told_all_the_same() -> None:
    """A callback of one's own gets the outputs, as without a bound."""
    seen: list[str] = []
    options = ps.RunOptions(node_outputs=lambda node, *_: seen.append(node))
    with ps.Session(tiled(2), config=ps.Config(max_memory_in_bytes=20 * MEGA)) as session:
        session.run("out:0", FED, options=options)
    assert "wide" in seen


def test_the_command_line(tmp_path: Path) -> None:
    """``penstock run --max-memory`` fails, and says which option allows more."""
    path = tmp_path / "model.pb"
    path.write_bytes(tiled(20).as_graph_def().SerializeToString())
    np.save(tmp_path / "x.npy", FED["x:0"])
    asked = [str(path), "--feed", f"x:0={tmp_path / 'x.npy'}", "--fetch", "out:0"]
    run = CliRunner().invoke(main, ["run", *asked, "--max-memory", "10M"])
    assert run.exit_code == 1
    assert "wide" in run.stderr
    assert "--max-memory" in run.stderr
    assert CliRunner().invoke(main, ["run", *asked, "--max-memory", "30M"]).exit_code == 0

    told = CliRunner().invoke(main, ["memory", *asked, "--format", "json"])
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    assert found["at_peak"][0]["owner"]["name"] == "wide"
    assert found["at_peak"][0]["size"] == 20 * MEGA
    assert len(found["peaks"]) == 4
    text = CliRunner().invoke(main, ["memory", *asked, "--steps", "1"]).stdout
    assert "wide (Tile)" in text


@pytest.mark.parametrize(
    ("text", "count"),
    [("2G", 2 << 30), ("1.5GiB", 3 << 29), ("300m", 300 << 20), ("7 kB", 7 << 10), ("12", 12)],
)
def test_sizes_are_read(text: str, count: int) -> None:
    """Powers of 1,024, with or without the letters that others write behind them."""
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "G", "-1", "1e9", "2 P", "1,5G", "nan"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """With an example of what is one."""
    with pytest.raises(ps.errors.InvalidArgumentError, match="write 2G"):
        parse_bytes(text)


def test_sizes_are_shown() -> None:
    """With one digit behind the point."""
    assert [in_units(n) for n in (5, 1536, 3 << 29)] == ["5 bytes", "1.5 KiB", "1.5 GiB"]
