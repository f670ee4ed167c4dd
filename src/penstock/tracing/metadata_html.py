"""What a run recorded, as a notebook shows it.

In:   a StepStats message.
Out:  HTML: the nodes that took longest, by device.
Not:  knows nothing of runs that were not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from penstock.core.html import block, table
from penstock.defs.schema import Message

_NANOS: Final = 1000


def metadata_html(stats: Message, title: str) -> str:
    """What a notebook shows of a run's metadata."""
    header = ("node", "µs", "from µs", "bytes", "what")
    tables = (table(device.device, header, _rows(device)) for device in stats.dev_stats)
    return block(title, *tables)


def _rows(device: Message) -> Iterator[Sequence[Any]]:
    """A row for each record, the longest first."""
    records = sorted(device.node_stats, key=_nanos, reverse=True)
    start = min((record.all_start_micros for record in records), default=0)
    for record in records:
        size = sum(out.tensor_description.allocation_description.requested_bytes
                   for out in record.output)  # fmt: skip
        yield (
            record.node_name,
            f"{_nanos(record) / _NANOS:,.1f}",
            f"{record.all_start_micros - start:,}",
            f"{size:,}",
            record.timeline_label,
        )


def _nanos(record: Message) -> int:
    begin: int = record.op_start_rel_nanos
    return int(record.op_end_rel_nanos) - begin
