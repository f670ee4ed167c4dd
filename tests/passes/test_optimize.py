"""All passes together: options, failures, function bodies, and the same answers."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import pytest

import penstock as ps
from penstock.config import Config, GraphOptions, Level, OptimizerOptions, RewriterConfig, Toggle
from penstock.defs import schema
from penstock.graph.check import check_graph
from penstock.graph.instantiate import instantiate
from penstock.passes import pass_list
from penstock.passes.fold_constants import MAX_BYTES
from penstock.passes.graph_pass import rewriting
from penstock.passes.optimize import Passes, optimize_graph
from penstock.runtime.choose_passes import passes_of
from support.functions import functions, library
from support.graphs import lines
from support.sketch import sketch

TEXT = """
    x = Placeholder() dtype=float32
    a = Const() value=2.0
    b = Const() value=3.0
    sum = Add(a, b)
    same = Identity(x)
    p = Mul(same, sum)
    q = Mul(x, sum)
    out = Sub(p, q)
"""


def ran(options: GraphOptions, text: str = TEXT) -> set[str]:
    """The names of the nodes that really ran, feeds and fetches left out."""
    metadata = ps.RunMetadata()
    run = ps.RunOptions(output_partition_graphs=True)
    with ps.Session(sketch(text), config=Config(graph_options=options)) as session:
        assert session.run("out:0", {"x": 4.0}, run, metadata) == 0
    (graph,) = metadata.partition_graphs
    return {node.name for node in graph.node if not node.name.startswith("_")}


def options(level: Level = Level.L1, **toggles: Any) -> GraphOptions:
    return GraphOptions(
        optimizer_options=OptimizerOptions(opt_level=level),
        rewrite_options=RewriterConfig(**toggles),
    )


def test_partition_graphs_show_what_runs() -> None:
    """Folded, merged and removed nodes are not there."""
    assert ran(GraphOptions()) == {"sum", "p", "out"}
    assert ran(GraphOptions.nothing()) == {"a", "b", "sum", "same", "p", "q", "out"}


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (options(constant_folding=Toggle.OFF), {"a", "b", "sum", "p", "out"}),
        (options(dependency_optimization=Toggle.OFF), {"sum", "same", "p", "q", "out"}),
        (options(common_subgraph_elimination=Toggle.OFF), {"sum", "p", "q", "out"}),
        (options(disable_meta_optimizer=True), {"sum", "same", "p", "q", "out"}),
        (options(Level.L0), {"a", "b", "sum", "same", "p", "q", "out"}),
        (options(Level.L0, constant_folding=Toggle.ON), {"sum", "same", "p", "q", "out"}),
    ],
)
def test_each_optimisation_has_its_switch(given: GraphOptions, left: set[str]) -> None:
    """The level says what happens where no toggle does."""
    assert ran(given) == left


@pytest.mark.parametrize(
    ("fewest", "left"),
    [(0, {"same", "out"}), (4, {"same", "out"}), (3, {"out"}), (1, {"out"}), (-1, {"out"})],
)
def test_the_smallest_graphs_are_left_alone(fewest: int, left: set[str]) -> None:
    """With fewer than four nodes TensorFlow's rewriters leave a graph as it is, or as one says."""
    text = """
        x = Placeholder() dtype=float32
        same = Identity(x)
        out = Sub(same, x)
    """
    assert ran(options(min_graph_nodes=fewest), text) == left
    nodes_that_are_not_needed = """
        more = Neg(x)
        most = Neg(more)
    """
    assert ran(options(min_graph_nodes=fewest), text + nodes_that_are_not_needed) == left


def test_four_nodes_are_worth_it() -> None:
    """How many there are is counted before any of them goes."""
    text = """
        x = Placeholder() dtype=float32
        same = Identity(x)
        less = Identity(same)
        out = Sub(less, x)
    """
    assert ran(GraphOptions(), text) == {"out"}
    assert ran(options(min_graph_nodes=5), text) == {"same", "less", "out"}


def test_constants_of_the_smallest_graphs_are_folded() -> None:
    """As TensorFlow does outside of its rewriters; equal things are computed once, too."""
    text = """
        a = Const() value=2.0
        b = Const() value=2.0
        x = Placeholder() dtype=float32
        out = Sub(a, b)
    """
    assert ran(GraphOptions(), text) == {"out"}
    merged = """
        x = Placeholder() dtype=float32
        p = Neg(x)
        q = Neg(x)
        out = Sub(p, q)
    """
    assert ran(options(min_graph_nodes=9), merged) == {"p", "out"}


def test_passes_for_few_nodes() -> None:
    """What begins at certain ops, and what users want, is done however small a graph is."""
    ps.register_pass("own", lambda _: 0)
    try:
        passes = passes_of(GraphOptions())
        left_out = set(passes.names) - set(passes.for_nodes(3).names)
    finally:
        ps.unregister_pass("own")
    assert "own" in passes.names
    assert left_out == {"lower", "remove_identities", "skip_unread", "simplify_arithmetic"}
    assert passes.for_nodes(4) is passes
    assert passes.for_nodes(3).settings is passes.settings


