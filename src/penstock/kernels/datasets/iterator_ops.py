"""Iterators as resources: made once, and asked for elements from run to run.

In:   datasets, and handles of iterators.
Out:  elements; OUT_OF_RANGE at the end.
Not:  knows no kind of dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from threading import Lock
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.advice import InitializeIt
from penstock.core import trees
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import ResourceHandle, Value, as_value, shape_of
from penstock.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
)
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext
from penstock.kernels.api.registry import Kernel, async_kernel, context_kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.api.turns import Turns
from penstock.kernels.control_flow.functional_ops import guarded
from penstock.kernels.datasets.dataset import Dataset, Iterator, LostDataset, dataset_in
from penstock.kernels.datasets.iterator_state import (
    IteratorState,
    Restoring,
    Tree,
    restore,
    state_in,
    state_of,
)
from penstock.kernels.datasets.pulling import Element, Pull, drive, run_function
from penstock.kernels.state.variables import resource_name, single_handle
from penstock.kernels.values.variants import EMPTY
from penstock.kernels.variant.optional_ops import Optional

#: What somebody wants of an iterator when it is their turn.
_Work: TypeAlias = Callable[[], "Generator[Any, Any, Any]"]
#: The kind of resource.
ITERATOR: Final = "IteratorResource"


class IteratorResource:
    """One place in a sequence; whoever asks for the next element waits for those before."""

    def __init__(self) -> None:
        #: Guards what follows.  Nothing is called under it.
        self._lock = Lock()
        #: None before the iterator is made.
        self._iterator: Iterator | None = None
        #: What it goes through; None where nobody said so.
        self._dataset: Dataset | None = None
        #: The node that said so; empty for none.
        self._maker = ""
        #: Where the iterator is to go before it is asked for anything; None if it is there.
        self._goal: Tree = None
        #: One who wants something of the iterator after the other.
        self._turns: Final = Turns()

    def set(self, dataset: Dataset, maker: str) -> None:
        """Begin anew, or for the first time, as a node wants it."""
        iterator = dataset.make_iterator()
        with self._lock:
            self._iterator, self._dataset, self._goal = iterator, dataset, None
            self._maker = maker

    @property
    def dataset(self) -> Dataset | None:
        """What it goes through; None where nobody said so."""
        return self._dataset

    def state(self) -> Tree:
        """The dataset, where in it the iterator is, and which node has made it so."""
        with self._lock:
            iterator, dataset, goal = self._iterator, self._dataset, self._goal
        place = state_of(iterator) if goal is None and iterator is not None else goal
        return dataset, place, self._maker

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> IteratorResource:
        """The iterator that had a state; of a dataset that was lost, that of the one there.

        It goes where it is to be when it is first asked for something: functions may have to run.
        """
        dataset, place, maker = trees.parts(state, 3)
        if isinstance(dataset, LostDataset):
            dataset = there.dataset if isinstance(there, IteratorResource) else None
            if dataset is None:
                raise _lost_dataset(name)
        made = cls()
        if dataset is not None:
            made.set(dataset_in(dataset), trees.text(maker))
            made._goal = place
        return made

    def next(self, context: OpKernelContext, done: Done) -> None:
        """Ask for the next element; ``done`` gets it, None at the end, or the error."""
        self._in_turn(context, self._next, done)

    def save(self, context: OpKernelContext, done: Done) -> None:
        """Ask where the iterator is; ``done`` gets the state, or the error."""
        self._in_turn(context, self._save, done)

    def restore(self, state: Tree, context: OpKernelContext, done: Done) -> None:
        """Go where an iterator was; if that cannot be, the iterator stays as it is."""
        self._in_turn(context, lambda: self._restore(state), done)

    def _next(self) -> Pull:
        if self._iterator is None:
            raise _not_initialized("GetNext()", "getting the next element")
        yield from self._arrive()
        return (yield from self._iterator.next())

    def _save(self) -> Generator[Any, Any, Tree]:
        if self._iterator is None:
            raise _not_initialized("Save()", "saving it")
        yield from self._arrive()
        return state_of(self._iterator)

    def _arrive(self) -> Restoring:
        """Go where the iterator is to be, if it is not there yet."""
        if self._goal is not None:
            yield from self._restore(self._goal)

    def _restore(self, state: Tree) -> Restoring:
        if self._dataset is None:
            raise _not_initialized("Restore()", "restoring it")
        iterator = self._dataset.make_iterator()
        yield from restore(iterator, state)
        with self._lock:
            self._iterator, self._goal = iterator, None

    def _in_turn(self, context: OpKernelContext, work: _Work, done: Done) -> None:
        def begin(error: OpError | None) -> None:
            if error is None:
                drive(work(), context, finish)
            else:
                done(error)

        def finish(result: object) -> None:
            try:
                done(result)
            finally:
                self._turns.give_back()

        if self._turns.take_at_once():
            drive(work(), context, finish)
        else:
            self._turns.take(context.cancellation_manager, begin)


def _not_initialized(what: str, doing: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"{what} failed because the iterator has not been initialized. Ensure that you have "
        f"run the initializer operation for this iterator before {doing}.",
        next_step=InitializeIt("iterator"),
    )


def _lost_dataset(name: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"The dataset of the iterator {name} is in no file, and the session's iterator has none.",
        next_step="run the initializer operation of the iterator, and restore then",
    )


def _find(context: OpKernelContext, handle: Value) -> IteratorResource:
    found = single_handle(handle)
    resources = context.resources.at(found.device)
    resource: IteratorResource = resources.lookup(found.container, found.name, ITERATOR)
    return resource


@context_kernel("Iterator", "IteratorV2")
def make_iterator_handle(attrs: Attrs) -> Kernel:
    """The handle of an iterator that lives as long as the session."""
    container, name = attrs.str("container"), attrs.str("shared_name")

    def iterator(context: OpKernelContext) -> Value:
        where = resource_name(attrs) if name else (container, attrs.own_name)
        context.resources.lookup_or_create(*where, ITERATOR, IteratorResource)
        return ResourceHandle(attrs.device, *where, ITERATOR)

    return iterator


@context_kernel("AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3")
def make_anonymous_iterator(attrs: Attrs) -> Kernel:
    """The handle of a new iterator, each time; the second form has what would delete it."""
    has_deleter = attrs.op.name == "AnonymousIteratorV2"

    def anonymous_iterator(context: OpKernelContext) -> Value:
        number = context.step_container.unique_id()
        name = f"{attrs.node_name}/{context.step.step_id}/{number}"
        context.resources.create("", name, ITERATOR, IteratorResource())
        handle = ResourceHandle(attrs.device, "", name, ITERATOR)
        return (handle, EMPTY) if has_deleter else handle

    return anonymous_iterator


@context_kernel("DeleteIterator")
def make_delete_iterator(_: Attrs) -> Kernel:
    """Give an iterator up."""

    def delete_iterator(context: OpKernelContext, handle: Value, _deleter: Value) -> None:
        found = single_handle(handle)
        resources = context.resources.at(found.device)
        resources.delete(found.container, found.name, ITERATOR)

    return delete_iterator


@context_kernel("MakeIterator")
def make_make_iterator(attrs: Attrs) -> Kernel:
    """Let an iterator begin with a dataset's first element."""
    maker = attrs.node_name

    def make_iterator(context: OpKernelContext, dataset: Value, handle: Value) -> None:
        _find(context, handle).set(dataset_in(dataset), maker)

    return make_iterator


