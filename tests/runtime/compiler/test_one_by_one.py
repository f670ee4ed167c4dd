"""Kernels in place of a program in C: the same values, errors at nodes, an end when asked."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.config import Tier
from penstock.kernels.c.library import library
from penstock.runtime.compiler.fused_groups import SHORTEST
from penstock.runtime.compiler.region import Region
from support.compiled import Bare
from support.sketch import sketch

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(61)
X = "x = Placeholder() dtype=float32\ny = Placeholder() dtype=float32\nhalf = Const() value=0.5\n"
CONSTANTS = [f"c{number}" for number in range(12)]
OF_ONE = ("Neg", "Abs", "Square", "Tanh", "Sigmoid", "Relu", "Erf", "Exp")
OF_TWO = ("Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "SquaredDifference")


def random_graph(seed: int, *, has_sums: bool) -> str:
    """Functions of what came before, all of which the last one needs."""
    rng = np.random.default_rng(seed)
    names, unread, constants = ["x", "y", "half"], list[str](), seed % len(CONSTANTS)
    rows = [f"{name} = Const() value={rng.normal():.3f}" for name in CONSTANTS]
    for number in range(SHORTEST * 3):
        made = f"n{number}"
        values = [name for name in names if name != "half"]
        kind = rng.choice(["one", "two", "sum"] if has_sums else ["one", "two"])
        if kind == "one":
            row = f"{rng.choice(OF_ONE)}({rng.choice(values)})"
        elif kind == "two":
            second = rng.choice([*names, *CONSTANTS[:constants]])
            row = f"{rng.choice(OF_TWO)}({rng.choice(values)}, {second})"
        else:
            row = f"AddN({', '.join(rng.choice(values, rng.integers(2, 6)))})"
        rows.append(f"{made} = {row}")
        names.append(made)
        unread = [n for n in [*unread, made] if f"{n}," not in row and f"{n})" not in row]
    total = unread[0]
    for number, name in enumerate(unread[1:]):
        rows.append(f"t{number} = Maximum({total}, {name})")
        total = f"t{number}"
    return X + "\n".join(rows) + f"\nout = Tanh({total})\n"


def text_of(session: ps.Session) -> str:
    """What the only request has become."""
    [prepared] = session._requests._prepared.values()
    listing: str = prepared.runnable.whole.source.listing
    return listing


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("has_sums", [False, True])
def test_programs_of_unknown_sizes_are_their_kernels(seed: int, has_sums: bool) -> None:
    """Bit for bit, whatever is fed: numbers, arrays alike and not, long ones, none."""
    graph = random_graph(seed, has_sums=has_sums)
    shapes: list[tuple[Any, ...]] = [((), ()), ((5,), (5,)), ((70_000,), (70_000,)), ((0,), (0,))]
    if not has_sums:
        shapes += [((40, 1), (30,)), ((), (7,)), ((300, 1), (1, 5000)), ((2, 0), (1,))]
    plain = ps.Config(accelerate=True, tier=Tier.DATAFLOW)
    with ps.Session(sketch(graph)) as session, ps.Session(sketch(graph), config=plain) as other:
        for shape, second in shapes:
            fed = {"x": RNG.normal(size=shape), "y": RNG.normal(size=second)}
            fed = {name: np.asarray(value, np.float32) for name, value in fed.items()}
            got, want = session.run("out:0", fed), other.run("out:0", fed)
            assert np.shape(got) == np.shape(want)
            np.testing.assert_array_equal(got, want)
        assert "in_c_if_short(" in text_of(session)


def row(length: int) -> str:
    """Sums in a row; the first one meets ``y`` in the middle."""
    rows = ["a0 = Add(x, half)", *(f"a{n} = Add(a{n - 1}, half)" for n in range(1, length))]
    middle = length // 2
    rows[middle] = f"a{middle} = Add(a{middle - 1}, y)"
    return X + "\n".join(rows) + "\n"


def test_errors_name_the_node_in_the_middle() -> None:
    """Not the last one, which stands for all."""
    length = SHORTEST + 4
    with ps.Session(sketch(row(length))) as session:
        fed = {"x": np.zeros(3, np.float32), "y": np.zeros(2, np.float32)}
        with pytest.raises(errors.InvalidArgumentError) as caught:
            session.run(f"a{length - 1}:0", fed)
        assert "in_c_if_short(" in text_of(session)
    assert "{{node a10}}" in str(caught.value)


def test_sums_of_unequal_arrays_are_refused() -> None:
    """Though numpy could add them."""
    graph = X + "".join(f"a{n} = Add({f'a{n - 1}' if n else 'x'}, half)\n" for n in range(SHORTEST))
    graph += f"total = AddN(a{SHORTEST - 1}, y)\n"
    with ps.Session(sketch(graph)) as session:
        one, three = np.zeros(1, np.float32), np.zeros(3, np.float32)
        np.testing.assert_array_equal(session.run("total:0", {"x": one, "y": one}), [8.0])
        assert "in_c_if_short(" in text_of(session)
        with pytest.raises(errors.InvalidArgumentError, match=r"\{\{node total\}\}"):
            session.run("total:0", {"x": three, "y": one})


class Watched(np.ndarray[Any, Any]):
    """A long array that lets somebody look before each function of it."""

    look: Callable[[], None]

    @classmethod
    def by(cls, look: Callable[[], None]) -> Watched:
        """Zeros, with somebody who looks."""
        made = np.zeros(1 << 22, np.float32).view(cls)
        made.look = look
        return made

    def __array_ufunc__(self, ufunc: np.ufunc, *args: Any, **named: Any) -> Any:
        """See numpy."""
        self.look()
        return self


def region_of(length: int) -> Region:
    """A row, compiled."""
    with ps.Session(sketch(row(length))) as session:
        prepared = session.prepared(f"a{length - 1}:0", dict.fromkeys(("x:0", "y:0"), 0.0))
        region = prepared.runnable.whole
        assert region is not None
        return region


def test_a_step_of_long_arrays_ends_when_it_must() -> None:
    """It is asked before each kernel."""
    step, looks = Bare(), 0

    def look() -> None:
        nonlocal looks
        looks += 1
        step.interrupt.loops_end = looks == 5

    with pytest.raises(errors.CancelledError):
        region_of(100).run(step, Watched.by(look), np.zeros(1, np.float32))
    assert looks == 5


def test_what_nobody_reads_any_more_is_dropped() -> None:
    """A row of long arrays has two of them at a time, not all."""
    length = 100
    x = np.zeros(1 << 20, np.float32)
    with ps.Session(sketch(row(length))) as session:
        call = session.make_callable(f"a{length - 1}:0", ["x:0", "y:0"])
        tracemalloc.start()
        try:
            call(x, x)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert "in_c_if_short(" in text_of(session)
    assert peak < 10 * x.nbytes


def test_a_sum_of_what_depends_on_no_array_is_no_program() -> None:
    """Where constants are not folded, it is a number beside arrays: TensorFlow refuses that."""
    graph = X + "h0 = Mul(half, half)\na0 = Add(x, y)\n"
    graph += "".join(f"a{n} = Add(a{n - 1}, half)\n" for n in range(1, SHORTEST))
    graph += f"total = AddN(a{SHORTEST - 1}, h0)\n"
    rewrites = ps.RewriterConfig(constant_folding=ps.RewriterConfig.OFF)
    config = ps.Config(graph_options=ps.GraphOptions(rewrite_options=rewrites))
    with ps.Session(sketch(graph), config=config) as session:
        three = np.zeros(3, np.float32)
        with pytest.raises(errors.InvalidArgumentError, match=r"\{\{node total\}\}"):
            session.run("total:0", {"x": three, "y": three})


def test_where_a_long_row_is() -> None:
    """Whoever asks what a step is at is told the node, not the end of its row."""
    region, seen = region_of(40), list[str]()
    watched = Watched.by(lambda: seen.append(region.describe(threading.get_ident())))
    region.run(Bare(), watched, np.zeros(1, np.float32))
    assert [n for n in range(40) if f"{{{{node a{n}}}}}" in seen[n]] == list(range(40))