def test_options_of_the_first_level() -> None:
    """At the lowest level, folding and merging can still be asked for."""
    lowest = {"opt_level": Level.L0, "max_folded_constant_in_bytes": 7}
    folds = OptimizerOptions(**lowest, do_constant_folding=True)  # type: ignore[arg-type]
    only_folding = passes_of(GraphOptions(optimizer_options=folds))
    assert only_folding.names == ("read_in_place", "fold_constants")
    assert only_folding.settings.max_folded_bytes == 7
    assert not only_folding.opens_calls
    merges = OptimizerOptions(opt_level=Level.L0, do_common_subexpression_elimination=True)
    only_merging = passes_of(GraphOptions(optimizer_options=merges))
    assert only_merging.names == ("read_in_place", "eliminate_common_subexpressions")
    assert only_merging.settings.max_folded_bytes == MAX_BYTES
    assert passes_of(GraphOptions()) == Passes()
    assert passes_of(GraphOptions()).opens_calls
    assert passes_of(GraphOptions.nothing()).names == ("read_in_place",)
    assert passes_of(GraphOptions.nothing()).change_nothing


def test_options_come_from_the_message() -> None:
    """A ConfigProto says the same in TensorFlow's numbers; what is unknown counts as on."""
    proto = schema.ConfigProto()
    optimizer = proto.graph_options.optimizer_options
    optimizer.opt_level = -1
    optimizer.do_constant_folding = True
    optimizer.max_folded_constant_in_bytes = 99
    rewriter = proto.graph_options.rewrite_options
    rewriter.disable_meta_optimizer = True
    rewriter.remapping = 2
    rewriter.arithmetic_optimization = 1
    rewriter.constant_folding = 5
    rewriter.fail_on_optimizer_errors = True
    rewriter.min_graph_nodes = -1
    want = GraphOptions(
        optimizer_options=OptimizerOptions(
            opt_level=Level.L0, do_constant_folding=True, max_folded_constant_in_bytes=99
        ),
        rewrite_options=RewriterConfig(
            disable_meta_optimizer=True,
            remapping=Toggle.OFF,
            arithmetic_optimization=Toggle.ON,
            constant_folding=Toggle.AGGRESSIVE,
            fail_on_optimizer_errors=True,
            min_graph_nodes=-1,
        ),
    )
    assert Config.of(proto).graph_options == want
    assert Config.of(proto.SerializeToString()).graph_options == want
    assert Config.of(schema.ConfigProto()).graph_options == GraphOptions()


def test_bodies_of_functions_are_optimised() -> None:
    """What is returned or has effects stays; the rest is folded, merged and removed."""
    text = """
        F(x: float32) -> (y: float32)
        a = Const[value=2]
        b = Const[value=3]
        sum = Add(a:output:0, b:output:0)
        same = Identity(x)
        p = Mul(same:output:0, sum:z:0)
        q = Mul(x, sum:z:0)
        both = Sub(p:z:0, q:z:0)
        shown = Print[U=float32](both:z:0, x)
        return y = both:z:0
    """
    body = instantiate(library(*functions(text)), "F", {}).graph
    optimize_graph(body, {}, Passes())
    check_graph(body)
    assert sorted(lines(body)) == [
        "both = Sub(p, p)",
        "p = Mul(x, sum)",
        "shown = Print(both, x)",
        "sum = Const",
        "x = _Arg",
        "y_RetVal = _Retval(both)",
    ]


# -- failures ------------------------------------------------------------------------


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one pass fail after it has changed the graph."""

    def fail(draft: Any) -> int:
        draft.graph.remove_nodes([draft.graph.node("sum")])
        raise RuntimeError("a mistake")

    failing = [
        dataclasses.replace(one, run=rewriting(fail)) if one.name == "simplify_arithmetic" else one
        for one in pass_list.BUILTIN_PASSES
    ]
    monkeypatch.setattr(pass_list, "_order", [tuple(failing)])


@pytest.mark.usefixtures("broken")
def test_a_mistake_of_the_optimiser_costs_no_step() -> None:
    """The graph runs as it is, with a warning."""
    with ps.Session(sketch(TEXT)) as session, pytest.warns(RuntimeWarning, match="a mistake"):
        assert session.run("out:0", {"x": 4.0}) == 0


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    "config",
    [Config(check_graphs=True), Config(graph_options=options(fail_on_optimizer_errors=True))],
)
def test_mistakes_are_seen_by_who_looks_for_them(config: Config) -> None:
    """With checks on, or on demand, the mistake is the run's."""
    with ps.Session(sketch(TEXT), config=config) as session, pytest.raises(RuntimeError):
        session.run("out:0", {"x": 4.0})


def test_nothing_is_said_when_nothing_is_wrong() -> None:
    """An optimised run warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ran(GraphOptions())
