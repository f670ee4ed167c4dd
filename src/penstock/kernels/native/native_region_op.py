"""A region of nodes that is one program in C.

In:   what the region reads.
Out:  what the nodes would give, up to rounding; NoProgramError where nobody can tell.
Not:  makes no region; ``passes.native`` does.

A program is for certain types and shapes, and is written when these are first met.  Where there is
none, and where something does not hold that it needs, whoever called must compute the nodes: either
that gives the result, or an error in TensorFlow's words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final

from penstock.core.values import Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.long_kernel import LongKernel, NoProgramError
from penstock.kernels.api.registry import Kernel, context_kernel
from penstock.kernels.api.traits import KernelTraits
from penstock.kernels.native.parts import UnsupportedError
from penstock.kernels.native.program import Spec, program_of
from penstock.kernels.native.ready_program import ReadyProgram
from penstock.kernels.native.traced_nodes import TracedNodes, seeds_in
from penstock.kernels.random.node_stream import NodeStream, borrowed, stream_of_node
from penstock.state.interrupt import Interrupt
from penstock.tracing.watching import is_close, noted, watching

#: Sets of shapes for which a region has programs.  There is none for others: to write one takes
#: longer than most steps, so that many that are met once each would cost more than text does.
_MAX_PROGRAMS: Final = 64


class _RegionKernel(LongKernel):
    """The kernel of one region."""

    __slots__ = ("_lock", "_names", "_nodes", "_programs", "_streams", "_title")

    def __init__(self, attrs: Attrs) -> None:
        self._nodes: Final = TracedNodes(
            attrs.bytes("nodes"), attrs.list("reads"), attrs.list("gives")
        )
        self._title: Final = attrs.node_name
        seeds = seeds_in(attrs.bytes("nodes"))
        #: The nodes that draw from random streams, and these.
        self._names: Final = sorted(seeds)
        self._streams: Final = [stream_of_node(attrs, name, seeds[name]) for name in self._names]
        #: Held while a program is kept; innermost.
        self._lock: Final = Lock()
        #: By the types and shapes of inputs; None where there is none.  Grows under the lock, and
        #: is read without it; threads that come at once may make a few too many.
        self._programs: Final[dict[tuple[Any, ...], ReadyProgram | None]] = {}

    def compute(self, interrupt: Interrupt, *values: Any) -> tuple[Value, ...]:
        """The results of a program; raises NoProgramError if there is none that knows them."""
        if watching:
            return noted(self._title, "program", self._watched, interrupt, values)
        return self._results(interrupt, values)

    def _watched(self, interrupt: Interrupt, values: Sequence[Any]) -> tuple[Value, ...]:
        if is_close():
            raise NoProgramError
        return self._results(interrupt, values)

    def _results(self, interrupt: Interrupt, values: Sequence[Any]) -> tuple[Value, ...]:
        specs = tuple([(value.dtype, value.shape) for value in values])
        try:
            program = self._programs[specs]
        except KeyError:
            program = self._meet(specs)
        if program is None:
            raise NoProgramError
        results = (
            self._drawn(program, values, interrupt) if self._streams else program(values, interrupt)
        )
        if results is None:
            raise NoProgramError
        return results

    def _drawn(
        self, program: ReadyProgram, values: Sequence[Any], interrupt: Interrupt
    ) -> tuple[Value, ...] | None:
        """The results of a program that draws: the streams go on once it is known to be right."""
        streams = self._streams
        with borrowed(streams, interrupt):
            places = [stream.place() for stream in streams]
            results = program([*values, *places], interrupt, _any_wanted(streams))
            if results is None:
                return None
            for stream, place in zip(streams, results[-len(streams) :], strict=True):
                stream.go_on_from(place)
        return results[: -len(streams)]

    def _meet(self, specs: tuple[Spec, ...]) -> ReadyProgram | None:
        """Write a program for values of such types and shapes; of two that are equal, one stays."""
        if len(self._programs) >= _MAX_PROGRAMS:
            return None
        made = _written(self._nodes, specs, self._names)
        with self._lock:
            return self._programs.setdefault(specs, made)


def _any_wanted(streams: Sequence[NodeStream]) -> Callable[[], bool]:
    return lambda: any(stream.is_wanted for stream in streams)


def _written(
    nodes: TracedNodes, specs: Sequence[Spec], streams: Sequence[str]
) -> ReadyProgram | None:
    try:
        return ReadyProgram(program_of(nodes, specs, streams))
    except UnsupportedError:
        return None


@context_kernel("_NativeRegion", traits=KernelTraits(is_pure=True, reads_frame=False))
def make_native_region(attrs: Attrs) -> Kernel:
    """What the nodes compute that it stands for, by a program in C."""
    return _RegionKernel(attrs)
