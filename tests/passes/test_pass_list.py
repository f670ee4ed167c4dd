"""The list of passes: its order, what derives from it, and passes of users' own."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any

import pytest

import penstock as ps
from penstock.config import Config, GraphOptions, Level, OptimizerOptions, RewriterConfig, Toggle
from penstock.graph.graph import Graph
from penstock.passes.graph_pass import GraphPass, GraphProperty, PassInput, PassSettings, Phase
from penstock.passes.graph_rewriter import GraphRewriter
from penstock.passes.pass_list import BUILTIN_PASSES, ordered_passes
from penstock.runtime.choose_passes import TOGGLES, passes_of
from penstock.session.graphs import graph_of
from support.corpus import Case, all_cases
from support.functions import functions
from support.passes import custom_passes
from support.sampling import sampled
from support.sketch import sketch
from tools.make_pass_tables import NOTES, parts, table

AS_ORDERED, SETTLED = GraphProperty.AS_ORDERED, GraphProperty.SETTLED
UNMERGED = GraphProperty.UNMERGED
TEXT = """
    x = Placeholder() dtype=float32
    inner = Abs(x)
    out = Abs(inner)
"""

SUM = """
    x = Placeholder() dtype=float32
    inner = Abs(x)
    other = Neg(x)
    out = Add(inner, other)
