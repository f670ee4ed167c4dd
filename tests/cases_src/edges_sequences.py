"""Connectionist temporal classification at its edges: nothing to read, nothing to write."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import f32, i32, i64, normal, op

_X = normal(4, 2, 3)


def _loss(
    labels: Any, *, inputs: Any = _X, lengths: Any = (4, 3), indices: Any = None, **more: Any
) -> Any:
    places = [[row, at] for row, listed in enumerate(labels) for at in range(len(listed))]
    values = [label for listed in labels for label in listed]
    return op(
        "CTCLoss",
        inputs=f32(inputs),
        labels_indices=i64(places if indices is None else indices).reshape(-1, 2)
        if indices is None
        else i64(indices),
        labels_values=i32(values),
        sequence_length=i32(lengths),
        **more,
    )


def losses() -> list[Any]:
    """Labels for which there is no room, no labels, and what does not fit together."""
    some = [[0, 1], [1]]
    return [
        _loss(some),
        # No blank fits between the two: no path, an infinite loss.
        _loss([[0, 0], [1]], lengths=[2, 3]),
        _loss([[0, 0], [1]], lengths=[2, 3], ctc_merge_repeated=False),
        _loss([[0, 0, 1], [1]], lengths=[3, 3], preprocess_collapse_repeated=True),
        # What follows the last label may be as large as one likes.
        _loss([[0, 2, 3], [1, 9]]),
        _loss([[0, 1, 0], [1]], lengths=[2, 3], ignore_longer_outputs_than_inputs=True),
        _loss([[0, 1, 0], [1]], lengths=[2, 3], says="required: 3, available: 2"),
        _loss([[0, 2, 1], [1]], says="Saw a non-null label"),
        _loss([[0, -1], [1]], says="nonnegative integers, batch: 0 labels: 0,-1"),
        _loss([[], [1]], says="Labels length is zero in batch 0"),
        _loss([[], []], says="Labels length is zero in batch 0"),
        _loss(some, inputs=np.zeros((0, 2, 3)), says="Max time or first dimension"),
        _loss([], inputs=np.zeros((4, 0, 3)), lengths=[], says="batch_size must not be 0"),
        _loss(some, inputs=np.zeros((4, 2)), says="inputs is not a 3-Tensor"),
        _loss(some, lengths=[4], says="len(sequence_length):  1 batch_size: 2"),
        _loss(some, lengths=[[4, 3]], says="sequence_length is not a vector"),
        _loss(some, lengths=[4, 5], says="sequence_length(1) <= 4"),
        _loss(some, lengths=[4, -1], says="seq_len(1) < 0"),
        _loss(some, indices=[[0, 0], [0, 1]], says="[2,2] vs. [3]"),
        _loss(some, indices=[[0], [0], [1]], says="labels_indices second dimension"),
        _loss(some, indices=[0, 0, 1], says="labels_indices is not a matrix"),
        _loss(some, indices=[[0, 0], [0, 1], [2, 0]], says="indices[2] = [2,0] is out of bounds"),
        _loss(some, indices=[[0, 0], [0, 1], [-1, 0]], says="indices[2] = [-1,0] is out of"),
        _loss(some, indices=[[1, 0], [0, 0], [0, 1]], says="indices[1] = [0,0] is out of order"),
        _loss(some, indices=[[0, 0], [0, 0], [1, 0]], says="indices[1] = [0,0] is repeated"),
    ]


def decoders() -> list[Any]:
    """Empty inputs are refused; of no frames there are no labels."""
    cases = []
    for name, attrs in (
        ("CTCGreedyDecoder", {}),
        ("CTCBeamSearchDecoder", {"beam_width": 3, "top_paths": 1}),
    ):
        cases += [
            op(name, inputs=f32(inputs), sequence_length=i32(lengths), **attrs, **more)
            for inputs, lengths, more in [
                (_X, [4, 3], {}),
                (_X, [0, 3], {}),
                (_X, [-1, 3], {}),
                (np.zeros((4, 2, 1)), [4, 4], {}),
                (np.zeros((4, 0, 3)), [], {"says": "inputs must not be empty"}),
                (np.zeros((0, 2, 3)), [0, 0], {"says": "inputs must not be empty"}),
                (np.zeros((4, 2, 0)), [4, 4], {"says": "inputs must not be empty"}),
                (_X[0], [4, 4], {"says": "inputs is not a 3-Tensor"}),
                (_X, [[4, 4]], {"says": "sequence_length is not a vector"}),
                (_X, [4], {"says": "len(sequence_length):  1 batch_size: 2"}),
                (_X, [5, 4], {"says": "sequence_length(0) <= 4"}),
            ]
        ]
    says = "blank_index expected to be between -3 and 2 but was"
    cases += [
        op("CTCGreedyDecoder", inputs=_X, sequence_length=i32([4, 3]), blank_index=blank, **more)
        for blank, more in ((0, {}), (-3, {}), (3, {"says": says}), (-4, {"says": says}))
    ]
    return cases


CASES = [*losses(), *decoders()]
