"""Chains over long arrays are worked off in pieces: which ones, and that nothing changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.core.limits import Limits
from penstock.graph.graph import Node
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.api.elementwise import is_elementwise
from penstock.kernels.api.registry import Calling, Cost
from penstock.kernels.api.traits import KernelTraits
from penstock.runtime import KernelBinder
from penstock.runtime.compiler.blockwise import blockwise
from penstock.runtime.compiler.compile_regions import Compiler
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.region import Region
from support.compiled import Bare, expected, text_of
from support.sketch import CPU, sketch

#: Short arrays are long ones.
PIECE, LONG = 16, 64
LIMITS = Limits(piece=PIECE, long_array=LONG)
in_blocks = blockwise(PIECE, LONG)
X = "x = _Arg() T=float32 index=0\n"
XP = X + "p = _Arg() T=bool index=1\n"
#: Short enough to be quick, with a last piece that is short.
SIZE = 5 * PIECE + 3


# -- pieces ------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
SHAPES: dict[str, Any] = {
    "long": RNG.normal(size=SIZE).astype(np.float32),
    "whole pieces": RNG.normal(size=6 * PIECE).astype(np.float32),
    "scalar": np.float32(1.5),
    "wide scalar": np.float64(1.5),
    "0-d": np.array(2.5, np.float32),
    "one": np.array([0.5], np.float32),
    "one by one": np.array([[0.25]], np.float32),
    "matrix": RNG.normal(size=(SIZE, 4)).astype(np.float32),
    "row": RNG.normal(size=4).astype(np.float32),
    "one row": RNG.normal(size=(1, 4)).astype(np.float32),
    "column": RNG.normal(size=(SIZE, 1)).astype(np.float32),
    "long row": RNG.normal(size=(1, SIZE)).astype(np.float32),
    "Fortran": np.asfortranarray(RNG.normal(size=(SIZE, 4)).astype(np.float32)),
    "strided": RNG.normal(size=(SIZE, 8)).astype(np.float32)[:, ::2],
    "backwards": RNG.normal(size=SIZE).astype(np.float32)[::-1],
    "wide": RNG.normal(size=SIZE),
    "integers": RNG.integers(0, 9, SIZE, np.int32),
    "short": RNG.normal(size=5).astype(np.float32),
    "empty": np.empty(0, np.float32),
    "no columns": np.empty((1, 0), np.float32),
    "cube": RNG.normal(size=(1, SIZE, 4)).astype(np.float32),
}
CHAINS: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda a, b: np.tanh(a * b) - a,
    "comparison": lambda a, b: (a + b) < b,
    "wider": lambda a, b: np.add(a, b).astype(np.float64) * a,
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("first", SHAPES)
def test_pieces_make_the_same(name: str, first: str) -> None:
    """Whatever the shapes, types and layouts, the outcome is that of the plain chain."""
    chain = CHAINS[name]
    for second, other in SHAPES.items():
        for a, b in ((SHAPES[first], other), (other, SHAPES[first])):
            try:
                want = chain(a, b)
            except ValueError:
                with pytest.raises(ValueError, match="broadcast"):
                    in_blocks(chain, a, b)
            else:
                got = in_blocks(chain, a, b)
                assert (type(got), got.dtype) == (type(want), want.dtype), second
                np.testing.assert_array_equal(got, want, strict=True, err_msg=second)


def counted(sizes: list[tuple[int, ...]]) -> Callable[..., Any]:
    """A chain that notes the shapes that it is called with."""

    def chain(a: Any, b: Any) -> Any:
        sizes.append(np.shape(a))
        return a + b

    return chain


@pytest.mark.parametrize(
    ("first", "second", "in_pieces"),
    [
        ("long", "long", True),
        ("long", "scalar", True),
        ("long", "0-d", True),
        ("long", "one", True),
        ("long", "one by one", False),
        ("matrix", "matrix", True),
        ("matrix", "row", False),
        ("matrix", "one by one", True),
        ("Fortran", "scalar", False),
        ("strided", "scalar", False),
        ("short", "short", False),
        ("long", "long row", False),
        ("cube", "matrix", False),
    ],
)
def test_what_is_done_in_pieces(first: str, second: str, *, in_pieces: bool) -> None:
    """Arrays of one shape in the order of memory are, with anything of one element."""
    sizes: list[tuple[int, ...]] = []
    in_blocks(counted(sizes), SHAPES[first], SHAPES[second])
    if not in_pieces:
        assert sizes == [np.shape(SHAPES[first])]
        return
    elements = [size for (size,) in sizes]
    assert max(elements) == PIECE
    assert sum(elements) == SHAPES[first].size
    assert elements[0] == PIECE


def test_an_array_has_to_be_long() -> None:
    """One element less than LONG and nothing is cut."""
    for size, calls in ((LONG - 1, 1), (LONG, LONG // PIECE)):
        sizes: list[tuple[int, ...]] = []
        in_blocks(counted(sizes), np.zeros(size), np.float64(1.0))
        assert len(sizes) == calls


def test_results_of_pieces_are_the_callers_own() -> None:
    """No argument is written to, and no result shares its memory."""
    x = SHAPES["long"].copy()
    x.flags.writeable = False
    got = in_blocks(lambda a: a + np.float32(0.0), x)
    assert not np.shares_memory(got, x)
    assert got.flags.writeable
    same = in_blocks(lambda a: a, x)
    assert not np.shares_memory(same, x)


@pytest.mark.parametrize("bad", [0, 1, 4, 5])
def test_an_error_of_any_piece_comes_out(bad: int) -> None:
    """Whichever piece fails, on whichever thread, the caller gets its error."""

    def chain(a: Any) -> Any:
        if bad * PIECE in a:
            raise ZeroDivisionError(bad)
        return a * 2.0

    with pytest.raises(ZeroDivisionError, match=str(bad)):
        in_blocks(chain, np.arange(float(SIZE)))


# -- chains --------------------------------------------------------------------------------------


def profile_of(graph: Any, short: Collection[str] = ()) -> Profile:
    """A profile that says that everything is long but for some nodes."""
    profile = Profile()
    for node in graph:
        profile.shapes[node] = (LONG - 1 if node.name in short else LONG,)
        profile.seconds[node] = 0.0
    return profile


def chained(
    text: str,
    short: Collection[str] = (),
    make_kernel: Callable[[Node], BoundKernel] | None = None,
    limits: Limits = LIMITS,
) -> Region | None:
    """A graph's region with chains; None if there are none."""
    graph = sketch(text)
    make_kernel = make_kernel or KernelBinder(CPU).bind
    compiler = Compiler(device=CPU, make_kernel=make_kernel, limits=limits)
    better = compiler.improve(graph, profile_of(graph, short), threads=1)
    if better is None:
        return None
    assert better.graph is graph
    assert better.whole is not None
    return better.whole


