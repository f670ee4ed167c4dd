"""Strings, and rows of anything, as numbers.

In:   strings; or a tensor whose rows are taken as bytes.
Out:  buckets; or eight bytes for each row.
Not:  the functions themselves stand in ``fingerprints``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import PLAIN
from penstock.kernels.c.fingerprints import farmhash64_in_c
from penstock.kernels.values.arrays import as_array
from penstock.kernels.values.fingerprints import (
    farmhash64,
    farmhash64_of_each,
    murmurhash64,
    siphash,
)
from penstock.kernels.values.strings import each_to_number

_WORD = 0xFFFFFFFFFFFFFFFF
#: So many texts are worth a call of the library.
_MANY = 8


def _buckets(attrs: Attrs, digest: Callable[[bytes], int]) -> Kernel:
    count = attrs.int("num_buckets")
    return each_to_number(lambda text: digest(text) % count, np.dtype(np.int64))


@kernel("StringToHashBucketFast")
def make_string_to_hash_bucket_fast(attrs: Attrs) -> Kernel:
    """FarmHash's fingerprint, modulo the number of buckets."""
    count = attrs.int("num_buckets")

    def buckets(texts: Value) -> Value:
        if isinstance(texts, bytes):
            return np.int64(farmhash64(texts) % count)
        words = _fingerprints(texts.ravel().tolist())
        return as_value((words % np.uint64(count)).astype(np.int64).reshape(texts.shape))

    return buckets


@kernel("StringToHashBucket")
def make_string_to_hash_bucket(attrs: Attrs) -> Kernel:
    """MurmurHash, modulo the number of buckets."""
    return _buckets(attrs, murmurhash64)


@kernel("StringToHashBucketStrong")
def make_string_to_hash_bucket_strong(attrs: Attrs) -> Kernel:
    """SipHash with the given key, modulo the number of buckets."""
    words = attrs.list("key")
    if len(words) != 2:
        raise InvalidArgumentError("Key must have 2 elements")
    key = words[0] & _WORD, words[1] & _WORD
    return _buckets(attrs, lambda text: siphash(key, text))


@kernel("Fingerprint", types={"T": PLAIN | {dtypes.string}})
def make_fingerprint(attrs: Attrs) -> Kernel:
    """FarmHash's fingerprint of each row; of several strings, that of their fingerprints."""
    is_text = attrs.dtype("T") is dtypes.string

    def fingerprint(data: Value, method: Value) -> Array:
        name = as_array(method).item()
        if name != b"farmhash64":
            raise InvalidArgumentError(
                f"Unsupported fingerprint method: {name.decode('utf-8', 'replace')}"
            )
        array = as_array(data)
        if array.ndim == 0:
            raise InvalidArgumentError("`data` should have at least one dimension: []")
        if is_text:
            rows = _text_rows(array)
        else:
            rows = [row.tobytes() for row in np.ascontiguousarray(array)]
        digests = _fingerprints(rows).astype("<u8", copy=False)
        return digests.view(np.uint8).reshape(len(rows), 8)

    return fingerprint


def _fingerprints(texts: Sequence[bytes]) -> Array:
    """FarmHash's fingerprint of each text, as uint64."""
    found = farmhash64_in_c(texts) if len(texts) >= _MANY else None
    return farmhash64_of_each(texts) if found is None else found


def _text_rows(array: Array) -> list[bytes]:
    """What is hashed for each row of strings."""
    if array.ndim == 1:
        return list(array)
    words = _fingerprints(array.ravel().tolist()).astype("<u8", copy=False)
    return [row.tobytes() for row in words.reshape(len(array), -1 if array.size else 0)]
