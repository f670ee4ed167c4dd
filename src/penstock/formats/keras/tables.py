"""Words and numbers by the place where they stand in a vocabulary, without any state.

In:   a vocabulary; a tensor of words or numbers.
Out:  ``Found``: where in the vocabulary each is, and whether it is there at all.
Not:  knows no layers, and no marks for what is unknown.

A table of TensorFlow would have to be filled before the first step.  Here a vocabulary is two
constants: its entries in an order in which they are found by halving, and their places.  Words are
ordered by their hashes, and compared with the one entry that has the same hash, so that the answer
is exact whatever a stranger's words hash to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.errors import UnimplementedError
from penstock.kernels.values.fingerprints import farmhash64, siphash

#: Makes a constant of a name, or finds the one that it has made.
Constant: TypeAlias = Callable[[str, Array], Tensor]
#: A function of words as it is computed here, and as nodes.
Hash: TypeAlias = tuple[Callable[[bytes], int], Callable[[Tensor], Tensor]]

#: Hashes are as wide as a positive int64.
_BUCKETS: Final = 2**63 - 1
#: Keys of SipHash, for vocabularies with two words that FarmHash does not tell apart.
_KEYS: Final = ((1, 2), (3, 5), (8, 13))


@dataclass(frozen=True, slots=True)
class Found:
    """What was looked up."""

    #: Where each is, as int64; some number where it is nowhere.
    place: Tensor
    is_there: Tensor


def find(x: Tensor, entries: Sequence[bytes] | Sequence[int], constant: Constant) -> Found:
    """Look up each element of ``x``, of type string or int64, among ``entries``.

    These are at least one, and no two are equal.  ``constant`` makes the nodes that hold them.

    Raises:
        UnimplementedError: words were chosen to have the same hashes, with every key.

    """
    if x.dtype is not dtypes.string:
        numbers = np.array(entries, np.int64)
        return _find_sorted(x, x, numbers, numbers, constant)
    words = words_array(entries)
    for function, node in _hashes():
        hashes = np.array([function(word) % _BUCKETS for word in words.tolist()], np.int64)
        if len(set(hashes.tolist())) == len(words):
            return _find_sorted(x, node(x), words, hashes, constant)
    raise UnimplementedError(f"{len(words)} words are made so that they cannot be told apart")


def words_array(words: Sequence[Any]) -> Array:
    """Words as numpy has them."""
    array = np.empty(len(words), object)
    array[:] = words
    return array


def _hashes() -> list[Hash]:
    """Functions of words, the fastest first."""
    fast: Hash = farmhash64, partial(ops.string_to_hash_bucket_fast, num_buckets=_BUCKETS)
    strong = [
        (
            partial(siphash, key),
            partial(ops.string_to_hash_bucket_strong, num_buckets=_BUCKETS, key=list(key)),
        )
        for key in _KEYS
    ]
    return [fast, *strong]


def _find_sorted(
    x: Tensor, keys: Tensor, entries: Array, entry_keys: Array, constant: Constant
) -> Found:
    """Look up ``x`` by keys of which no two entries have the same."""
    order = np.argsort(entry_keys, kind="stable")
    by_key = constant("keys", entry_keys[order][None])
    sorted_entries = constant("entries", entries[order])
    places = constant("places", order.astype(np.int64))
    row = ops.lower_bound(by_key, ops.reshape(keys, np.array([1, -1], np.int32)))
    inside = ops.minimum(row, np.int32(len(order) - 1))
    at = ops.reshape(inside, ops.shape(x))
    is_there = ops.equal(ops.gather_v2(sorted_entries, at, 0), x)
    return Found(ops.gather_v2(places, at, 0), is_there)
