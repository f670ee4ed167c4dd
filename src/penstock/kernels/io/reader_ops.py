"""Reading records of files whose names come out of a queue.

In:   a reader, and a queue of file names.
Out:  keys and records; counts.
Not:  the formats stand in ``readers``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext
from penstock.kernels.api.registry import Cost, Kernel, async_kernel, context_kernel
from penstock.kernels.data_flow.queue_ops import queue_of, waiting_for
from penstock.kernels.io.readers import (
    Format,
    Reader,
    Record,
    check_count,
    fixed_records,
    only_name,
    text_lines,
    tf_records,
    whole_file,
)
from penstock.kernels.state.handles import make_handle, resource_of
from penstock.kernels.values.arrays import number_in, shape_text
from penstock.kernels.values.strings import items_of, string_array

_KIND: Final = "Reader"


def _maker(attrs: Attrs, read_records: Format, *, is_one_each: bool = False) -> Kernel:
    name = f"{attrs.op.name.removesuffix('V2')} '{attrs.node_name}'"

    def create(_shared_name: str) -> Reader:
        return Reader(name, read_records, is_one_each=is_one_each)

    return lambda context: make_handle(context, attrs, _KIND, create)[0]


@context_kernel("TextLineReader", "TextLineReaderV2", cost=Cost.CHEAP)
def make_text_line_reader(attrs: Attrs) -> Kernel:
    """A handle of a reader of lines."""
    return _maker(attrs, text_lines(attrs.host.files, attrs.int("skip_header_lines")))


@context_kernel("WholeFileReader", "WholeFileReaderV2", cost=Cost.CHEAP)
def make_whole_file_reader(attrs: Attrs) -> Kernel:
    """A handle of a reader of whole files."""
    return _maker(attrs, whole_file(attrs.host.files), is_one_each=True)


@context_kernel("IdentityReader", "IdentityReaderV2", cost=Cost.CHEAP)
def make_identity_reader(attrs: Attrs) -> Kernel:
    """A handle of a reader that gives the names themselves."""
    return _maker(attrs, only_name, is_one_each=True)


@context_kernel("FixedLengthRecordReader", "FixedLengthRecordReaderV2", cost=Cost.CHEAP)
def make_fixed_length_record_reader(attrs: Attrs) -> Kernel:
    """A handle of a reader of records of one size."""
    names = ("header_bytes", "record_bytes", "footer_bytes", "hop_bytes")
    header, size, footer, hop = map(attrs.int, names)
    if size <= 0 or min(header, footer, hop) < 0:
        raise ValueError("record_bytes must be positive, the other sizes not negative")
    encoding = attrs.str("encoding") if attrs.has("encoding") else ""
    return _maker(attrs, fixed_records(attrs.host.files, header, size, footer, hop, encoding))


@context_kernel("TFRecordReader", "TFRecordReaderV2", cost=Cost.CHEAP)
def make_tf_record_reader(attrs: Attrs) -> Kernel:
    """A handle of a reader of records in TensorFlow's own format."""
    return _maker(attrs, tf_records(attrs.host.files, attrs.str("compression_type")))


# -- using -----------------------------------------------------------------------------


def _reader(context: OpKernelContext, handle: Value) -> Reader:
    found: Reader = resource_of(context, handle, _KIND)
    return found


def _read(
    context: OpKernelContext, reader_handle: Value, queue_handle: Value, count: int, done: Done
) -> None:
    """Ask the reader for records; names come from the queue."""
    queue = queue_of(context, queue_handle)
    context.waits_for = waiting_for(queue, queue_handle)

    def next_name(then: Done) -> None:
        def named(outcome: object) -> None:
            is_error = isinstance(outcome, BaseException)
            then(outcome if is_error else items_of(outcome[0])[0])  # type: ignore[index]

        queue.dequeue(context.cancellation_manager, named)

    manager = context.cancellation_manager
    _reader(context, reader_handle).read(count, next_name, manager, done)


@async_kernel("ReaderRead", "ReaderReadV2")
def make_reader_read(_attrs: Attrs) -> Kernel:
    """The next record and its key."""

    def read(context: OpKernelContext, done: Done, reader: Value, queue: Value) -> None:
        def report(outcome: object) -> None:
            done(outcome[0] if isinstance(outcome, list) else outcome)

        _read(context, reader, queue, 1, report)

    return read


@async_kernel("ReaderReadUpTo", "ReaderReadUpToV2")
def make_reader_read_up_to(_attrs: Attrs) -> Kernel:
    """Up to so many records of one file, and their keys."""

    def read(
        context: OpKernelContext, done: Done, reader: Value, queue: Value, num_records: Value
    ) -> None:
        count = number_in(num_records)
        check_count(count)

        def report(outcome: object) -> None:
            done(_columns(outcome) if isinstance(outcome, list) else outcome)

        _read(context, reader, queue, count, report)

    return read


def _columns(records: list[Record]) -> tuple[Value, Value]:
    keys, values = zip(*records, strict=True)
    return string_array(keys, (len(keys),)), string_array(values, (len(values),))


@context_kernel("ReaderNumRecordsProduced", "ReaderNumRecordsProducedV2", cost=Cost.CHEAP)
def make_reader_num_records_produced(_attrs: Attrs) -> Kernel:
    """Number of records read so far."""
    return lambda context, handle: np.int64(_reader(context, handle).produced)


@context_kernel("ReaderNumWorkUnitsCompleted", "ReaderNumWorkUnitsCompletedV2", cost=Cost.CHEAP)
def make_reader_num_work_units_completed(_attrs: Attrs) -> Kernel:
    """Number of files read to their end."""
    return lambda context, handle: np.int64(_reader(context, handle).completed)


@context_kernel("ReaderReset", "ReaderResetV2", cost=Cost.CHEAP)
def make_reader_reset(_attrs: Attrs) -> Kernel:
    """Nothing; the reader is as new."""
    return lambda context, handle: _reader(context, handle).reset()


@context_kernel("ReaderSerializeState", "ReaderSerializeStateV2", cost=Cost.CHEAP)
def make_reader_serialize_state(_attrs: Attrs) -> Kernel:
    """The reader's counts as a string; only of readers for which a file is one record."""
    return lambda context, handle: _reader(context, handle).state()


@context_kernel("ReaderRestoreState", "ReaderRestoreStateV2", cost=Cost.CHEAP)
def make_reader_restore_state(_attrs: Attrs) -> Kernel:
    """Nothing; the reader goes on with the counts that were saved."""

    def restore(context: OpKernelContext, handle: Value, state: Value) -> None:
        if shape_of(state) != ():
            raise InvalidArgumentError(
                f"Reader state must be scalar, but had shape: {shape_text(shape_of(state))}"
            )
        _reader(context, handle).restore(items_of(state)[0])

    return restore
