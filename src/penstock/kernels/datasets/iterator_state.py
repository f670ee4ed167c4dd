"""Where an iterator is in its dataset: as a tree, and as an object for variant edges.

In:   iterators; or a tree that an iterator of the same dataset gave.
Out:  the tree; an iterator that goes on from there.
Not:  knows no kind of iterator; each says by itself what it must remember.

A tree is made of numbers, tensors and None in tuples.  A stranger may have written it: whoever
restores an iterator takes the tree apart by the functions here, which refuse what does not fit.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from typing import Any, ClassVar, Final, NoReturn, Protocol, TypeAlias, TypeVar

from penstock.core.dtypes import DType
from penstock.core.values import EncodedVariant, Value, dtype_of, has_dtype
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.kernels.datasets.pulling import Element, FunctionCall, Working
from penstock.kernels.values.variants import Variant, variant_in

#: None, a number, a text, a tensor, or a tuple of such.
Tree: TypeAlias = Any
#: A coroutine like a ``Pull``, which puts an iterator into a place.
Restoring: TypeAlias = "Generator[FunctionCall | Working, Any, None]"
#: The smallest number that stands in a tree, and the first that is too large.
LEAST: Final = -(1 << 63)
_MOST: Final = 1 << 64
_TENSOR: Final = "tensor"


class Stateful(Protocol):
    """What can say where it is, and be put there."""

    def state(self) -> Tree:
        """Where it is."""

    def restore(self, state: Tree) -> Restoring:
        """Go where another one was; only just after it was made, and of no use if that fails."""


_S = TypeVar("_S", bound=Stateful)


def state_of(iterator: Stateful | None) -> Tree:
    """An iterator's state, under the name of its class; None if there is none."""
    return None if iterator is None else (type(iterator).__name__, iterator.state())


def restore(iterator: Stateful, state: Tree) -> Restoring:
    """Put an iterator where another one of its kind was; raises NotFoundError for another kind."""
    name, inner = parts(state, 2)
    if name != type(iterator).__name__:
        refuse()
    yield from iterator.restore(inner)


def restored(iterator: _S | None, state: Tree) -> Generator[Any, Any, _S | None]:
    """The iterator where another one was, or None if that had ended."""
    if state is None:
        return None
    if iterator is None:
        refuse()
    yield from restore(iterator, state)
    return iterator


def parts(state: Tree, count: int) -> tuple[Tree, ...]:
    """The so many parts of a tree."""
    found = listed(state)
    if len(found) != count:
        refuse()
    return found


def listed(state: Tree) -> tuple[Tree, ...]:
    """The parts of a tree, however many."""
    if type(state) is not tuple:
        refuse()
    return state


def number(state: Tree, least: int = 0) -> int:
    """A number in a tree."""
    if type(state) is not int or not least <= state < _MOST:
        refuse()
    return state


def element(state: Tree, types: Sequence[DType]) -> Element:
    """An element in a tree, whose components have these types."""
    found = parts(state, len(types))
    for value, dtype in zip(found, types, strict=True):
        if value is None or isinstance(value, (int, str, tuple)) or not has_dtype(value, dtype):
            refuse()
    return found


def refuse() -> NoReturn:
    """Raise NotFoundError: the tree is no state of the iterator."""
    raise NotFoundError(
        "Failed to restore dataset iterator from checkpoint: it is another dataset's. Make sure "
        "the dataset definition has not changed between the process that saved the checkpoint "
        "and the process that is restoring it."
    )


class IteratorState(Variant):
    """A tree on a variant edge."""

    __slots__ = ("tree",)
    type_name: ClassVar[str] = "penstock::IteratorState"

    def __init__(self, tree: Tree) -> None:
        self.tree: Final = tree

    def encoded(self) -> EncodedVariant:
        """The tree as JSON, in which numbers stand for the tensors."""
        tensors: list[tuple[DType, Value]] = []

        def plain(tree: Tree) -> Any:
            if type(tree) is tuple:
                return [plain(part) for part in tree]
            if tree is None or type(tree) in (int, str):
                return tree
            tensors.append((dtype_of(tree), tree))
            return {_TENSOR: len(tensors) - 1}

        text = json.dumps(plain(self.tree)).encode()
        return EncodedVariant(self.type_name, text, tuple(tensors))

    @classmethod
    def decoded(cls, encoded: EncodedVariant) -> Variant:
        """The state that was encoded."""

        def built(tree: Any) -> Tree:
            if isinstance(tree, list):
                return tuple(map(built, tree))
            if tree is None or type(tree) in (int, str):
                return tree
            at = tree.get(_TENSOR) if isinstance(tree, dict) else None
            if type(at) is not int or not 0 <= at < len(encoded.tensors):
                raise ValueError("it is no state of an iterator")
            return encoded.tensors[at][1]

        try:
            return cls(built(json.loads(encoded.metadata)))
        except RecursionError:
            raise ValueError("it is nested too deeply") from None


def state_in(value: Value) -> IteratorState:
    """The state in what SerializeIterator gave: a vector of one object."""
    if getattr(value, "shape", None) != (1,):
        raise InvalidArgumentError("An iterator's state must be a vector of one variant")
    return variant_in(value[0], IteratorState, "Tensor must be an iterator's state")
