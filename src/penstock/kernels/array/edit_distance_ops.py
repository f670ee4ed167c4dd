"""How far sequences are from each other.

In:   two sparse tensors, whose last dimension holds the sequences.
Out:  for each pair, how many insertions, deletions and replacements lie between them.
Not:  does not say which ones.
"""

from __future__ import annotations

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS
from penstock.kernels.values.arrays import as_array, check_new, shape_text

_Sequences = dict[tuple[int, ...], Array]


@kernel("EditDistance", types={"T": NUMBERS | {dtypes.bool_, dtypes.string}})
def make_edit_distance(attrs: Attrs) -> Kernel:
    """Levenshtein's distance of sequences, per element of the true one if normalised.

    Nothing is infinitely far from an empty sequence, relatively, but itself.
    """
    is_relative = attrs.bool("normalize")

    def edit_distance(
        guess_indices: Value,
        guess_values: Value,
        guess_shape: Value,
        truth_indices: Value,
        truth_values: Value,
        truth_shape: Value,
    ) -> Array:
        shape = _shape(guess_shape, truth_shape)
        guesses = _sequences(guess_indices, guess_values, shape, "hypothesis")
        truths = _sequences(truth_indices, truth_values, shape, "truth")
        distances = np.zeros(shape, np.float32)
        for place in guesses.keys() | truths.keys():
            guess, truth = guesses.get(place, ()), truths.get(place, ())
            distance = np.float32(_distance(guess, truth))
            distances[place] = distance / np.float32(len(truth)) if is_relative else distance
        return distances

    return edit_distance


def _shape(guess_shape: Value, truth_shape: Value) -> tuple[int, ...]:
    """The shape of the result: sizes that hold both, without the sequences' dimension."""
    if np.ndim(guess_shape) != 1 or np.shape(guess_shape) != np.shape(truth_shape):
        raise ValueError(
            "Expected truth and hypothesis to have matching ranks, but their shapes are: "
            f"{truth_shape} and {guess_shape}"
        )
    if len(guess_shape) < 2:
        raise ValueError(
            "Input SparseTensors must have rank at least 2, but truth_shape rank is: "
            f"{len(guess_shape)}"
        )
    shape = tuple(np.maximum(guess_shape, truth_shape)[:-1].tolist())
    check_new(shape, np.dtype(np.float32))
    if 0 in shape:
        raise ValueError(f"Got output shape {shape_text(shape)} which has 0 elements")
    return shape


def _sequences(indices: Value, values: Value, shape: tuple[int, ...], name: str) -> _Sequences:
    """The values at each place of the result, in the order in which they come."""
    places, array = np.asarray(indices), as_array(values)
    if places.ndim != 2 or array.ndim != 1 or len(places) != len(array):
        raise ValueError(
            f"Expected {name}_values.NumElements == #rows({name}_indices), their shapes are: "
            f"{shape_text(array.shape)} and {shape_text(places.shape)}"
        )
    if places.shape[1] != len(shape) + 1:
        raise ValueError(f"{name}_indices must have {len(shape) + 1} columns")
    outer = places[:, :-1]
    if ((outer < 0) | (outer >= np.array(shape, np.int64))).any():
        raise ValueError(f"{name}_indices are outside of the shape {shape_text(shape)}")
    found: dict[tuple[int, ...], list[int]] = {}
    for number, place in enumerate(map(tuple, outer.tolist())):
        found.setdefault(place, []).append(number)
    return {place: array[numbers] for place, numbers in found.items()}


def _distance(guess: Array | tuple[()], truth: Array | tuple[()]) -> int:
    """Levenshtein's distance, one row of his table at a time."""
    if not len(guess) or not len(truth):
        return max(len(guess), len(truth))
    steps = np.arange(len(truth) + 1)
    row = steps
    for number, item in enumerate(guess, 1):
        replaced = row[:-1] + (np.asarray(truth) != item)
        deleted = row[1:] + 1
        best = np.concatenate([[number], np.minimum(replaced, deleted)])
        row = np.minimum.accumulate(best - steps) + steps  # and insertions, from the left
    return int(row[-1])