@async_kernel("OneShotIterator")
def make_one_shot_iterator(attrs: Attrs) -> Kernel:
    """The handle of an iterator over the dataset that a function makes, when first asked."""
    factory, (container, name) = attrs.func("dataset_factory"), resource_name(attrs)

    def one_shot_iterator(context: OpKernelContext, done: Done) -> None:
        handle = ResourceHandle(attrs.device, container, name, ITERATOR)
        if context.resources.find(container, name, ITERATOR) is not None:
            done(handle)
            return

        def build() -> Pull:
            results = yield from run_function(factory, ())
            if len(results) != 1:
                raise InvalidArgumentError("The `dataset_factory` must return a single dataset.")
            made = IteratorResource()
            made.set(dataset_in(results[0]), attrs.node_name)
            context.resources.lookup_or_create(container, name, ITERATOR, lambda: made)
            return results

        drive(build(), context, guarded(lambda _results: done(handle), done))

    return one_shot_iterator


def _accepting(attrs: Attrs) -> Callable[[Element], Element]:
    """What refuses elements that are not what the node declares."""
    types: tuple[DType, ...] = attrs.list("output_types")
    shapes: tuple[TensorShape, ...] = attrs.list("output_shapes")

    def accept(element: Element) -> Element:
        if len(element) != len(types):
            raise InvalidArgumentError(
                f"Number of components does not match: expected {len(types)} types but got "
                f"{len(element)}."
            )
        for at, (value, dtype, shape) in enumerate(zip(element, types, shapes, strict=True)):
            if not shape.accepts(shape_of(value)):
                raise InvalidArgumentError(
                    f"Incompatible shapes at component {at}: expected {shape} but got "
                    f"{TensorShape(shape_of(value))} ({type_text(dtype)})."
                )
        return element

    return accept


