"""A region of nodes that XLA computes as one.

In:   what the region reads.
Out:  what the nodes would give, up to rounding.
Not:  makes no region; ``passes.native`` does.

A program is for certain types and shapes.  Those that are met first are compiled in the background;
until that is done, where there is no such program, and where a guard in it fails, the nodes are
computed one after the other: either that gives the result, or an error in TensorFlow's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any, Final
from weakref import WeakValueDictionary

from penstock.core.forks import generation
from penstock.core.values import Value
from penstock.defs.schema import GraphDef
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.node_list import NodeList
from penstock.kernels.api.registry import Kernel, context_kernel
from penstock.kernels.api.traits import KernelTraits
from penstock.kernels.native import background, useless
from penstock.kernels.native.program import Program, Spec, program_of
from penstock.kernels.native.traced_nodes import LOOP, TracedNodes
from penstock.kernels.xla.xla_modules import is_usable
from penstock.kernels.xla.xla_programs import Compiled
from penstock.tracing.watching import is_close, noted, watching

#: Sets of shapes for which a region has programs; others are computed node by node.
_MAX_PROGRAMS: Final = 16
#: Times that a guard may fail: then the program is not tried again, since all was in vain.
_MAX_FAILURES: Final = 4


class _ReadyProgram:
    """A program that can be called."""

    __slots__ = ("__weakref__", "_compiled", "_program")

    def __init__(self, program: Program, specs: Sequence[Spec], constants: int) -> None:
        self._program: Final = program
        self._compiled: Final = Compiled(program.text, specs, constants)

    def __call__(self, values: Sequence[Value]) -> tuple[Value, ...] | None:
        """The results; None if a guard failed."""
        results = self._program.layout.unpacked(self._compiled(values))
        if not self._program.is_guarded:
            return tuple(results)
        return tuple(results[1:]) if results[0] else None


#: Programs that are in use, by their texts: regions that are equal share them.  Each access is one
#: operation of the dictionary; of two that are made at once, either will do.
_shared: Final[WeakValueDictionary[tuple[int, str, int], _ReadyProgram]] = WeakValueDictionary()


def _ready(program: Program, specs: Sequence[Spec], constants: int) -> _ReadyProgram:
    key = generation(), program.text, constants
    found = _shared.get(key)
    if found is None:
        found = _shared[key] = _ReadyProgram(program, specs, constants)
    return found


class _RegionVariant:
    """A region for one set of types and shapes."""

    __slots__ = ("failures", "generation", "is_useless", "ready")

    def __init__(self) -> None:
        #: What computes it; None as long as nothing does.  Set by the thread that compiles, and
        #: to None by any that finds it useless.
        self.ready: _ReadyProgram | None = None
        #: Whether there is no program, or one that fails.  Set once, by any thread.
        self.is_useless = False
        #: How often a guard failed; a few that get lost between threads do not matter.
        self.failures = 0
        #: A process that was forked has none of the threads that the program would run on.
        self.generation: Final = generation()


class _RegionKernel:
    """The kernel of one region."""

    __slots__ = ("_constants", "_lock", "_nodes", "_title", "_variants", "_what")

    def __init__(self, attrs: Attrs) -> None:
        self._what: Final = attrs.bytes("nodes"), attrs.list("reads"), attrs.list("gives")
        self._constants: Final = attrs.int("constants")
        self._nodes: Final = NodeList(*self._what, attrs)
        self._title: Final = attrs.node_name
        #: Held while a new variant is noted; innermost.
        self._lock: Final = Lock()
        #: By the types and shapes of inputs.  Grows under the lock, and is read without it.
        self._variants: Final[dict[tuple[Any, ...], _RegionVariant]] = {}

    def __call__(self, context: OpKernelContext, *values: Any) -> tuple[Value, ...]:
        if watching:
            return noted(self._title, "xla", self._watched, context, values)
        return self._results(context, values)

    def _watched(self, context: OpKernelContext, values: Sequence[Any]) -> tuple[Value, ...]:
        return self._nodes(values, context) if is_close() else self._results(context, values)

    def _results(self, context: OpKernelContext, values: Sequence[Any]) -> tuple[Value, ...]:
        variant = self._variants.get(tuple([(value.dtype, value.shape) for value in values]))
        if variant is None:
            variant = self._meet(values)
        if variant is not None and variant.ready is not None:
            results = self._computed(variant, variant.ready, values)
            if results is not None:
                return results
        results = self._nodes(values, context)
        if variant is not None and variant.is_useless:
            self._give_up()
        return results

    def _give_up(self) -> None:
        """Have whoever prepares these loops from now on leave them as they are."""
        for node in GraphDef.FromString(self._what[0]).node:
            if node.op == LOOP:
                useless.note(useless.digest(node.attr["cond"].s, node.attr["body"].s))

    def _computed(
        self, variant: _RegionVariant, ready: _ReadyProgram, values: Sequence[Value]
    ) -> tuple[Value, ...] | None:
        if variant.generation != generation():
            return None
        try:
            results = ready(values)
        except Exception:  # noqa: BLE001  (whatever it is, the nodes have the words for it)
            results = None
        if results is None:
            variant.failures += 1
            if variant.failures >= _MAX_FAILURES:
                variant.ready, variant.is_useless = None, True
        return results

    def _meet(self, values: Sequence[Value]) -> _RegionVariant | None:
        """Have a program made for values of such types and shapes; None if that are too many."""
        if not is_usable():
            return None
        specs = tuple([(value.dtype, value.shape) for value in values])
        with self._lock:
            if specs in self._variants or len(self._variants) >= _MAX_PROGRAMS:
                return self._variants.get(specs)
            variant = self._variants[specs] = _RegionVariant()
        background.start(lambda: self._compile(variant, specs))
        return variant

    def _compile(self, variant: _RegionVariant, specs: Sequence[Spec]) -> None:
        try:
            variant.ready = _ready(
                program_of(TracedNodes(*self._what), specs), specs, self._constants
            )
        except Exception:  # noqa: BLE001  (no such program, or an XLA that cannot make it)
            variant.is_useless = True


@context_kernel("_NativeRegion", traits=KernelTraits(reads_frame=False))
def make_native_region(attrs: Attrs) -> Kernel:
    """What the nodes compute that it stands for, by XLA."""
    return _RegionKernel(attrs)
