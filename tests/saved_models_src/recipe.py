"""What a SavedModel of the tests is made by, and how it is called.

In:   a function that saves a model into a folder; calls of it.
Out:  a ``Recipe``, which ``tools/make_saved_models.py`` carries out.
Not:  imports no TensorFlow: a recipe's functions do, when they are called.

Arguments and results are nestings of lists, tuples and dictionaries whose leaves are arrays,
numbers, bytes or None, or one of the two classes for what consists of several tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths: all values, and where the rows of each dimension end."""

    values: Any
    #: From the outermost dimension to the innermost.
    row_splits: tuple[Any, ...]


@dataclass(frozen=True)
class Sparse:
    """Where values are, the values, and the shape of the whole."""

    indices: Any
    values: Any
    dense_shape: Any


@dataclass(frozen=True)
class Call:
    """One call of a signature, or of a function by its object path."""

    #: The signature's name; empty if a function is called.
    signature: str = ""
    #: Such as ``encoder.call``; TensorFlow finds it attribute by attribute.
    path: str = ""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """How one model is made, and what it is asked."""

    name: str
    #: Saves the model into the folder.
    save: Callable[[str], None]
    #: In this order, of one loaded model: calls may change its state.
    calls: Sequence[Call]
    #: Which of several sets of tags is meant; None if there is one.
    tags: tuple[str, ...] | None = None
    #: Whether the files are too large to be committed.
    is_large: bool = False
