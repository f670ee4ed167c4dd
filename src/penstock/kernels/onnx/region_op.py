"""A region of nodes that ONNX Runtime computes as one.

In:   what the region reads; its large constants.
Out:  what the nodes would give, up to rounding.
Not:  makes no region; ``passes.offload`` does.

Where ONNX Runtime declines, or fails, the nodes are computed one after the other: either that gives
the result, or an error in TensorFlow's words, with the name of the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import is_
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from penstock.core.cores import CORES
from penstock.core.forks import generation
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.node_list import NodeList
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.onnx import library
from penstock.kernels.onnx.contest import Contest
from penstock.kernels.onnx.library import Compute
from penstock.kernels.parallel.batches import WORTH, Argument, Batches
from penstock.kernels.parallel.contention import contention
from penstock.tracing.watching import is_close, noted, watching


class _Ready:
    """A model, ready to run with some constants; None if ONNX Runtime cannot do it."""

    __slots__ = ("__weakref__", "compute", "generation", "weights")

    def __init__(self, model: bytes, weights: tuple[Value, ...], threads: int) -> None:
        self.weights: Final = weights
        #: A process that was forked has none of the threads that the model would run on.
        self.generation: Final = generation()
        self.compute: Final = _made(model, weights, threads)

    def fits(self, weights: tuple[Value, ...]) -> bool:
        """Whether it was made for these very arrays, into which nobody ever writes."""
        return self.generation == generation() and _are_same(self.weights, weights)


def _made(model: bytes, weights: tuple[Value, ...], threads: int) -> Compute | None:
    onnx = library.load()
    if onnx is None:
        return None
    named = {f"weight{slot}": np.asarray(value) for slot, value in enumerate(weights)}
    try:
        return library.ready(onnx, model, named, threads)
    except Exception:  # noqa: BLE001  (an ONNX Runtime that cannot do what is asked)
        return None


def _are_same(some: tuple[Value, ...], others: tuple[Value, ...]) -> bool:
    return all(map(is_, some, others))  # as many of both: those that a node reads


#: Models that are in use, by what they were made of: requests that have the same region share them.
#: Each access is one operation of the dictionary; of two that are made at once, either will do.
_shared: Final[WeakValueDictionary[tuple[Any, ...], _Ready]] = WeakValueDictionary()


def _ready(model: bytes, weights: tuple[Value, ...]) -> _Ready:
    threads = contention.threads(CORES)
    key = (model, threads, *map(id, weights))
    found = _shared.get(key)
    if found is None or not found.fits(weights):
        found = _shared[key] = _Ready(model, weights, threads)
    return found


class _Region:
    """The kernel of one region."""

    __slots__ = ("_batches", "_input_names", "_model", "_nodes", "_ready", "_seen", "_title")

    def __init__(self, attrs: Attrs) -> None:
        self._input_names: Final = [f"input{slot}" for slot in range(len(attrs.list("Tin")))]
        self._model: Final = attrs.bytes("model")
        ends = attrs.list("reads"), attrs.list("gives")
        self._nodes: Final = NodeList(attrs.bytes("nodes"), *ends, attrs)
        self._title: Final = attrs.node_name
        #: How a batch is cut; None if that is not possible.
        self._batches: Final = _batches_of(attrs.list("by_entries"), attrs.int("at_once"))
        #: What computes the region; replaced when variables that it reads have other values.
        self._ready: _Ready | None = None
        #: Values of variables that were met once: they may change with every step.
        self._seen: tuple[Value, ...] = ()

    def __call__(self, *values: Any) -> tuple[Value, ...]:
        if watching:
            return noted(self._title, "onnx", self._watched, *values)
        return self._computed(values)

    def _watched(self, *values: Any) -> tuple[Value, ...]:
        return self._nodes(values) if is_close() else self._computed(values)

    def _computed(self, values: tuple[Any, ...]) -> tuple[Value, ...]:
        count = len(self._input_names)
        compute = self._compute(values[count:])
        if compute is None:
            return self._nodes(values)
        inputs = [np.asarray(value) for value in values[:count]]
        batches = self._batches
        try:
            if batches is None:
                results = self._given(compute, *inputs)
            else:
                results = batches.apply(partial(self._given, compute), inputs)
        except Exception:  # noqa: BLE001  (whatever it is, the nodes have the words for it)
            return self._nodes(values)
        return tuple([result if result.ndim else result[()] for result in results])

    def _given(self, compute: Compute, *inputs: Array) -> Sequence[Array]:
        """What ONNX Runtime gives for some inputs."""
        return compute(dict(zip(self._input_names, inputs, strict=True)))

    def one_by_one(self, *values: Any) -> tuple[Value, ...]:
        """What the nodes give, computed one after the other."""
        return self._nodes(values)

    def _compute(self, weights: tuple[Value, ...]) -> Compute | None:
        """What computes the region; None if it is not ready for these values."""
        ready = self._ready
        if ready is None:
            ready = self._ready = _ready(self._model, weights)
        elif not ready.fits(weights):
            if not (self._seen and _are_same(self._seen, weights)):
                self._seen = weights
                return None
            ready = self._ready = _ready(self._model, weights)
        return ready.compute


def _batches_of(by_entries: Sequence[bool], at_once: int) -> Batches | None:
    if not at_once:
        return None
    return Batches(at_once, WORTH * at_once, tuple(map(Argument, by_entries)))


@kernel("_OnnxRegion")
def _make(attrs: Attrs) -> Kernel:
    """What the nodes compute, by ONNX Runtime; or by whatever proves faster, if bits may differ."""
    region = _Region(attrs)
    if not attrs.by_trial:
        return region
    contest, count = Contest(), len(attrs.list("Tin"))
    return lambda *values: contest.run(region, region.one_by_one, values, values[:count])
