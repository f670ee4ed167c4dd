"""Shapes of strings that are cut, joined, compared and read.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  reads no strings.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.kernels.api.partial_shapes import (
    broadcast,
    concat,
    dim,
    elements,
    merge_all,
    part_of,
    shape,
)
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures({
    """
    AsString StaticRegexFullMatch StaticRegexReplace StringLength StringLower StringStrip
    StringToHashBucket StringToHashBucketFast StringToHashBucketStrong StringToNumber StringUpper
    UnicodeScript UnicodeTranscode
    """: "s -> s",
    "RegexFullMatch": "s, [] -> s",
    "RegexReplace": "s, [], [] -> s",
    "StringFormat": "-> []",
    "StringNGrams": "[?], [n] -> [?], [n]",
    "StringSplit": "[?], [] -> [?,2], [?], [2]",
    "StringSplitV2": "[?], [] -> [?,2], [?], [2]",
})  # fmt: skip


@shape_rule("StringJoin")
def string_join(node: ShapeContext) -> TensorShape:
    """All the same, but for scalars; nothing known of one that may be a scalar."""
    if any(one.dims is None for one in node.inputs):
        return UNKNOWN
    return (
        merge_all(one for one in node.inputs if one.rank)
        if any(one.rank for one in node.inputs)
        else shape()
    )


@shape_rule("ReduceJoin")
def reduce_join(node: ShapeContext) -> TensorShape:
    """The axes that are joined go, or become 1; no axes at all mean all of them."""
    given, axes = node.input(0), node.numbers(1)
    if given.dims is None or axes is None:
        return UNKNOWN
    rank = len(given.dims)
    gone = {axis % rank for axis in axes} if rank else set()
    if not axes:
        gone = set(range(rank))
    if node.attrs.bool("keep_dims"):
        return shape(*(1 if i in gone else size for i, size in enumerate(given.dims)))
    return shape(*(size for i, size in enumerate(given.dims) if i not in gone))


@shape_rule("Substr")
def substr(node: ShapeContext) -> TensorShape:
    """The strings and the places, broadcast."""
    return broadcast(*node.inputs[:2]) if node.inputs[1].rank else node.input(0)


@shape_rule("Fingerprint")
def fingerprint(node: ShapeContext) -> TensorShape:
    """Eight bytes per row, if they are made by the method that there is."""
    is_known = node.value(1) in (b"farmhash64", "farmhash64")
    return shape(dim(node.input(0), 0), 8 if is_known else None)


@shape_rule("UnicodeDecode", "UnicodeDecodeWithOffsets")
def unicode_decode(node: ShapeContext) -> Sequence[TensorShape]:
    """Where each string's characters begin, and the characters."""
    count = elements(node.input(0))
    ends = shape(None if count is None else count + 1)
    return [ends] + [shape(None)] * (len(node.attrs.output_types) - 1)


@shape_rule("UnicodeEncode")
def unicode_encode(node: ShapeContext) -> TensorShape:
    """One string between two neighbouring places."""
    ends = dim(node.input(1), 0)
    return shape(None if ends is None else ends - 1)


@shape_rule("UnsortedSegmentJoin")
def unsorted_segment_join(node: ShapeContext) -> TensorShape:
    """As many rows as there are segments."""
    data, ids = node.input(0), node.input(1)
    if data.dims is None or ids.dims is None:
        return UNKNOWN
    return concat(shape(node.count(2)), part_of(data, len(ids.dims)))
