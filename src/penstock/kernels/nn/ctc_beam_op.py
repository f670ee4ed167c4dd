"""Connectionist temporal classification: the likeliest labels, by beams.

In:   a score for each class in each frame, [frames, batch, classes], the last of them the blank;
      how many frames count.
Out:  the best label sequences, as sparse matrices, and the logarithms of how likely they are.
Not:  knows no language model: labels are as likely as their frames say.

A sequence keeps two likelihoods, of paths that end in a blank and of those that end in its last
label, since only after a blank may the same label come again.  In each frame every sequence stays
or grows by a label, and the best stay in the beam.
"""

from __future__ import annotations

import heapq
import math
from typing import Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Kernel, context_kernel
from penstock.kernels.nn.ctc_ops import check_decoder_inputs
from penstock.kernels.nn.softmax_ops import log_softmax
from penstock.kernels.values.arrays import check_room
from penstock.state.interrupt import Interrupt

_NEVER: Final = -math.inf
#: Bytes that a sequence takes in a beam, at the least.
_SEQUENCE: Final = 400
_Labels: TypeAlias = tuple[int, ...]
#: Logarithms of the likelihoods of paths that end in a blank, and in the last label.
_Ends: TypeAlias = tuple[float, float]


def _either(a: float, b: float) -> float:
    """The logarithm of a sum, of logarithms."""
    high, low = (a, b) if a > b else (b, a)
    return high if low == _NEVER else high + math.log1p(math.exp(low - high))


@context_kernel("CTCBeamSearchDecoder", types={"T": frozenset({dtypes.float32, dtypes.float64})})
def make_ctc_beam_search_decoder(attrs: Attrs) -> Kernel:
    """The best label sequences of each batch, repeated labels counted once on demand."""
    width, count = attrs.int("beam_width"), attrs.int("top_paths")
    merges = attrs.bool("merge_repeated")

    def decode(context: OpKernelContext, inputs: Value, lengths: Value) -> tuple[Array, ...]:
        check_decoder_inputs(inputs, lengths)
        if count > width:
            raise InvalidArgumentError("requested more paths than the beam width.")
        length, _, classes = inputs.shape
        check_room(min(width, classes**length), _SEQUENCE, "sequences of a beam")
        frames = log_softmax(inputs.astype(np.float64)).swapaxes(0, 1)
        found = [
            _best(rows[: max(length, 0)], width, context.interrupt)[:count]
            for rows, length in zip(frames, lengths.tolist(), strict=True)
        ]
        if any(len(best) < count for best in found):
            raise InvalidArgumentError("Less leaves in the beam search than requested.")
        paths = [_matrix([best[at][1] for best in found], merges) for at in range(count)]
        likely = np.array([[score for score, _ in best] for best in found], inputs.dtype)
        parts = (path[part] for part in range(3) for path in paths)
        return (*parts, likely.reshape(len(found), count))

    return decode


def _best(frames: Array, width: int, interrupt: Interrupt) -> list[tuple[float, _Labels]]:
    """The sequences of the last frame's beam, the likeliest first.

    A wide beam grows by a factor in each frame, so that the step may have to end meanwhile.
    """
    beam: dict[_Labels, _Ends] = {(): (0.0, _NEVER)}
    for row in frames:
        found = _Beam(beam, {labels: _stayed(beam, labels, row) for labels in beam}, width)
        for labels in beam:
            interrupt.check()
            found.grow(labels, row)
        beam = found.sorted()
    return [(_either(*ends), labels) for labels, ends in beam.items()]


def _stayed(beam: dict[_Labels, _Ends], labels: _Labels, row: Array) -> _Ends:
    """A sequence after a frame in which it did not grow, or its parent grew into it."""
    ends = beam[labels]
    after_blank = _either(*ends) + float(row[-1])
    if not labels:
        return after_blank, _NEVER
    again, parent = ends[1], beam.get(labels[:-1])
    if parent is not None:
        is_repeated = labels[-2:-1] == labels[-1:]
        again = _either(again, parent[0] if is_repeated else _either(*parent))
    return after_blank, again + float(row[labels[-1]])


class _Beam:
    """The best sequences of a frame, while those of the frame before grow into it one by one.

    What fell out is forgotten altogether if the sequence that it grew from comes by again before
    its own turn: then it does not grow either.  That is so in TensorFlow.
    """

    def __init__(
        self, before: dict[_Labels, _Ends], stayed: dict[_Labels, _Ends], width: int
    ) -> None:
        self._before, self._width = before, width
        self._ends = stayed
        #: Sequences that are in, the unlikeliest first.
        self._heap = [(_either(*ends), labels) for labels, ends in stayed.items()]
        heapq.heapify(self._heap)
        self._forgotten: set[_Labels] = set()
        #: The last labels of those of the frame before, by the sequence that they grew from.
        self._children: dict[_Labels, list[int]] = {}
        for labels in filter(None, before):
            self._children.setdefault(labels[:-1], []).append(labels[-1])

    def grow(self, labels: _Labels, row: Array) -> None:
        """Let a sequence of the frame before grow by each label that makes it likely enough."""
        ends = self._before[labels]
        if labels in self._forgotten or not _either(*ends) > self._least:
            return
        scores = row[:-1] + _either(*ends)
        if labels:
            scores[labels[-1]] = row[labels[-1]] + ends[0]
        likely = np.flatnonzero(scores > self._least).tolist()
        for label in sorted({*likely, *self._children.get(labels, ())}):
            child = (*labels, label)
            if child not in self._ends:
                self._add(child, float(scores[label]))

    @property
    def _least(self) -> float:
        """What a new sequence must be better than."""
        return self._heap[0][0] if len(self._heap) == self._width else _NEVER

    def _add(self, labels: _Labels, score: float) -> None:
        if not score > self._least:
            self._forgotten.add(labels)
            return
        self._ends[labels] = (_NEVER, score)
        if len(self._heap) < self._width:
            heapq.heappush(self._heap, (score, labels))
        else:
            del self._ends[heapq.heapreplace(self._heap, (score, labels))[1]]

    def sorted(self) -> dict[_Labels, _Ends]:
        """The sequences and their ends, the likeliest first."""
        return {labels: self._ends[labels] for _, labels in sorted(self._heap, reverse=True)}


def _matrix(sequences: list[_Labels], merges: bool) -> tuple[Array, Array, Array]:  # noqa: FBT001
    """Indices, values and shape of a sparse matrix with a sequence in each row."""
    rows = [
        [
            label
            for at, label in enumerate(labels)
            if not (merges and at and labels[at - 1] == label)
        ]
        for labels in sequences
    ]
    places = [(row, at) for row, labels in enumerate(rows) for at in range(len(labels))]
    values = [label for labels in rows for label in labels]
    shape = (len(rows), max(map(len, rows), default=0))
    return (
        np.array(places, np.int64).reshape(-1, 2),
        np.array(values, np.int64),
        np.array(shape, np.int64),
    )
