"""The memory of values: which kernel made it, and for how long the step needed it.

In:   the activations of one executor, with the addresses that were noted of their outputs.
Out:  the same with numbers of buffers; buffers; live bytes over time.
Not:  knows nothing of temporary memory inside of kernels.

A value whose address is that of an input is the same memory, handed on.  Any other one is new,
but where a node only shows what is there already: a constant, an argument, a variable.  Memory is
needed until the last node that reads it has done so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from penstock.tracing.counters import accumulated
from penstock.tracing.trace import Activation, Buffer, Counter, Output

#: Ops whose outputs were there before the step, or belong to somebody else.
_SHOW: Final = frozenset(
    {
        "Const", "HostConst", "_Arg", "_DeviceArg", "_Recv", "_HostRecv", "Variable", "VariableV2",
        "TemporaryVariable", "VarHandleOp", "ReadVariableOp", "Placeholder",
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
        #: How many activations were placed.
        self._count = 0

    def placed(self, runs: Sequence[Any]) -> Iterator[Activation]:
        """The activations of one executor in their order, with the buffers of their outputs."""
        finished = sorted(range(len(runs)), key=lambda n: runs[n].activation.op_end)
        producers, found = _Producers(), dict[int, tuple[Output, ...]]()
        base = self._count
        for number in finished:
            run = runs[number]
            read = producers.read_by(run)
            for buffers in read:
                for buffer in buffers.values():
                    life = self._lives[buffer]
                    life.end = max(life.end, run.activation.op_end)
            known = {address: b for buffers in read for address, b in buffers.items()}
            found[number] = tuple(self._outputs(run, known, base + number))
            producers.add(run, {run.seen[o.slot].address: o.buffer for o in found[number]})
        self._count += len(runs)
        return (replace(run.activation, outputs=found[n]) for n, run in enumerate(runs))

    def _outputs(self, run: Any, known: dict[int, int], maker: int) -> Iterator[Output]:
        activation = run.activation
        for slot, seen in enumerate(run.seen):
            if seen is None:
                continue
            number = known.get(seen.address)
            if number is None:
                number = known[seen.address] = len(self._lives)
                made = maker if activation.op not in _SHOW else -1
                at, device = activation.op_end, activation.place.device
                self._lives.append(_Life(device, seen.size, at, activation.end, made))
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
