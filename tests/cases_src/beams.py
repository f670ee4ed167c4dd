"""Label sequences by beams."""

from __future__ import annotations

from typing import Any

from cases_src.casebook import f32, i32, normal, op


def _scores(frames: int, batch: int, classes: int, seed: int, dtype: str = "float32") -> Any:
    return (normal(frames, batch, classes, seed=seed) * 2).astype(dtype)


def _case(inputs: Any, lengths: Any, width: int, paths: int, **more: Any) -> Any:
    return op(
        "CTCBeamSearchDecoder",
        inputs=inputs,
        sequence_length=i32(lengths),
        beam_width=width,
        top_paths=paths,
        **more,
    )


CASES = [
    *(
        _case(_scores(25, 4, 7, 20 + width), [25, 24, 13, 20], width, min(width, 4))
        for width in (1, 2, 3, 4, 6, 9)
    ),
    _case(_scores(6, 2, 4, 1), [6, 4], 8, 3, merge_repeated=False),
    _case(_scores(6, 2, 4, 2), [6, 6], 8, 2, merge_repeated=True),
    _case(_scores(12, 3, 6, 3), [12, 1, 9], 5, 1, merge_repeated=False),
    _case(_scores(12, 3, 6, 4), [12, 7, 9], 100, 4, merge_repeated=False),
    _case(_scores(5, 1, 3, 5, "float64"), [5], 3, 2, merge_repeated=False),
    _case(_scores(30, 2, 10, 6), [30, 20], 20, 5, merge_repeated=False),
    _case(_scores(3, 2, 4, 7), [3, 0], 4, 1, merge_repeated=False),
    _case(_scores(9, 1, 2, 8), [9], 6, 3, merge_repeated=False),
    _case(_scores(3, 1, 4, 7), [3], 2, 3, says="requested more paths than the beam width"),
    _case(_scores(3, 2, 4, 7), [3, 0], 4, 3, says="Less leaves in the beam search"),
    _case(_scores(3, 1, 4, 7), [4], 2, 1, says="sequence_length(0) <= 3"),
    _case(f32([[1, 2]]), [1], 2, 1, says="inputs is not a 3-Tensor"),
    op("CTCGreedyDecoder", inputs=_scores(3, 1, 4, 7), sequence_length=i32([4]), says="(0) <= 3"),
]