def check(text: str, args: tuple[Any, ...], *want: Any, limits: Limits = LIMITS) -> str:
    """A graph has chains and gives these results; returns its text."""
    region = chained(text, limits=limits)
    assert region is not None
    for value, wanted in zip(region.run(Bare(), *args), want, strict=True):
        if wanted is None:
            assert value is None
        else:
            np.testing.assert_array_equal(value, wanted, strict=True)
    return text_of(region)


V = SHAPES["long"]
TREE = """
    w = Const() value=3.0
    a = Mul(x, w)
    b = Tanh(a)
    c = Exp(x)
    d = Sub(b, c)
    r = _Retval(d) index=0
"""


def test_a_tree_is_one_chain() -> None:
    """Everything that leads to one value and to nothing else is joined, sources first."""
    text = check(X + TREE, (V,), np.tanh(V * np.float32(3.0)) - np.exp(V))
    assert text.count("in_blocks") == 1
    assert text.count("chain") == 2
    assert text.endswith(
        expected("""
        def region(run, x, *_):
            d = in_blocks(chain, x, w)  # d (Sub)
            return (d,)
        """)
    )
    lines = [line.rpartition("# ")[2] for line in text.splitlines() if "#" in line]
    assert sorted(lines[:-1]) == ["a (Mul)", "b (Tanh)", "c (Exp)", "d (Sub)"]
    assert lines.index("a (Mul)") < lines.index("b (Tanh)") < lines.index("d (Sub)")


def test_a_value_that_is_used_twice_by_one_statement_joins() -> None:
    """Both uses are in the chain."""
    text = check(
        X + "a = Add(x, x)\nb = Mul(a, a)\nr = _Retval(b) index=0", (V,), (V + V) * (V + V)
    )
    assert text.count("in_blocks") == 1