"""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """What a test registers lives for that test."""
    with custom_passes():
        yield


def names() -> list[str]:
    return [one.name for one in ordered_passes()]


def drop_outer(draft: GraphRewriter) -> int:
    """Let what reads ``out`` read ``inner``."""
    node = draft.graph.find("out")
    if node is None:
        return 0
    edge = node.input(0)
    draft.replace({node: [(edge.src, edge.src_slot)]})
    return 1


def cut(draft: GraphRewriter) -> int:
    """Let what reads ``out`` read ``other``; what only ``out`` read is left behind."""
    node = draft.graph.find("out")
    if node is None:
        return 0
    draft.replace({node: [(draft.graph.node("other"), 0)]})
    return 1


def ran(graph: Graph, config: Config | None = None) -> set[str]:
    """The names of the nodes that ran for ``out``, feeds and fetches left out."""
    metadata = ps.RunMetadata()
    options = ps.RunOptions(output_partition_graphs=True)
    with ps.Session(graph, config=config) as session:
        assert session.run("out:0", {"x": -2.0}, options, metadata) == 2
    [found] = metadata.partition_graphs
    return {node.name for node in found.node if not node.name.startswith("_")}


# -- Penstock's own -------------------------------------------------------------------------


def test_the_order_follows_from_what_passes_say() -> None:
    """No pass comes before one that it must follow; each finds what it requires."""
    broken = [
        (first.name, second.name)
        for first, second in itertools.combinations(BUILTIN_PASSES, 2)
        if first.must_follow(second)
    ]
    provided = {GraphProperty.AS_ORDERED, UNMERGED, GraphProperty.SWEPT}
    for one in BUILTIN_PASSES:
        assert one.requires <= provided, one.name
        provided = (provided | one.provides) - (one.invalidates - {GraphProperty.SWEPT})

    assert broken == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("lower", "read_in_place"),
        ("lower", "fold_constants"),
        ("read_in_place", "skip_unread"),
        ("simplify_arithmetic", "fuse_gates"),
        ("fuse_gates", "eliminate_common_subexpressions"),
        ("fuse_convolutions", "eliminate_common_subexpressions"),
    ],
)
def test_the_order_is_no_accident(first: str, second: str) -> None:
    """Of two passes that depend on each other, the records say which must come later."""
    of = {one.name: one for one in BUILTIN_PASSES}

    assert of[second].must_follow(of[first])
    assert not of[first].must_follow(of[second])


def test_every_toggle_switches_a_pass() -> None:
    """Options and records name each other: no toggle without a pass, no pass without a switch."""
    levels = {f.name for f in fields(OptimizerOptions)}

    assert set(TOGGLES) == {one.option for one in BUILTIN_PASSES if one.option}
    assert all(one.option for one in BUILTIN_PASSES if one.is_optional)
    assert {one.level_option for one in BUILTIN_PASSES} - {""} <= levels


@pytest.mark.parametrize("one", [one for one in BUILTIN_PASSES if one.option], ids=lambda p: p.name)
def test_a_toggle_is_heard_at_every_level(one: GraphPass) -> None:
    """OFF leaves a pass out that would run, ON adds one that would not, and no other changes."""
    for level, toggle, runs in ((Level.L1, Toggle.OFF, False), (Level.L0, Toggle.ON, True)):
        optimizer = OptimizerOptions(opt_level=level)
        plain = GraphOptions(optimizer_options=optimizer)
        switched = GraphOptions(
            optimizer_options=optimizer,
            rewrite_options=RewriterConfig(**{one.option: toggle}),  # type: ignore[arg-type]
        )
        changed = set(passes_of(plain).names) ^ set(passes_of(switched).names)

        assert (one.name in passes_of(switched).names) is runs
        assert changed == {p.name for p in BUILTIN_PASSES if p.option == one.option}


def test_the_master_switch_is_above_toggles() -> None:
    """Where rewriters are disabled no toggle is heard, and what level 1 has anyway stays."""
    without = GraphOptions(rewrite_options=RewriterConfig(disable_meta_optimizer=True))
    ons = dict.fromkeys(TOGGLES, Toggle.ON)
    offs = dict.fromkeys(TOGGLES, Toggle.OFF)
    for toggles in (ons, offs):
        rewriter = RewriterConfig(disable_meta_optimizer=True, **toggles)  # type: ignore[arg-type]
        assert passes_of(GraphOptions(rewrite_options=rewriter)) == passes_of(without)
    assert passes_of(without).names == (
        "read_in_place",
        "fold_constants",
        "eliminate_common_subexpressions",
    )


@pytest.mark.parametrize("page", NOTES)
def test_pages_show_the_list(page: str) -> None:
    """The tables are those of the list; ``tools/make_pass_tables.py`` writes them."""
    _, found, _ = parts(page)

    assert found.strip("\n") == table(page).strip("\n")
    assert all(f"| `{one.name}` |" in found for one in BUILTIN_PASSES)


# -- users' own -----------------------------------------------------------------------------


def test_a_registered_pass_rewrites_graphs() -> None:
    """It sees the graphs of requests until it is taken away."""
    ps.register_pass("drop_outer", drop_outer)
    assert ran(sketch(TEXT)) == {"inner"}

    ps.unregister_pass("drop_outer")
    assert ran(sketch(TEXT)) == {"inner", "out"}


def test_what_is_prepared_stays() -> None:
    """A session that has prepared a request does not prepare it again for a new pass."""
    calls = []

    def count(draft: GraphRewriter) -> int:
        calls.append(draft)
        return 0

    with ps.Session(sketch(TEXT)) as session:
        session.run("out:0", {"x": -2.0})
        ps.register_pass("count", count)
        session.run("out:0", {"x": -2.0})
        assert not calls
        session.run("inner:0", {"x": -2.0})
        assert len(calls) == 1


def test_options_switch_users_passes() -> None:
    """A pass with a toggle heeds it; without one, the level and the master switch do."""
    ps.register_pass("drop_outer", drop_outer, option="remapping")
    off = GraphOptions(rewrite_options=RewriterConfig(remapping=Toggle.OFF))
    assert ran(sketch(TEXT), Config(graph_options=off)) == {"inner", "out"}

    ps.unregister_pass("drop_outer")
    ps.register_pass("drop_outer", drop_outer)
    assert ran(sketch(TEXT), Config(graph_options=off)) == {"inner"}
    nothing = Config(graph_options=GraphOptions.nothing())
    assert ran(sketch(TEXT), nothing) == {"inner", "out"}


def test_the_place_follows_from_what_is_required() -> None:
    """Each stands as late as it may: in the rounds, before merging, or at the end."""
    ps.register_pass("last", lambda _: 0, requires=[SETTLED])
    ps.register_pass("alone", lambda _: 0, requires=[SETTLED, UNMERGED])
    ps.register_pass("in_rounds", lambda _: 0)
    ps.register_pass("also_alone", lambda _: 0, requires=[SETTLED, UNMERGED])
    own = [name for name in names() if name in {one.name for one in BUILTIN_PASSES}]
    at = names().index

    assert own == [one.name for one in BUILTIN_PASSES]
    assert names()[-1] == "last"
    assert names()[
        at("eliminate_common_subexpressions") - 2 : at("eliminate_common_subexpressions")
    ] == [
        "alone",
        "also_alone",
    ]
    assert names()[at("slice_directly") - 1] == "in_rounds"
    assert ordered_passes()[at("in_rounds")].phase is Phase.ROUNDS


def test_passes_run_at_their_places() -> None:
    """What the rounds make is there for one that requires them to be over, and not before."""
    seen: dict[str, list[int]] = {"rounds": [], "end": []}

    def look(place: str) -> Any:
        def run(draft: GraphRewriter) -> int:
            seen[place].append(len(draft.graph))
            return 0

        return run

    text = """
        x = Placeholder() dtype=float32
        a = Identity(x)
        p = Abs(a)
        q = Abs(x)
        out = Add(p, q)
    """
    ps.register_pass("in_rounds", look("rounds"))
    ps.register_pass("at_end", look("end"), requires=[SETTLED])
    with ps.Session(sketch(text)) as session:
        assert session.run("out:0", {"x": -1.0}) == 2

    # _Arg, p, q, out and _Retval, without a; then without q.
    assert seen["rounds"] == [5, 5]
    assert seen["end"] == [4]


def test_what_is_not_needed_goes_when_that_is_required() -> None:
    """A pass may leave nodes behind; they are gone for who requires it, and in what runs."""
    seen: dict[str, set[str]] = {}

    def look(draft: GraphRewriter) -> int:
        place = "swept" if "at_once" in seen else "at_once"
        seen[place] = {node.name for node in draft.graph if not node.name.startswith("_")}
        return 0

    ps.register_pass("cut", cut, requires=[SETTLED])
    ps.register_pass("look", look, requires=[SETTLED])
    ps.register_pass("look_again", look, requires=[SETTLED, GraphProperty.SWEPT])

    assert ran(sketch(SUM)) == {"other"}
    assert seen == {"at_once": {"inner", "other"}, "swept": {"other"}}


def test_what_the_last_pass_leaves_does_not_run() -> None:
    """Nodes are dropped at the end, too, if nobody required that before."""
    ps.register_pass("cut", cut, requires=[SETTLED])

    assert ran(sketch(SUM)) == {"other"}


@pytest.mark.parametrize(
    ("requires", "invalidates"),
    [
        ([GraphProperty.AS_ORDERED], None),
        ([], [UNMERGED]),
        ([SETTLED, GraphProperty.AS_ORDERED], []),
    ],
)
def test_a_pass_without_a_place_is_refused(requires: Any, invalidates: Any) -> None:
    """Who requires what is gone by then, or breaks what others need, is told so."""
    ps.register_pass("other", lambda _: 0, requires=[SETTLED, UNMERGED])
    before = ordered_passes()
    with pytest.raises(ps.errors.InvalidArgumentError, match="no place for the pass 'new'"):
        ps.register_pass("new", lambda _: 0, requires=requires, invalidates=invalidates)

    assert ordered_passes() is before


@pytest.mark.parametrize(
    ("arguments", "facts", "phrase"),
    [
        (("two words", drop_outer), {}, "no name of a pass"),
        (("new", 3), {}, "cannot be called"),
        (("new", drop_outer), {"option": "everything"}, "cannot be switched by 'everything'"),
        (("new", drop_outer), {"option": "disable_meta_optimizer"}, "cannot be switched"),
        (("new", drop_outer), {"requires": ["SETTLED"]}, "no ps.GraphProperty"),
    ],
)
def test_strange_arguments_are_refused(arguments: Any, facts: Any, phrase: str) -> None:
    """The error says which argument makes no sense."""
    before = ordered_passes()
    with pytest.raises(ps.errors.InvalidArgumentError, match=phrase):
        ps.register_pass(*arguments, **facts)
    assert ordered_passes() is before


def test_names_are_unique() -> None:
    """Neither a user's pass nor one of Penstock's can be replaced, or taken away twice."""
    ps.register_pass("mine", drop_outer)
    for name in ("mine", "fold_constants"):
        with pytest.raises(ps.errors.AlreadyExistsError, match=name):
            ps.register_pass(name, drop_outer)
    ps.unregister_pass("mine")
    for name in ("mine", "fold_constants"):
        with pytest.raises(ps.errors.NotFoundError, match=name):
            ps.unregister_pass(name)
    assert ordered_passes() == BUILTIN_PASSES


def test_many_threads_register() -> None:
    """Nothing is lost when passes come and go at the same time."""

    def come_and_go(number: int) -> None:
        for turn in range(20):
            ps.register_pass(f"fleeting_{number}_{turn}", lambda _: 0)
            assert f"fleeting_{number}_{turn}" in names()
            ps.unregister_pass(f"fleeting_{number}_{turn}")
        ps.register_pass(f"lasting_{number}", lambda _: 0)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(come_and_go, range(8)))

    assert sorted(set(names()) - {one.name for one in BUILTIN_PASSES}) == [
        f"lasting_{number}" for number in range(8)
    ]


# -- failures -------------------------------------------------------------------------------


def fails(_: GraphRewriter) -> int:
    raise ValueError("a mistake")


def leaves(_: GraphRewriter) -> int:
    raise SystemExit(3)


def says_nothing(_: GraphRewriter) -> Any:
    return None


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    ("run", "phrase"),
    [
        (fails, "'mine' failed: ValueError: a mistake"),
        (leaves, "'mine' failed: SystemExit: 3"),
        (says_nothing, "'mine' returned NoneType"),
    ],
)
@pytest.mark.parametrize("requires", [[], [SETTLED]])
def test_an_error_names_the_pass(run: Any, phrase: str, requires: Any, *, check: bool) -> None:
    """What a user's pass raises is the run's error, and no warning; afterwards all is well."""
    ps.register_pass("mine", run, requires=requires)
    with ps.Session(sketch(TEXT), config=Config(check_graphs=check)) as session:
        with pytest.raises(ps.errors.InternalError, match=phrase) as raised:
            session.run("out:0", {"x": -2.0})
        assert "add-a-pass.md" in str(raised.value)
        ps.unregister_pass("mine")
        assert session.run("out:0", {"x": -2.0}) == 2


def test_an_error_in_a_functions_body_names_the_pass() -> None:
    """Bodies go through the same list: one that is called sees the pass, and its error."""
    text = """
        F(x: float32) -> (y: float32)
        out = Abs(x)
        return y = out:y:0
    """
    seen = []

    def look(draft: GraphRewriter) -> int:
        seen.append(sorted(node.op.name for node in draft.graph))
        if not any(node.op.name == "F" for node in draft.graph):
            raise ValueError("in the body")
        return 0

    ps.register_pass("look", look)
    with (
        ps.Session(calling(text)) as session,
        pytest.raises(ps.errors.InternalError, match="'look' failed: ValueError: in the body"),
    ):
        session.run("call:0", {"x": -2.0})
    assert seen == [["F", "_Arg", "_Retval"], ["Abs", "_Arg", "_Retval"]]


def calling(text: str) -> Any:
    """A graph whose node ``call`` calls the function F, which is not opened."""
    graph = ps.Graph()
    with graph.as_default():
        ps.placeholder(ps.dtypes.float32, [], name="x")
    proto = ps.graph_to_def(graph)
    proto.library.function.extend(functions(text))
    proto.library.function[0].attr["_noinline"].b = True
    node = proto.node.add(name="call", op="F", input=["x"])
    assert node.name == "call"
    return proto


@pytest.mark.parametrize("count", [0, 1])
def test_a_pass_that_breaks_the_graph_is_blamed(count: int) -> None:
    """With checks on, the error names the pass that broke a law, even if that denies it."""

    def tear(draft: GraphRewriter) -> int:
        draft.graph.remove_nodes([draft.graph.node("inner")])
        return count

    for requires in ([], [SETTLED]):
        ps.register_pass("tear", tear, requires=requires)
        with (
            ps.Session(sketch(TEXT), config=Config(check_graphs=True)) as session,
            pytest.raises(ps.errors.InternalError, match="'tear' has broken the graph"),
        ):
            session.run("out:0", {"x": -2.0})
        ps.unregister_pass("tear")


def test_a_deadline_is_told_before_the_pass_fails() -> None:
    """A pass that fails when nobody waits any more gets no blame."""

    def dawdle(_: GraphRewriter) -> int:
        time.sleep(0.2)
        raise ValueError("too late")

    ps.register_pass("dawdle", dawdle)
    options = ps.RunOptions(timeout_in_ms=50)
    with (
        ps.Session(sketch(TEXT)) as session,
        pytest.raises(ps.errors.DeadlineExceededError),
    ):
        session.run("out:0", {"x": -2.0}, options)


@pytest.mark.parametrize("case", sampled(all_cases()), ids=str)
def test_a_pass_finds_nothing_where_it_does_not_start(case: Case) -> None:
    """Where no node is of an op that it names, leaving it out leaves nothing out."""
    try:
        graph = graph_of(case.graph_bytes)
    except ps.errors.OpError:
        return  # a graph that nobody can load
    given = PassInput(graph, {}, PassSettings(accelerate=True))
    for one in BUILTIN_PASSES:
        if one.starts_at is not None and not given.has_one_of(one.starts_at):
            assert one.run(given) == 0, one.name


def test_what_a_pass_makes_is_where_others_start() -> None:
    """The ops of a graph are looked up again once a pass has changed it."""
    given = PassInput(sketch(TEXT), {})
    ops = frozenset({"NoOp"})
    assert not given.has_one_of(ops)
    given.draft.take_name(given.graph.node("inner"), "NoOp", {})
    given.note_change()
    assert given.has_one_of(ops)
