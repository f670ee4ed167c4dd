"""The memory of values: which kernel made it, and for how long the step needed it.

In:   the activations of executors, with the addresses that were noted of their outputs.
Out:  the same with numbers of buffers; buffers; live bytes over time.
Not:  knows nothing of temporary memory inside of kernels.

A value whose address is that of an input is the same memory, handed on.  Any other one is new,
but where a node only shows what is there already: a constant, an argument, a variable.  Memory is
needed until the last node that reads it has done so.  What an executor gets from another one, as an
argument, a result or by a rendezvous, is the newest memory that had the address.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Final

from penstock.dataclass import dataclass
from penstock.tracing.counters import accumulated
from penstock.tracing.trace import Activation, Buffer, Counter, Output

#: Ops whose outputs were there before the step, or belong to somebody else.
_SHOW: Final = frozenset(
    {
        "Const", "HostConst", "Variable", "VariableV2", "TemporaryVariable", "VarHandleOp",
        "ReadVariableOp", "Placeholder",
    }
)  # fmt: skip
#: Ops that hand on what another executor has, or had from before the step.
_PASS: Final = frozenset({"_Arg", "_DeviceArg", "_Recv", "_HostRecv"})
#: Ops that call functions, whose results are theirs.
_CALL: Final = frozenset(
    {
        "PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "SymbolicGradient", "If",
        "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase", "For",
    }
)  # fmt: skip


@dataclass(frozen=False, slots=True)
class _Life:
    device: str
    size: int
    start: int
    end: int
    maker: int


class BufferFinder:
    """The buffers of all executors of some steps."""

    def __init__(self) -> None:
        self._lives: list[_Life] = []
        #: The newest buffer that each address was one of.
        self._by_address: dict[int, int] = {}

    def placed(self, lanes: Sequence[Sequence[Any]]) -> list[Activation]:
        """The activations of some executors, one after the other, with their outputs' buffers."""
        runs = [run for lane in lanes for run in lane]
        producers = [producer for lane in lanes for producer in [_Producers()] * len(lane)]
        functions = {run.activation.place.function for run in runs} | _CALL
        made = list[Activation | None]([None] * len(runs))
        for number in sorted(range(len(runs)), key=lambda n: runs[n].activation.op_end):
            run = runs[number]
            read = producers[number].read_by(run)
            self._use(read, run.activation.op_end)
            known = {address: b for buffers in read for address, b in buffers.items()}
            outputs = tuple(self._outputs(run, known, number, functions))
            producers[number].add(run, {run.seen[o.slot].address: o.buffer for o in outputs})
            made[number] = replace(run.activation, outputs=outputs)
        return [activation for activation in made if activation is not None]

    def _use(self, read: Sequence[Mapping[int, int]], at: int) -> None:
        for buffers in read:
            for buffer in buffers.values():
                life = self._lives[buffer]
                life.end = max(life.end, at)

    def _outputs(
        self, run: Any, known: dict[int, int], maker: int, functions: Set[str]
    ) -> Iterator[Output]:
        activation = run.activation
        passes = activation.op in _PASS
        for slot, seen in enumerate(run.seen):
            if seen is None:
                continue
            number = known.get(seen.address)
            if number is None and (passes or activation.op in functions):
                number = self._by_address.get(seen.address)
            if number is None:
                number = len(self._lives)
                made = maker if not passes and activation.op not in _SHOW else -1
                # Some time in its kernel: while that runs, there are inputs and outputs.
                at, device = activation.op_start, activation.place.device
                self._lives.append(_Life(device, seen.size, at, activation.end, made))
            known[seen.address] = self._by_address[seen.address] = number
            yield Output(slot, seen.dtype, seen.shape, seen.size, number)

    def with_makers(self, positions: Mapping[int, int]) -> list[Buffer]:
        """All buffers; ``positions`` says where activations are that were placed in order."""
        return [
            Buffer(life.size, life.start, life.end, positions.get(life.maker, -1))
            for life in self._lives
        ]

    def live_bytes(self) -> Iterator[Counter]:
        """How much memory the values of a step take that it made itself, by device."""
        changes: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for life in self._lives:
            if life.maker >= 0 and life.size:
                changes[life.device] += [(life.start, life.size), (life.end, -life.size)]
        for device, found in changes.items():
            yield Counter(device, "live bytes", "bytes", accumulated(found))


class _Producers:
    """Finds what an activation has read, across frames and iterations."""

    def __init__(self) -> None:
        self._by_place: dict[tuple[int, int, int], dict[int, int]] = {}
        #: By item alone: for what leaves a loop.
        self._latest: dict[int, dict[int, int]] = {}

    def add(self, run: Any, buffers: dict[int, int]) -> None:
        """Something ran that has such buffers, by address."""
        self._by_place[id(run.item), id(run.frame), run.number] = buffers
        self._latest[id(run.item)] = buffers

    def read_by(self, run: Any) -> list[dict[int, int]]:
        """The buffers of what an activation has read."""
        found = (self._of(source, run) for source, slot in run.item.in_edges if slot >= 0)
        return [buffers for buffers in found if buffers]

    def _of(self, source: Any, run: Any) -> dict[int, int] | None:
        frame, item = run.frame, id(source)
        here = self._by_place.get((item, id(frame), run.number))
        if here is not None:
            return here
        if source.is_enter:
            if run.item.is_merge and run.number:
                return None
            return self._by_place.get((item, id(frame.parent), frame.parent_iteration.number))
        before = self._by_place.get((item, id(frame), run.number - 1))
        if before is not None:
            return before
        is_exit = source.frame is not run.item.frame
        return self._latest.get(item) if is_exit else None