NO_CHAIN = {
    "used twice": "a = Add(x, x)\nb = Exp(a)\nc = Sum(a, k)\nr = _Retval(b) index=0\n"
    "q = _Retval(c) index=1\nk = Const() value=0",
    "fetched": "a = Add(x, x)\nb = Exp(a)\nr = _Retval(a) index=0\nq = _Retval(b) index=1",
    "not element-wise": "a = Add(x, x)\nk = Const() value=0\nb = Cumsum(a, k)\n"
    "c = Exp(b)\nr = _Retval(c) index=0",
    "alone": "a = Exp(x)\nr = _Retval(a) index=0",
    "two results": "a = Exp(x)\nb = Add(x, x)\nr = _Retval(a) index=0\nq = _Retval(b) index=1",
}


@pytest.mark.parametrize("case", NO_CHAIN)
def test_what_others_look_at_stays(case: str) -> None:
    """A value used elsewhere, fetched, or next to other kernels is not part of a chain."""
    assert chained(X + NO_CHAIN[case]) is None


def test_waiting_for_what_is_used_anyway() -> None:
    """A control edge from a value's own node, through others, is no other use of it."""
    rows = X + "a = Add(x, x)\nn = NoOp(^a)\nb = Exp(a, ^n)\nr = _Retval(b) index=0"
    assert chained(rows) is not None


@pytest.mark.parametrize("short", ["a", "b"])
def test_short_values_stay(short: str) -> None:
    """Only what proved long is worth the trouble."""
    rows = X + "a = Add(x, x)\nb = Exp(a)\nr = _Retval(b) index=0"
    assert chained(rows) is not None
    assert chained(rows, [short]) is None


def test_another_branch_stays() -> None:
    """What is only computed under a condition is not joined with what always is."""
    rows = (
        XP
        + """
        a = Add(x, x)
        s = Switch(a, p)
        b = Exp(s:1)
        c = Tanh(b)
        r = _Retval(c) index=0
    """
    )
    text = check(rows, (V, np.True_), np.tanh(np.exp(V + V)))
    assert "a = x + x" in text
    check(rows, (V, np.False_), None)


def test_a_chain_in_a_branch() -> None:
    """A chain is run where its statements were, and what follows a Merge gets either value."""
    rows = (
        XP
        + """
        s = Switch(x, p)
        a = Add(s:1, s:1)
        b = Exp(a)
        c = Sub(s, s)
        d = Cos(c)
        m = Merge(d, b)
        r = _Retval(m) index=0
    """
    )
    assert check(rows, (V, np.True_), np.exp(V + V)).count("in_blocks") == 2
    check(rows, (V, np.False_), np.cos(V - V))


def test_users_own_kernels_stay() -> None:
    """Nobody knows what a kernel does that is not Penstock's, unless its author says so."""
    said = KernelTraits()

    def make(node: Node) -> BoundKernel:
        made = KernelBinder(CPU).bind(node)
        return BoundKernel(made.compute, made.calling, made.cost, is_builtin=False, traits=said)

    rows = X + "a = Add(x, x)\nb = Exp(a)\nr = _Retval(b) index=0"
    assert chained(rows) is not None
    assert chained(rows, make_kernel=make) is None

    said = KernelTraits(is_elementwise=True)
    region = chained(rows, make_kernel=make)
    assert region is not None
    [value] = region.run(Bare(), V)
    np.testing.assert_array_equal(value, np.exp(V + V), strict=True)


def test_long_chains() -> None:
    """However long a chain is, it is one function, and Python's stack is no limit."""
    count = 3000
    rows = ["n0 = Add(x, x)", *(f"n{i} = Neg(n{i - 1})" for i in range(1, count + 1))]
    text = check(X + "\n".join([*rows, f"r = _Retval(n{count}) index=0"]), (V,), V + V)
    assert text.count("in_blocks") == 1


def test_parts_of_a_long_text() -> None:
    """Chains stand in the parts of a text that is cut as well."""
    rows = (
        X
        + """
        k = Const() value=0
        a = Add(x, x)
        b = Exp(a)
        c = Cumsum(b, k)
        d = Neg(c)
        e = Mul(d, x)
        r = _Retval(e) index=0
    """
    )
    text = check(
        rows,
        (V,),
        -np.cumsum(np.exp(V + V)) * V,
        limits=dataclasses.replace(LIMITS, statements=1),
    )
    assert text.count("in_blocks") == 2


def test_a_shape_that_was_not_foreseen() -> None:
    """A profile is one step's: later ones may feed anything."""
    region = chained(X + TREE)
    assert region is not None
    for x in (np.float32(0.5), V[:3], V.reshape(-1, 1), SHAPES["Fortran"], SHAPES["empty"]):
        [got] = region.run(Bare(), x)
        want = np.tanh(x * np.float32(3.0)) - np.exp(x)
        np.testing.assert_array_equal(got, want, strict=True)


