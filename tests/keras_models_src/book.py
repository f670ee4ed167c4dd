"""How models are described, so that both generations of Keras can make them.

A *family* is one model of many branches: each layer with each option stands beside the others, on
the same inputs, and is an output of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: The seed of all weights and inputs.
SEED = 7


@dataclass(frozen=True, slots=True)
class Given:
    """How the numbers of an input are chosen."""

    shape: tuple[int | None, ...]
    #: Numbers from 0 to this, without it; None for normal ones.
    below: int | None = None
    #: How many time steps of each example count; the others are 0.
    lengths: tuple[int, ...] = ()
    dtype: str = "float32"
    #: The shape in a file, if sizes there are unknown.
    declared: tuple[int | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """A model, and the Keras that can make it."""

    name: str
    make: Callable[[Any, dict[str, Any]], Any]
    inputs: dict[str, Given]
    generations: tuple[int, ...] = (2, 3)
    batch: int = 2
    #: The generations that cannot save it as an HDF5 file.
    without_h5: tuple[int, ...] = ()


def branches(
    families: list[Family],
    only: tuple[int, ...] = (2, 3),
    without_h5: tuple[int, ...] = (),
    **inputs: Any,
) -> Any:
    """Add a family: a function from inputs to outputs, each of which is a branch."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        given = {n: v if isinstance(v, Given) else Given(v) for n, v in inputs.items()}

        def make(k: Any, tensors: dict[str, Any]) -> Any:
            outputs = function(k, **tensors)
            return k.Model(list(tensors.values()), outputs, name=function.__name__)

        batch = max([2, *(len(g.lengths) for g in given.values())])
        families.append(Family(function.__name__, make, given, only, batch, without_h5))
        return function

    return register


def generation_of(k: Any) -> int:
    """The generation of a Keras: 2 or 3."""
    return int(k.__version__.partition(".")[0])


def only(k: Any, generation: int, make: Callable[[], list[Any]]) -> list[Any]:
    """Branches of one generation."""
    return make() if generation_of(k) == generation else []
