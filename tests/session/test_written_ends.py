"""``_Arg`` and ``_Retval`` nodes that somebody wrote into a graph; answers are TensorFlow's."""

from __future__ import annotations

import pytest

import penstock as ps
from support.sketch import sketch

X = {"p:0": 2.0}


def written(arg: int, retval: int) -> ps.Graph:
    """A graph with an argument and a result of its own, which do not meet."""
    return sketch(
        f"""
        a = _Arg() T=float32 index={arg}
        p = Placeholder() dtype=float32
        n = Neg(a)
        m = Neg(p)
        r = _Retval(m) index={retval}
        """
    )


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize(
    ("fetches", "feeds", "index", "complaint"),
    [
        ("n:0", {}, 0, "GetArg 0 is not within [0, 0)"),
        ("a:0", {}, 3, "GetArg 3 is not within [0, 0)"),
        (["n:0", "m:0"], X, 1, "GetArg 1 is not within [0, 1)"),
        ("r", X, 0, "SetRetval 0 is not within [0, 0)"),
        (["m:0", "r"], X, 1, "SetRetval 1 is not within [0, 1)"),
        (["m:0", "r"], X, 3, "SetRetval 3 is not within [0, 1)"),
    ],
)
def test_there_is_no_such_end(
    fetches: list[str] | str, feeds: dict[str, float], index: int, complaint: str, tier: ps.Tier
) -> None:
    """What a request does not feed cannot be taken, and nothing more given than it fetches."""
    with (
        ps.Session(written(index, index), config=ps.Config(tier=tier)) as session,
        pytest.raises(ps.errors.InvalidArgumentError) as caught,
    ):
        session.run(fetches, feeds)
    assert complaint in str(caught.value)
    assert caught.value.node_name == ("a" if complaint.startswith("Get") else "r")


@pytest.mark.parametrize("tier", ps.Tier)
def test_a_result_given_twice(tier: ps.Tier) -> None:
    """A result that is a fetch already is refused, whichever of them comes first."""
    with (
        ps.Session(written(0, 0), config=ps.Config(tier=tier)) as session,
        pytest.raises(ps.errors.InternalError, match=r"Retval\[0\] has already been set"),
    ):
        session.run(["m:0", "r"], X)


@pytest.mark.parametrize("tier", ps.Tier)
def test_an_end_that_is_there(tier: ps.Tier) -> None:
    """An argument takes what is fed under its number; one that is fed itself takes nothing."""
    with ps.Session(written(0, 0), config=ps.Config(tier=tier)) as session:
        assert session.run(["n:0", "m:0"], X) == [-2.0, -2.0]
        assert session.run("n:0", {"a:0": 3.0}) == -3.0
