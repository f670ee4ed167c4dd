"""One model per process, however many callers ask for it.

In:   a ``Recipe`` of a model, as it came from another process, and a number of threads.
Out:  the open model, the same for all who ask in this process.
Not:  knows no engine; sends nothing.

What the processes of one host share are the pages of the files: a checkpoint is mapped to be read,
and no process has a copy of its own.  Constants of a frozen graph are part of the graph, and each
process has its own.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, TypeAlias

from penstock.core.forks import process_lock
from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.saved_model.loaded_model import LoadedModel, Recipe

#: Values of the inputs in order, to values of the outputs in order.
Computation: TypeAlias = Callable[[Sequence[Any]], Sequence[Value]]
#: So many models stay open in a process that nobody works with.
_KEPT: Final = 4


@dataclass(frozen=True, slots=True)
class Route:
    """What of a model is asked, and for what; the order of both is that of values."""

    #: The name of a signature; empty if inputs and outputs are tensors of the graph.
    signature: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def through(self, model: LoadedModel) -> Computation:
        """What computes it, by an open model."""
        if not self.signature:
            run = model.session.make_callable(list(self.outputs), list(self.inputs))
            return lambda values: run(*values)
        signature = model.signatures[self.signature]

        def compute(values: Sequence[Any]) -> Sequence[Value]:
            found = signature(**dict(zip(self.inputs, values, strict=True)))
            return [found[name] for name in self.outputs]

        return compute


@dataclass(frozen=True, slots=True)
class SharedModel:
    """A model as processes hand it on: a few hundred bytes."""

    recipe: Recipe
    #: Threads that one call may use; what the engine runs side by side is not known here.
    threads: int

    @contextmanager
    def computing(self, route: Route) -> Iterator[Computation]:
        """What computes a route here; opens the model if nobody in this process has yet.

        Raises:
            NotFoundError: the model's path leads nowhere from here.
            FailedPreconditionError: other files lie there than when the model was sent.
            OpError: like ``load_model``.

        """
        model = _taken(self)
        try:
            yield model.computation(route)
        finally:
            _give_back(model)


class _OpenModel:
    """A model of this process."""

    def __init__(self, shared: SharedModel) -> None:
        self._shared: Final = shared
        #: How many calls use it, and whether nobody will any more.  Guarded by ``_lock`` of the
        #: module.
        self.calls = 0
        self.is_given_up = False
        #: Guards the other two while the model is opened: who comes second waits.  Sessions and
        #: models have their own locks, which are taken under it.
        self._lock: Final = Lock()
        self._model: LoadedModel | None = None
        self._computations: Final[dict[Route, Computation]] = {}

    def computation(self, route: Route) -> Computation:
        with self._lock:
            if self._model is None:
                self._model = self._opened()
            if route not in self._computations:
                self._computations[route] = route.through(self._model)
            return self._computations[route]

    def close(self) -> None:
        """End its session, if there is one."""
        with self._lock:
            if self._model is not None:
                self._model.close()

    def _opened(self) -> LoadedModel:
        recipe, threads = self._shared.recipe, self._shared.threads
        config = dataclasses.replace(
            recipe.config,
            intra_op_parallelism_threads=threads,
            inter_op_parallelism_threads=threads,
        )
        return recipe.open(config)


#: Guards the next; innermost.
_lock: Final = process_lock()
#: The models of this process by what asked for them, the one that was asked last at the end.  One
#: that falls out ends when the last call of it has.
_open: Final[OrderedDict[str, _OpenModel]] = OrderedDict()


def close_models(*, keep: int = 0) -> None:
    """Close the models of this process but for the last ones asked for, each when no call uses it.

    An open model limits the threads of the whole process to those that its calls may use.
    """
    with _lock:
        given_up = [_open.popitem(last=False)[1] for _ in range(len(_open) - keep)]
        for model in given_up:
            model.is_given_up = True
        unused = [model for model in given_up if not model.calls]
    for model in unused:
        model.close()


def _taken(shared: SharedModel) -> _OpenModel:
    key = repr(shared)  # a Config has parts that cannot be hashed
    with _lock:
        found = _open.pop(key, None) or _OpenModel(shared)
        _open[key] = found
        found.calls += 1
    close_models(keep=_KEPT)
    return found


def _give_back(model: _OpenModel) -> None:
    with _lock:
        model.calls -= 1
        is_unused = model.is_given_up and not model.calls
    if is_unused:
        model.close()
