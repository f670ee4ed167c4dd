"""Connectionist temporal classification: sequences without known alignment.

In:   a score for each class in each frame, [frames, batch, classes]; how many frames count;
      for the loss the labels of each sequence, as a sparse matrix.
Out:  the loss and its gradient; or the labels that the scores say, as a sparse matrix.
Not:  searches no labels by beams (ctc_beam_op).

Graves et al., Connectionist temporal classification, 2006.  A label sequence is written with
blanks around each label; a path through it may stay, step, and step over a blank between
different labels.  All of a batch goes forwards and backwards together, frame by frame.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.dataclass import dataclass
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.nn.softmax_ops import log_softmax
from penstock.kernels.parallel.products import batch_product
from penstock.kernels.sparse.sparse_tensor import check_indices
from penstock.kernels.values.arrays import shape_text

_TYPES: Final = {"T": frozenset({dtypes.float32, dtypes.float64})}


@dataclass(frozen=True, slots=True)
class _Rules:
    """What paths may do."""

    collapses_labels: bool
    merges_repeated: bool
    ignores_too_long: bool

    @classmethod
    def of(cls, attrs: Attrs) -> _Rules:
        """Those of a node."""
        return cls(
            attrs.bool("preprocess_collapse_repeated"),
            attrs.bool("ctc_merge_repeated"),
            attrs.bool("ignore_longer_outputs_than_inputs"),
        )

    def check(self, labels: list[int], number: int, available: int) -> None:
        """Raise ValueError unless a sequence has a frame for each label.

        The blanks that must come between equal labels are not counted: where there is no room
        for them there is no path, and the loss is infinite.
        """
        required = len(labels)
        if required > available and not self.ignores_too_long:
            raise ValueError(
                f"Not enough time for target transition sequence (required: {required}, "
                f"available: {available}) in batch {number}. You can turn this error into a "
                "warning by using the flag ignore_longer_outputs_than_inputs"
            )


@dataclass(frozen=True, slots=True)
class _Trellis:
    """Where paths may go, for a whole batch: [sequences, states]."""

    #: The class that each state emits.
    emits: Array
    may_stay: Array
    may_skip: Array
    #: The number of the last state of each sequence.
    last: Array

    @classmethod
    def of(cls, sequences: list[list[int]], blank: int, rules: _Rules) -> _Trellis:
        """That of label sequences."""
        last = np.array([2 * len(labels) for labels in sequences], np.intp)
        emits = np.full((len(sequences), int(last.max()) + 1), blank, np.intp)
        for row, labels in zip(emits, sequences, strict=True):
            row[1 : 2 * len(labels) : 2] = labels
        is_label = np.arange(emits.shape[1]) % 2 == 1
        may_skip = np.zeros(emits.shape, bool)
        differs = emits[:, 2:] != emits[:, :-2]
        may_skip[:, 2:] = is_label[2:] & (differs if rules.merges_repeated else True)
        may_stay = np.broadcast_to(~is_label | rules.merges_repeated, emits.shape)
        return cls(emits, may_stay, may_skip, last)


@kernel("CTCLoss", types=_TYPES)
def make_ctc_loss(attrs: Attrs) -> Kernel:
    """-log of the probability of all paths that mean the labels, and its gradient.

    The last class is the blank.
    """
    rules, dtype = _Rules.of(attrs), attrs.dtype("T").numpy

    def ctc_loss(
        inputs: Value, indices: Value, values: Value, lengths: Value
    ) -> tuple[Array, Array]:
        _check_ranks(inputs, lengths)
        _check_label_ranks(indices, values)
        _check_not_empty(inputs)
        _check_label_count(indices, values)
        _check_batch(inputs, lengths, ValueError)
        batch, classes = inputs.shape[1:]
        sequences = _label_sequences(indices, values, batch)
        _check_lengths(inputs, lengths, ValueError)
        for number, labels in enumerate(sequences):
            if lengths[number] < 0:
                raise ValueError(f"seq_len({number}) < 0")
            labels[:] = _without_padding(labels, number, classes)
            if rules.collapses_labels:
                labels[:] = _collapsed(labels)
            rules.check(labels, number, int(lengths[number]))
        # More labels than frames, where that is allowed, cost nothing.
        counts = np.where(np.array(list(map(len, sequences))) > lengths, 0, lengths)
        trellis = _Trellis.of(sequences, classes - 1, rules)
        loss, gradient = _loss_and_gradient(inputs.astype(np.float64), trellis, counts)
        return loss.astype(dtype), gradient.astype(dtype)

    return ctc_loss


def check_decoder_inputs(inputs: Value, lengths: Value) -> None:
    """Raise unless there are scores for each sequence, and none is too long."""
    if inputs.ndim == 3 and inputs.size == 0:
        raise ValueError(f"inputs must not be empty: {shape_text(inputs.shape)}")
    _check_ranks(inputs, lengths)
    _check_batch(inputs, lengths, FailedPreconditionError)
    _check_lengths(inputs, lengths, FailedPreconditionError)


def _check_ranks(inputs: Value, lengths: Value) -> None:
    if inputs.ndim != 3:
        raise ValueError(f"inputs is not a 3-Tensor: {shape_text(inputs.shape)}")
    if lengths.ndim != 1:
        raise ValueError(f"sequence_length is not a vector: {shape_text(lengths.shape)}")


def _check_batch(inputs: Value, lengths: Value, error: type[Exception]) -> None:
    batch = inputs.shape[1]
    if len(lengths) != batch:
        raise error(
            "len(sequence_length) != batch_size.  "
            f"len(sequence_length):  {len(lengths)} batch_size: {batch}"
        )


def _check_lengths(inputs: Value, lengths: Value, error: type[Exception]) -> None:
    if lengths.max() > len(inputs):
        number = int(np.argmax(lengths > len(inputs)))
        raise error(f"sequence_length({number}) <= {len(inputs)} must hold, got {lengths[number]}")


def _check_not_empty(inputs: Value) -> None:
    shown = shape_text(inputs.shape)
    if inputs.shape[0] == 0:
        raise ValueError(f"Max time or first dimension of input cannot be 0.: {shown}")
    if inputs.shape[1] == 0:
        raise ValueError(f"batch_size must not be 0: {shown}")
    if inputs.shape[2] == 0:
        raise ValueError(f"inputs must have at least one class, the blank: {shown}")


def _check_label_ranks(indices: Value, values: Value) -> None:
    if indices.ndim != 2:
        raise ValueError(f"labels_indices is not a matrix: {shape_text(indices.shape)}")
    if indices.shape[1] < 2:
        raise ValueError(
            f"labels_indices second dimension must be >= 1. Received {indices.shape[1]}, where a "
            "batch and a place are wanted"
        )
    if values.ndim != 1:
        raise ValueError(f"labels_values is not a vector: {shape_text(values.shape)}")


def _check_label_count(indices: Value, values: Value) -> None:
    if len(indices) != len(values):
        raise ValueError(
            "labels_indices and labels_values must contain the same number of rows, but saw "
            f"shapes: {shape_text(indices.shape)} vs. {shape_text(values.shape)}"
        )


def _label_sequences(indices: Value, values: Value, batch: int) -> list[list[int]]:
    try:
        check_indices(indices, [batch, *(indices.max(0, initial=-1)[1:] + 1).tolist()])
    except InvalidArgumentError as error:
        raise ValueError(f"label SparseTensor is not valid: {error.reason}") from None
    sequences: list[list[int]] = [[] for _ in range(batch)]
    for place, label in zip(indices.tolist(), values.tolist(), strict=True):
        sequences[place[0]].append(label)
    return sequences


def _without_padding(labels: list[int], number: int, classes: int) -> list[int]:
    """The labels of a sequence; after those there may be others, at least as large as the blank."""
    if not labels:
        raise ValueError(f"Labels length is zero in batch {number}")
    blank, listed = classes - 1, ",".join(map(str, labels))
    if min(labels) < 0:
        raise ValueError(
            f"All labels must be nonnegative integers, batch: {number} labels: {listed}"
        )
    real = list(itertools.takewhile(lambda label: label < blank, labels))
    if any(label < blank for label in labels[len(real) :]):
        raise ValueError(
            "Saw a non-null label (index >= num_classes - 1) following a null label, "
            f"batch: {number} num_classes: {classes} labels: {listed}"
        )
    return real


def _collapsed(labels: list[int]) -> list[int]:
    return [x for place, x in enumerate(labels) if place == 0 or x != labels[place - 1]]


def _loss_and_gradient(inputs: Array, trellis: _Trellis, counts: Array) -> tuple[Array, Array]:
    logs = log_softmax(inputs)
    emitted = np.take_along_axis(logs, trellis.emits[None], 2)
    forward = _forward(emitted, trellis)
    backward = _backward(emitted, trellis, counts)
    batch = np.arange(inputs.shape[1])
    ends = forward[np.maximum(counts - 1, 0), batch]
    at_blank = ends[batch, trellis.last]
    at_label = np.where(trellis.last > 0, ends[batch, np.maximum(trellis.last - 1, 0)], -np.inf)
    total = np.logaddexp(at_blank, at_label)
    shares = np.exp(forward + backward - total[:, None])
    shares = np.where(np.isfinite(total)[:, None], shares, 0)
    of_class = np.zeros((inputs.shape[1], trellis.emits.shape[1], inputs.shape[2]))
    np.put_along_axis(of_class, trellis.emits[..., None], 1.0, 2)
    expected = batch_product(shares.swapaxes(0, 1), of_class).swapaxes(0, 1)
    counted = np.arange(len(inputs))[:, None] < counts
    gradient = np.where(counted[..., None], np.exp(logs) - expected, 0)
    return np.where(counts > 0, -total, 0), gradient


def _forward(emitted: Array, trellis: _Trellis) -> Array:
    """The logarithm of all ways to be in a state, what it emits included."""
    reached = np.full(emitted.shape, -np.inf)
    reached[0, :, :2] = emitted[0, :, :2]
    for frame in range(1, len(emitted)):
        before = reached[frame - 1]
        ways = np.where(trellis.may_stay, before, -np.inf)
        ways[:, 1:] = np.logaddexp(ways[:, 1:], before[:, :-1])
        skipped = np.where(trellis.may_skip[:, 2:], before[:, :-2], -np.inf)
        ways[:, 2:] = np.logaddexp(ways[:, 2:], skipped)
        reached[frame] = ways + emitted[frame]
    return reached


def _backward(emitted: Array, trellis: _Trellis, counts: Array) -> Array:
    """The logarithm of all ways from a state to the end, what it emits not included."""
    states = np.arange(emitted.shape[2])
    is_end = (states == trellis.last[:, None]) | (states == trellis.last[:, None] - 1)
    end = np.where(is_end, 0.0, -np.inf)
    ways: Any = np.full(emitted.shape, -np.inf)
    for frame in reversed(range(len(emitted))):
        if frame + 1 < len(emitted):
            after = ways[frame + 1] + emitted[frame + 1]
            here = np.where(trellis.may_stay, after, -np.inf)
            here[:, :-1] = np.logaddexp(here[:, :-1], after[:, 1:])
            skipped = np.where(trellis.may_skip[:, 2:], after[:, 2:], -np.inf)
            here[:, :-2] = np.logaddexp(here[:, :-2], skipped)
            ways[frame] = here
        ways[frame] = np.where((counts == frame + 1)[:, None], end, ways[frame])
    return np.asarray(ways)


@kernel("CTCGreedyDecoder", types=_TYPES)
def make_ctc_greedy_decoder(attrs: Attrs) -> Kernel:
    """The best class of each frame, without blanks; repeated ones count once on demand.

    With it comes, for each sequence, minus the sum of its best scores.
    """
    merges, blank_index = attrs.bool("merge_repeated"), attrs.int("blank_index")

    def decode(inputs: Value, lengths: Value) -> tuple[Array, Array, Array, Array]:
        check_decoder_inputs(inputs, lengths)
        classes = inputs.shape[2]
        blank = blank_index + classes if blank_index < 0 else blank_index
        if not 0 <= blank < classes:
            raise ValueError(
                f"blank_index expected to be between {-classes} and {classes - 1} "
                f"but was {blank_index}"
            )
        best = inputs.argmax(2)
        counted = np.arange(len(inputs))[:, None] < lengths
        is_kept = counted & (best != blank)
        if merges:
            is_kept[1:] &= best[1:] != best[:-1]
        scores = np.where(counted, inputs.max(2), 0).astype(inputs.dtype)
        return (*_sparse_rows(best.T, is_kept.T), 0 - scores.sum(0)[:, None])

    return decode


def _sparse_rows(values: Array, is_kept: Array) -> tuple[Array, Array, Array]:
    """Indices, values and shape of a sparse matrix of what is kept, without gaps."""
    place = np.cumsum(is_kept, 1) - 1
    rows, columns = np.nonzero(is_kept)
    indices = np.stack([rows, place[rows, columns]], -1).astype(np.int64)
    longest = int(is_kept.sum(1).max(initial=0))
    shape = np.array([len(values), longest], np.int64)
    return indices, values[rows, columns].astype(np.int64), shape