# -- order ---------------------------------------------------------------------------------------

#: ``other`` is not element-wise, and has to be done at a certain time.
ORDERED = """
    zero = Const() value=0
    a = Add(x, x)
    other = Cumsum(x, zero)
    b = Exp(a)
    c = Neg(b)
    r = _Retval(c) index=0
    q = _Retval(other) index=1
"""
#: Control edges, and whether a chain is left.
EDGES: dict[str, tuple[list[tuple[str, str]], bool]] = {
    "before the first": ([("other", "a")], True),
    "before the last": ([("other", "c")], True),
    "after the last": ([("c", "other")], True),
    "after the first": ([("a", "other")], True),
    "after all but the last": ([("a", "other"), ("b", "other")], False),
    "between": ([("a", "other"), ("other", "b")], True),
    "around": ([("a", "other"), ("other", "c")], True),
    "twice": ([("b", "other"), ("other", "c")], True),
    "never together": ([("a", "other"), ("b", "other"), ("other", "c")], False),
    "at once": ([(name, "c") for name in ("other", "x", "y", "z")], True),
    "at once, by two": (
        [(name, after) for after in ("b", "c") for name in ("other", "x", "y", "z")],
        True,
    ),
    "many at once": ([(name, "b") for name in ("other", "x", "y", "z")], True),
}
MORE = "y = Cumsum(x, zero)\nz = Cumsum(x, zero)\ns = _Retval(y) index=2\nt = _Retval(z) index=3"


def with_edges(case: str) -> str:
    """The graph with its control edges."""
    rows = (X + ORDERED + MORE).splitlines()
    for source, target in EDGES[case][0]:
        [index] = [i for i, row in enumerate(rows) if row.strip().startswith(f"{target} = ")]
        rows[index] = rows[index].replace(")", f", ^{source})", 1)
    return "\n".join(rows)


def logging_to(order: list[str]) -> Callable[[Node], BoundKernel]:
    """Makes kernels that note when they are run; element-wise ones stay so."""
    binder = KernelBinder(CPU)

    def make(node: Node) -> BoundKernel:
        made = binder.bind(node)
        if node.name not in {"a", "b", "c", "other", "y", "z"}:
            return made

        def logged(*args: Any) -> Any:
            order.append(node.name)
            return made.compute(*args)

        traits = KernelTraits(is_elementwise=is_elementwise(made.compute))
        return BoundKernel(logged, made.calling, made.cost, traits=traits)

    return make


@pytest.mark.parametrize("case", EDGES)
def test_statements_keep_their_order(case: str) -> None:
    """Whoever waits for a statement, or is waited for by one, still comes after or before."""
    text, order = with_edges(case), list[str]()
    region = chained(text, make_kernel=logging_to(order))
    assert (region is not None) == EDGES[case][1]
    if region is None:
        return
    c, total, _, _ = region.run(Bare(), V)
    np.testing.assert_array_equal(c, -np.exp(V + V))
    np.testing.assert_array_equal(total, np.cumsum(V))
    for source, target in EDGES[case][0]:
        if source in order:
            # In a chain each is run several times: the last time of the one is before the first
            # of the other.
            assert len(order) - order[::-1].index(source) <= order.index(target)


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [0.0, 3.0 * PIECE, SIZE - 1.0])
def test_an_error_in_a_piece_names_its_node(where: float) -> None:
    """Also on another thread: node, op and device are the statement's that failed."""

    def fail(x: Any) -> Any:
        if where in x:
            raise errors.InvalidArgumentError("no good")
        return np.exp(x)

    def make(node: Node) -> BoundKernel:
        if node.name != "scope/b":
            return KernelBinder(CPU).bind(node)
        traits = KernelTraits(is_elementwise=True)
        return BoundKernel(fail, Calling.PLAIN, Cost.MEASURED, traits=traits)

    rows = X + "w = Const() value=1.0\na = Mul(x, w)\nscope/b = Exp(a)\nc = Neg(scope/b)\n"
    region = chained(rows + "r = _Retval(c) index=0", make_kernel=make)
    assert region is not None
    assert "in_blocks" in text_of(region)
    with pytest.raises(errors.InvalidArgumentError, match="no good") as caught:
        region.run(Bare(), np.arange(SIZE, dtype=np.float32))
    place = caught.value.where
    assert place is not None
    assert (place.node, place.op, place.device) == ("scope/b", "Exp", CPU)
