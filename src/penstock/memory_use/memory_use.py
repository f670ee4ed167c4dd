"""The memory of some steps: facts, and the same as text.

In:   what ``measure_memory`` has found.
Out:  tables for people, plain values for programs.
Not:  measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from penstock.core.byte_counts import in_units
from penstock.dataclass import dataclass
from penstock.printable import printable
from penstock.runtime.live_tensors import Live

#: How many lines of each table are shown.
_SHOWN: Final = 15


class NodeUse(NamedTuple):
    """What one node, resource or feed had at the peak."""

    name: str
    #: The op; the kind of a resource; ``feed``.
    op: str
    device: str
    bytes: int
    #: One in each iteration that was alive, for instance.
    tensors: int


class Kept(NamedTuple):
    """What a session keeps between steps."""

    name: str
    #: ``Var``, ``Queue``, …
    kind: str
    device: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Growth:
    """What was larger after each step than after the one before."""

    name: str
    #: The kind of a resource; the op of a node whose outputs are still there, wherever they are.
    op: str
    device: str
    #: After each step.
    bytes: tuple[int, ...]
    #: The nodes of the graph that use the resource.
    users: tuple[str, ...] = ()

    @property
    def per_step(self) -> int:
        """Bytes by which it grew in a step, on average."""
        return (self.bytes[-1] - self.bytes[0]) // (len(self.bytes) - 1)

    def __str__(self) -> str:
        used = f"; used by {', '.join(self.users[:_SHOWN])}" if self.users else ""
        text = f"{self.name} ({self.op}) grows by {in_units(self.per_step)} a step{used}"
        return printable(text)


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """What took memory in some steps."""

    #: The most bytes that were alive at once, of each step.
    peaks: tuple[int, ...]
    #: What was alive at the highest of these peaks, the largest first.
    at_peak: tuple[Live, ...]
    #: What the session keeps after the last step, the largest first.
    kept: tuple[Kept, ...]
    #: What grew in each step, the fastest first.
    growth: tuple[Growth, ...]

    @property
    def peak(self) -> int:
        """The most bytes that were alive at once."""
        return max(self.peaks, default=0)

    @property
    def by_node(self) -> list[NodeUse]:
        """What was alive at the peak, by whom it belongs to, the largest first."""
        found: dict[tuple[str, str, str], list[int]] = {}
        for one in self.at_peak:
            owner = one.owner
            found.setdefault((owner.name, owner.op, owner.device), []).append(one.size)
        rows = [NodeUse(*key, sum(sizes), len(sizes)) for key, sizes in found.items()]
        return sorted(rows, key=lambda row: row.bytes, reverse=True)

    def as_json(self) -> dict[str, Any]:
        """The same in lists and dictionaries."""
        return {
            "peaks": list(self.peaks),
            "at_peak": [one._asdict() | {"owner": one.owner._asdict()} for one in self.at_peak],
            "kept": [one._asdict() for one in self.kept],
            "growth": [
                {"name": g.name, "op": g.op, "device": g.device, "bytes": list(g.bytes),
                 "per_step": g.per_step, "users": list(g.users)}
                for g in self.growth
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return f"<MemoryUse: {len(self.peaks)} steps, {in_units(self.peak)} at the peak>"

    def _lines(self) -> Iterator[str]:
        yield f"{in_units(self.peak)} at the peak, in {len(self.at_peak)} tensors"
        yield from _shown(self.by_node, lambda row: f"{row.tensors:6} x  {row.name} ({row.op})")
        total = sum(row.bytes for row in self.kept)
        yield f"{in_units(total)} kept between steps, in {len(self.kept)} resources"
        yield from _shown(self.kept, lambda row: f"          {row.name} ({row.kind})")
        if len(self.peaks) > 1:
            yield from map(str, self.growth or ["nothing grows from step to step"])


def _shown(rows: Sequence[Any], text_of: Any) -> Iterator[str]:
    for row in rows[:_SHOWN]:
        yield printable(f"  {in_units(row.bytes):>12}  {text_of(row)}")
    if len(rows) > _SHOWN:
        rest = in_units(sum(row.bytes for row in rows[_SHOWN:]))
        yield f"  {rest:>12}  in {len(rows) - _SHOWN} more"
