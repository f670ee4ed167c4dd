"""Numpy is quiet while kernels run, and as before afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import pytest

import penstock as ps
from penstock.core import quiet as module
from penstock.core.quiet import mute, quiet, unmute

ZERO = np.zeros(2, np.float32)


@pytest.fixture(params=["variable", "function"])
def ways(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Callable[[], Any], Callable[[Any], object]]]:
    """What this numpy has, and what one has that keeps its state elsewhere."""
    if request.param == "variable":
        yield mute, unmute
        return
    monkeypatch.setattr(np, "_core", None)
    found = module._find()
    monkeypatch.undo()
    yield found


def is_heard() -> bool:
    """Whether numpy complains."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        _ = ZERO / ZERO
    return bool(heard)


def test_nothing_is_heard_in_between(
    ways: tuple[Callable[[], Any], Callable[[Any], object]],
) -> None:
    """Neither of division nor of anything else; before and after, as the user has it."""
    for wanted in ("warn", "ignore", "raise"):
        with np.errstate(all=wanted):  # type: ignore[call-overload]  # one of the words
            before = np.geterr()
            token = ways[0]()
            assert set(np.geterr().values()) == {"ignore"}
            assert not is_heard()
            ways[1](token)
            assert np.geterr() == before


def test_a_block() -> None:
    """Also one that raises, and one in another."""
    with np.errstate(all="warn"):
        before = np.geterr()
        with quiet(), quiet():
            assert not is_heard()
        assert is_heard()
        with pytest.raises(KeyError), quiet():
            raise KeyError
        assert np.geterr() == before


def test_other_threads_hear_it() -> None:
    """What is quiet is what the block computes."""
    with ThreadPoolExecutor(1) as pool:
        before = pool.submit(np.geterr).result()
        with quiet():
            assert pool.submit(np.geterr).result() == before


def test_this_numpy_has_the_variable() -> None:
    """Where it is not found any more, steps are right, and a quarter longer."""
    assert np.lib.NumpyVersion(np.__version__) < "2.0.0" or mute.func is not np.seterr


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("wanted", ["warn", "raise"])
def test_steps_are_quiet(tier: ps.Tier, wanted: Literal["warn", "raise"]) -> None:
    """What divides by zero says nothing, and neither a step nor one that fails changes numpy."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [None], name="x")
        _ = ps.ops.real_div(x, ps.ops.sub(x, x), name="y")
        _ = ps.ops.check_numerics(x, "no", name="z")
    bad = np.array([np.inf], np.float32)
    with np.errstate(all=wanted), ps.Session(graph, config=ps.Config(tier=tier)) as session:
        before = np.geterr()
        call = session.make_callable("y:0", ["x:0"])
        for _ in range(3):
            assert session.run("y:0", {"x:0": bad[:0]}).size == 0
            assert np.isinf(call(np.ones(1, np.float32)))
            with pytest.raises(ps.errors.InvalidArgumentError):
                session.run("z:0", {"x:0": bad})
            assert np.geterr() == before
