"""Summaries: serialized messages that say what a run looked like.

In:   tags and values; or serialized summaries.
Out:  one serialized ``Summary``.
Not:  writes no event files (summary_writer_ops); no images, no sound (summary_media_ops).
"""

from __future__ import annotations

import bisect
from functools import cache

import numpy as np
from google.protobuf.message import DecodeError

from penstock.core.dtypes import DType
from penstock.core.values import Value, shape_of
from penstock.defs.schema import Message, Summary, SummaryMetadata
from penstock.defs.tensors import to_proto
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import REALS
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.strings import items_of


def _serialized(summary: Message) -> bytes:
    text: bytes = summary.SerializeToString()
    return text


@kernel("ScalarSummary", types={"T": REALS})
def make_scalar_summary(_attrs: Attrs) -> Kernel:
    """A value for each tag."""

    def scalar_summary(tags: Value, values: Value) -> bytes:
        names, numbers = items_of(tags), as_array(values).ravel()
        if shape_of(tags) != shape_of(values) and not len(names) == numbers.size == 1:
            raise InvalidArgumentError(
                f"tags and values are not the same shape: {shape_text(shape_of(tags))} != "
                f"{shape_text(shape_of(values))}"
            )
        summary = Summary()
        for name, number in zip(names, numbers.astype(np.float32).tolist(), strict=True):
            summary.value.add(tag=name.decode("utf-8", "replace"), simple_value=number)
        return _serialized(summary)

    return scalar_summary


@cache
def _limits() -> list[float]:
    """Upper ends of the buckets: a tenth apart, on both sides of zero."""
    positive = []
    end = 1e-12
    while end < 1e20:
        positive.append(end)
        end *= 1.1
    largest = float(np.finfo(np.float64).max)
    return [-largest, *(-x for x in reversed(positive)), 0.0, *positive, largest]


@kernel("HistogramSummary", types={"T": REALS})
def make_histogram_summary(attrs: Attrs) -> Kernel:
    """How the values are spread over buckets that grow by a tenth."""
    name = attrs.node_name

    def histogram_summary(tag: Value, values: Value) -> bytes:
        if shape_of(tag) != ():
            raise InvalidArgumentError(f"tags must be scalar, got {shape_text(shape_of(tag))}")
        title = items_of(tag)[0].decode("utf-8", "replace")
        summary = Summary()
        summary.value.add(tag=title).histo.CopyFrom(histogram_of(values, name))
        return _serialized(summary)

    return histogram_summary


def histogram_of(values: Value, name: str) -> Message:
    """A HistogramProto of values, which must be numbers; ``name`` is that of the node."""
    numbers = as_array(values).ravel().astype(np.float64)
    if np.isnan(numbers).any():
        raise InvalidArgumentError(f"Nan in summary histogram for: {name}")
    if np.isinf(numbers).any():
        raise InvalidArgumentError(f"Infinity in Histogram for: {name}")
    histogram = Summary().value.add().histo
    _fill_histogram(histogram, numbers.tolist())
    return histogram


def _fill_histogram(histogram: Message, numbers: list[float]) -> None:
    """Write numbers into a HistogramProto; runs of empty buckets are written as one."""
    limits = _limits()
    counts = [0.0] * len(limits)
    for number in numbers:
        counts[min(bisect.bisect_right(limits, number), len(limits) - 1)] += 1
    largest = limits[-1]
    histogram.min = min(numbers, default=largest)
    histogram.max = max(numbers, default=-largest)
    histogram.num = len(numbers)
    histogram.sum = sum(numbers)
    histogram.sum_squares = sum(number * number for number in numbers)
    at = 0
    while at < len(counts):
        count, end = counts[at], limits[at]
        at += 1
        if count <= 0:
            while at < len(counts) and counts[at] <= 0:
                end = limits[at]
                at += 1
        histogram.bucket_limit.append(end)
        histogram.bucket.append(count)


@kernel("MergeSummary")
def make_merge_summary(_attrs: Attrs) -> Kernel:
    """The values of all summaries in one; their tags must differ."""

    def merge(*inputs: Value) -> bytes:
        merged, tags = Summary(), set()
        for text in (text for value in inputs for text in items_of(value)):
            part = _parsed(Summary(), text, "Could not parse one of the summary inputs")
            for value in part.value:
                if value.tag and value.tag in tags:
                    raise InvalidArgumentError(f"Duplicate tag {value.tag} found in summary inputs")
                tags.add(value.tag)
            merged.value.extend(part.value)
        return _serialized(merged)

    return merge


def _parsed(message: Message, text: bytes, complaint: str) -> Message:
    try:
        message.ParseFromString(text)
    except DecodeError as cause:
        raise InvalidArgumentError(complaint) from cause
    return message


@kernel("TensorSummaryV2")
def make_tensor_summary_v2(attrs: Attrs) -> Kernel:
    """The tensor itself, with a tag and the description of what shows it."""
    dtype = attrs.dtype("T")

    def tensor_summary(tag: Value, tensor: Value, metadata: Value) -> bytes:
        if shape_of(tag) != () or shape_of(metadata) != ():
            raise InvalidArgumentError("tag and serialized_summary_metadata must be scalars")
        summary = Summary()
        value = summary.value.add(tag=items_of(tag)[0].decode("utf-8", "replace"))
        tensor_value(value, tensor, dtype, items_of(metadata)[0])
        value.metadata.SetInParent()
        return _serialized(summary)

    return tensor_summary


def tensor_value(value: Message, tensor: Value, dtype: DType, metadata: bytes) -> None:
    """Write a tensor and the serialized description of what shows it into a Summary's value."""
    _fill_tensor(value, tensor, dtype)
    if metadata:
        parsed = _parsed(SummaryMetadata(), metadata, "Could not parse the summary metadata")
        value.metadata.CopyFrom(parsed)


@kernel("TensorSummary")
def make_tensor_summary(attrs: Attrs) -> Kernel:
    """The tensor itself, under the node's name."""
    dtype, name = attrs.dtype("T"), attrs.node_name

    def tensor_summary(tensor: Value) -> bytes:
        summary = Summary()
        _fill_tensor(summary.value.add(node_name=name), tensor, dtype)
        return _serialized(summary)

    return tensor_summary


def _fill_tensor(value: Message, tensor: Value, dtype: DType) -> None:
    value.tensor.CopyFrom(to_proto(as_array(tensor), dtype))
    value.tensor.tensor_shape.SetInParent()