@async_kernel("IteratorGetNext", "IteratorGetNextSync")
def make_iterator_get_next(attrs: Attrs) -> Kernel:
    """The next element; OUT_OF_RANGE at the end."""
    accept = _accepting(attrs)

    def get_next(context: OpKernelContext, done: Done, handle: Value) -> None:
        def receive(element: Element | None) -> None:
            if element is None:
                raise OutOfRangeError("End of sequence")
            done(accept(element))

        _find(context, handle).next(context, guarded(receive, done))

    return get_next


@async_kernel("IteratorGetNextAsOptional")
def make_iterator_get_next_as_optional(attrs: Attrs) -> Kernel:
    """The next element as an optional, which is empty at the end."""
    types: tuple[DType, ...] = attrs.list("output_types")
    accept = _accepting(attrs)

    def get_next(context: OpKernelContext, done: Done, handle: Value) -> None:
        def receive(element: Element | None) -> None:
            done(Optional(None) if element is None else Optional(accept(element), types))

        _find(context, handle).next(context, guarded(receive, done))

    return get_next


@async_kernel("DatasetToSingleElement")
def make_dataset_to_single_element(attrs: Attrs) -> Kernel:
    """The only element of a dataset."""
    accept = _accepting(attrs)

    def single(upstream: Iterator) -> Pull:
        element = yield from upstream.next()
        if element is None:
            raise InvalidArgumentError("Dataset was empty.")
        if (yield from upstream.next()) is not None:
            raise InvalidArgumentError("Dataset had more than one element.")
        return accept(element)

    def dataset_to_single_element(context: OpKernelContext, done: Done, dataset: Value) -> None:
        drive(single(dataset_in(dataset).make_iterator()), context, done)

    return dataset_to_single_element


@context_kernel("IteratorToStringHandle")
def make_iterator_to_string_handle(_: Attrs) -> Kernel:
    """An iterator's handle as a string that can be fed."""

    def to_string(context: OpKernelContext, handle: Value) -> Value:
        found = single_handle(handle)
        _find(context, found)
        return "\n".join((found.device, found.container, found.name)).encode()

    return to_string


@context_kernel("IteratorFromStringHandle", "IteratorFromStringHandleV2")
def make_iterator_from_string_handle(attrs: Attrs) -> Kernel:
    """The handle that was made into a string."""

    def from_string(context: OpKernelContext, text: Value) -> Value:
        parts = as_value(text).decode("utf-8", "replace").split("\n", 2)
        where, container, name = parts if len(parts) == 3 else ("", "", "")
        if where not in ("", attrs.device):
            raise InvalidArgumentError(
                f'Attempted create an iterator on device "{attrs.device}" from handle defined on '
                f'device "{where}"'
            )
        if context.resources.find(container, name, ITERATOR) is None:
            raise NotFoundError(f"No iterator is known by the string handle {as_value(text)!r}")
        return ResourceHandle(attrs.device, container, name, ITERATOR)

    return from_string


@async_kernel("SerializeIterator")
def make_serialize_iterator(_: Attrs) -> Kernel:
    """Where an iterator is, as a vector of one variant."""

    def serialize(context: OpKernelContext, done: Done, handle: Value) -> None:
        def receive(tree: Tree) -> None:
            states = np.empty(1, object)
            states[0] = IteratorState(tree)
            done(states)

        _find(context, handle).save(context, guarded(receive, done))

    return serialize


@async_kernel("DeserializeIterator")
def make_deserialize_iterator(_: Attrs) -> Kernel:
    """Nothing; the iterator goes on where the saved one was, in the dataset that it has."""

    def deserialize(context: OpKernelContext, done: Done, handle: Value, state: Value) -> None:
        tree = state_in(state).tree
        _find(context, handle).restore(tree, context, guarded(lambda _: done(()), done))

    return deserialize
