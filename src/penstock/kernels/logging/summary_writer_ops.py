"""Writing summaries to files of events.

In:   a handle of a writer, the number of a step, a tag, values; or serialized messages.
Out:  events in the writer's file.
Not:  the summaries' contents are made by the other ``summary`` modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from google.protobuf.message import DecodeError

from penstock.core.values import ResourceHandle, Value
from penstock.defs.event_file import EventFile
from penstock.defs.schema import Event, Message
from penstock.errors import DataLossError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Cost, Kernel, context_kernel, kernel
from penstock.kernels.api.types import REALS
from penstock.kernels.logging.summary_media_ops import PICTURES, audio_values, image_values
from penstock.kernels.logging.summary_ops import histogram_of, tensor_value
from penstock.kernels.state.handles import resource_of
from penstock.kernels.state.variables import resource_name, single_handle
from penstock.kernels.values.arrays import as_array
from penstock.kernels.values.paths import path_in
from penstock.kernels.values.strings import items_of

_KIND: Final = "SummaryWriterInterface"


@kernel("SummaryWriter", cost=Cost.CHEAP)
def make_summary_writer(attrs: Attrs) -> Kernel:
    """A handle of a writer, which need not be there yet."""
    handle = ResourceHandle(attrs.device, *resource_name(attrs), _KIND)
    return lambda: handle


@context_kernel("CreateSummaryFileWriter")
def make_create_summary_file_writer(attrs: Attrs) -> Kernel:
    """Nothing; a file is begun, unless the writer has one."""
    files = attrs.host.files

    def create(
        context: OpKernelContext,
        writer: Value,
        folder: Value,
        most_waiting: Value,
        _milliseconds: Value,
        suffix: Value,
    ) -> None:
        handle, path = single_handle(writer), path_in(folder, "logdir")
        ending = path_in(suffix, "filename_suffix")

        def begin() -> EventFile:
            return EventFile(files, path, ending, int(most_waiting))

        resources = context.resources.at(handle.device)
        resources.lookup_or_create(handle.container, handle.name, _KIND, begin)

    return create


def _writer(context: OpKernelContext, handle: Value) -> EventFile:
    found: EventFile = resource_of(context, handle, _KIND)
    return found


@context_kernel("FlushSummaryWriter")
def make_flush_summary_writer(_attrs: Attrs) -> Kernel:
    """Nothing; other processes can see what was written."""
    return lambda context, writer: _writer(context, writer).flush()


@context_kernel("CloseSummaryWriter")
def make_close_summary_writer(_attrs: Attrs) -> Kernel:
    """Nothing; the file is closed, and the handle has no writer."""

    def close(context: OpKernelContext, writer: Value) -> None:
        handle = single_handle(writer)
        resources = context.resources.at(handle.device)
        resources.delete(handle.container, handle.name, _KIND)

    return close


# -- events of a step ----------------------------------------------------------------------------


def _of_step(fill: Callable[..., None]) -> Kernel:
    """A kernel that writes an event, which ``fill`` completes from the inputs that are left."""

    def write(context: OpKernelContext, writer: Value, step: Value, *inputs: Value) -> None:
        event = Event(step=int(step))
        fill(event, *inputs)
        _writer(context, writer).add(event)

    return write


def _tag(value: Value) -> str:
    return items_of(value)[0].decode("utf-8", "replace")


@context_kernel("WriteScalarSummary", types={"T": REALS})
def make_write_scalar_summary(_attrs: Attrs) -> Kernel:
    """Nothing; the file has the number."""

    def fill(event: Message, tag: Value, value: Value) -> None:
        number = float(np.float32(as_array(value).flat[0]))
        event.summary.value.add(tag=_tag(tag), simple_value=number)

    return _of_step(fill)


@context_kernel("WriteSummary")
def make_write_summary(attrs: Attrs) -> Kernel:
    """Nothing; the file has the tensor, with what its plugin wants to know."""
    dtype = attrs.dtype("T")

    def fill(event: Message, tensor: Value, tag: Value, metadata: Value) -> None:
        value = event.summary.value.add(tag=_tag(tag))
        tensor_value(value, tensor, dtype, items_of(metadata)[0])

    return _of_step(fill)


@context_kernel("WriteHistogramSummary", types={"T": REALS})
def make_write_histogram_summary(attrs: Attrs) -> Kernel:
    """Nothing; the file says how the values are spread."""
    name = attrs.node_name

    def fill(event: Message, tag: Value, values: Value) -> None:
        event.summary.value.add(tag=_tag(tag)).histo.CopyFrom(histogram_of(values, name))

    return _of_step(fill)


@context_kernel("WriteImageSummary", types={"T": PICTURES})
def make_write_image_summary(attrs: Attrs) -> Kernel:
    """Nothing; the file has the first images."""
    most = attrs.int("max_images")

    def fill(event: Message, tag: Value, images: Value, bad_color: Value) -> None:
        event.summary.CopyFrom(image_values(tag, images, most, bad_color))

    return _of_step(fill)


@context_kernel("WriteAudioSummary")
def make_write_audio_summary(attrs: Attrs) -> Kernel:
    """Nothing; the file has the first sounds."""
    most = attrs.int("max_outputs")

    def fill(event: Message, tag: Value, sound: Value, rate: Value) -> None:
        event.summary.CopyFrom(audio_values(tag, sound, rate, most))

    return _of_step(fill)


@context_kernel("WriteRawProtoSummary")
def make_write_raw_proto_summary(_attrs: Attrs) -> Kernel:
    """Nothing; the file has the serialized summary."""

    def fill(event: Message, text: Value) -> None:
        _parse(event.summary, items_of(text)[0], "tf.Summary")

    return _of_step(fill)


@context_kernel("WriteGraphSummary")
def make_write_graph_summary(_attrs: Attrs) -> Kernel:
    """Nothing; the file has the serialized graph."""

    def fill(event: Message, text: Value) -> None:
        event.graph_def = items_of(text)[0]

    return _of_step(fill)


@context_kernel("ImportEvent")
def make_import_event(_attrs: Attrs) -> Kernel:
    """Nothing; the file has the serialized event."""

    def import_event(context: OpKernelContext, writer: Value, text: Value) -> None:
        event = Event()
        _parse(event, items_of(text)[0], "tf.Event")
        _writer(context, writer).add(event)

    return import_event


def _parse(message: Message, text: bytes, what: str) -> None:
    try:
        message.ParseFromString(text)
    except DecodeError as cause:
        raise DataLossError(f"Bad {what} binary proto tensor string") from cause
