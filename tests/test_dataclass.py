"""Our dataclasses do what the standard library's do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import field
from itertools import product
from typing import Any

import pytest

from penstock.dataclass import dataclass, replace

OPTIONS = [
    {"frozen": frozen, "eq": eq, "repr": shown, "slots": slots}
    for frozen, eq, shown, slots in product((False, True), repeat=4)
]


def _point(make: Callable[..., Any], **options: bool) -> Any:
    @make(**options)
    class Point:
        """One."""

        x: int
        y: list[int] = field(default_factory=list, hash=False)
        note: str = field(default="", compare=False)
        secret: int = field(default=0, repr=False)

    return Point


def _empty(make: Callable[..., Any], **options: bool) -> Any:
    @make(**options)
    class Empty:
        """None."""

    return Empty


def _single(make: Callable[..., Any], **options: bool) -> Any:
    @make(**options)
    class Single:
        """One field."""

        value: object

    return Single


def _speaking(make: Callable[..., Any], **options: bool) -> Any:
    @make(**options)
    class Speaking:
        """With methods of its own."""

        value: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "spoken"

    return Speaking


def _both(declared: Callable[..., Any], options: dict[str, bool]) -> tuple[Any, Any]:
    return declared(dataclass, **options), declared(dataclasses.dataclass, **options)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_comparison_text_and_hash_are_those_of_the_library(options: dict[str, bool]) -> None:
    """Equal values make equal objects, NaN as in tuples; what may change has no hash."""
    ours, theirs = _both(_single, options)
    nan = float("nan")
    values = [1, 1.0, "a", nan, nan, (1, 2)]
    for one, other in product(values, repeat=2):
        assert (ours(one) == ours(other)) is (theirs(one) == theirs(other))
    assert ours(1) != theirs(1)
    if options["repr"]:
        assert repr(ours("a")) == repr(theirs("a"))
    assert (ours.__hash__ is None) is (theirs.__hash__ is None)
    if options["eq"] and options["frozen"]:
        assert [hash(ours(value)) for value in values] == [hash(theirs(value)) for value in values]
        assert len({ours(1), ours(1), ours(2)}) == 2


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_fields_say_what_they_are_for(options: dict[str, bool]) -> None:
    """A field is left out of what it says it is not for, as in the library's."""
    ours, theirs = _both(_point, options)
    made = [
        (kind(1), kind(1, [], "noted"), kind(1, [2]), kind(1, secret=3)) for kind in (ours, theirs)
    ]
    for mine, other in zip(*made, strict=True):
        assert [mine == one for one in made[0]] == [other == one for one in made[1]]
        if options["repr"]:
            assert repr(mine) == repr(other)
    assert ours.__match_args__ == theirs.__match_args__
    assert dataclasses.replace(ours(1), x=2).x == 2
    assert dataclasses.asdict(ours(1)) == dataclasses.asdict(theirs(1))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_has_no_fields_equals_its_like(options: dict[str, bool]) -> None:
    """No fields are equal fields."""
    ours, theirs = _both(_empty, options)
    assert (ours() == ours()) is (theirs() == theirs())
    if options["repr"]:
        assert repr(ours()) == repr(theirs())


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_methods_of_its_own_stay(options: dict[str, bool]) -> None:
    """What a class says itself is not replaced."""
    ours, _ = _both(_speaking, options)
    assert ours(1) == ours(2)
    assert hash(ours(1)) == 7
    assert repr(ours(1)) == "spoken"


def test_only_named_arguments_are_taken_where_that_is_said() -> None:
    """``kw_only`` is handed on."""
    kind = _single(dataclass, kw_only=True)
    assert kind(value=1).value == 1
    with pytest.raises(TypeError):
        kind(1)


def test_the_text_of_what_holds_itself_ends() -> None:
    """An object within itself is shown as dots."""
    kind = _single(dataclass, slots=True)
    one = kind(None)
    one.value = [one]
    assert "..." in repr(one)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_replace_is_that_of_the_library(options: dict[str, bool]) -> None:
    """What is not named stays as it is, whatever it is good for; the old object does, too."""
    for declared, changes in ((_point, {"y": [2], "note": "a"}), (_single, {"value": None})):
        kind = declared(dataclass, **options)
        one = kind(1, [], "note", 7) if declared is _point else kind((3, 4))
        before = dataclasses.asdict(one)
        made, expected = replace(one, **changes), dataclasses.replace(one, **changes)
        assert type(made) is kind
        assert dataclasses.asdict(made) == dataclasses.asdict(expected)
        assert dataclasses.asdict(one) == before
        with pytest.raises(TypeError, match="other"):
            replace(one, other=1)
    assert type(replace(_empty(dataclass)())).__name__ == "Empty"


@dataclass(frozen=True, slots=True)
class _Kept:
    """One that can be found by its name."""

    value: int


def test_they_are_copied_and_pickled() -> None:
    """Slots are no obstacle to copies."""
    kept = _Kept(3)
    assert copy.deepcopy(kept) == pickle.loads(pickle.dumps(kept)) == kept
