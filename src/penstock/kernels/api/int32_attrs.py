"""Attributes whose numbers TensorFlow's kernels keep in 32 bits.

In:   a node's op and attributes.
Out:  an error if a number does not fit, in TensorFlow's words.
Not:  judges no number that fits.

An attribute has 64 bits in a GraphDef.  TensorFlow's kernels read most sizes, strides and counts
into an int32 and refuse what does not fit, before they are made; windows of 2^31 rows would cost
time and memory otherwise.  Which ones was asked of TensorFlow 2.21, attribute by attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.catalogue.op_def import OpDef
from penstock.defs.attrs import Attr
from penstock.errors import InvalidArgumentError

_LEAST: Final = -(2**31)
_GREATEST: Final = 2**31 - 1
#: By name: wherever one of these is an attribute of a number or of numbers.
_NAMES: Final = """
    allowed_batch_sizes axis batch_dim batch_dims batch_group_count batch_timeout_micros
    beam_width begin_mask blank_index block_size channels component_index compression concat_dim
    dct_coefficient_count desired_channels desired_samples dilations ellipsis_mask end_mask
    explicit_padding feature_group_count filterbank_channel_count groups input_quantization_axis
    io_index ksize ksizes lhs_dilation lhs_quantization_axis low_priority_allowed_batch_sizes
    low_priority_batch_timeout_micros low_priority_max_batch_size
    low_priority_max_enqueued_batches max_attempts max_batch_size max_enqueued_batches maxsplit
    min_after_dequeue new_axis_mask ngram_widths num_batch_threads num_bits num_elements
    num_sampled num_true output_quantization_axis output_quantization_max_val
    output_quantization_min_val pad_width precision quality quantization_axis rates ratio
    replacement_char rhs_dilation rhs_quantization_axis seq_dim shrink_axis_mask skip_header_lines
    squeeze_dims stride strides summarize timeout_micros width window_size window_strides
    x_density y_density
"""
_NARROW: Final = frozenset(_NAMES.split())
#: Names that mean another thing, with 64 bits, for all other ops.
_NARROW_FOR: Final[dict[str, frozenset[str]]] = {
    "capacity": frozenset({
        "Barrier", "FIFOQueue", "FIFOQueueV2", "PaddingFIFOQueue", "PaddingFIFOQueueV2",
        "PriorityQueue", "PriorityQueueV2", "RandomShuffleQueue", "RandomShuffleQueueV2",
    }),
    "k": frozenset({"InTopK"}),
    "loc": frozenset({"_ParallelConcatUpdate"}),
    "num_args": frozenset({"_FusedConv2D"}),
    "quantization_max_val": frozenset({"UniformQuantize"}),
    "quantization_min_val": frozenset({"UniformQuantize"}),
    "version": frozenset({"XlaCallModule"}),
}  # fmt: skip
#: Which of an op's attributes are meant, by its name.  Only grows; ops never change.
_narrow: Final[dict[str, tuple[str, ...]]] = {}


def check_int32(op: OpDef, values: Mapping[str, Attr]) -> None:
    """Raise InvalidArgumentError if TensorFlow's kernel could not hold one of the numbers."""
    for name in _narrow_of(op):
        value = values.get(name)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, int) and not _LEAST <= number <= _GREATEST:
                raise InvalidArgumentError(
                    f"Attr {name} has value {number} out of range for an int32"
                )


def _narrow_of(op: OpDef) -> tuple[str, ...]:
    known = _narrow.get(op.name)
    if known is None:
        known = _narrow[op.name] = tuple(
            name
            for name, attr in op.attrs.items()
            if attr.kind in ("int", "list(int)")
            and (name in _NARROW or op.name in _NARROW_FOR.get(name, ()))
        )
    return known
