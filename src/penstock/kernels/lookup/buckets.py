"""Keys in buckets: where TensorFlow's dense tables put each of them.

In:   keys, as Python's numbers and bytes, or tuples of these.
Out:  the number of the bucket of a key.
Not:  keeps no values; locks nothing.

Open addressing: a key belongs into the bucket that its hash says, or the next one on its way
that is free.  Two keys that nobody else may use mark buckets that were never used, where each
search ends, and those whose key was removed, which may be used again.  A key may so come to
stand in two buckets; the first on its way counts, until it is removed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import numpy as np

from penstock.errors import InternalError, InvalidArgumentError
from penstock.kernels.values.arrays import check_new
from penstock.kernels.values.fingerprints import murmurhash64

_WORD: Final = (1 << 64) - 1
#: The end of a search that meets no bucket that was never used.
_ENDLESS: Final = -1


def hash_of(key: Hashable) -> int:
    """The hash of a key, of 64 bits: integers are their own."""
    if isinstance(key, tuple):
        if len(key) == 1:
            return hash_of(key[0])
        result = 0
        for part in key:
            mixed = hash_of(part) + 0x9E3779B97F4A7800 + (result << 10) + (result >> 4)
            result ^= mixed & _WORD
        return result
    if isinstance(key, bytes):
        return murmurhash64(key)
    assert isinstance(key, int)
    return key & _WORD


class Buckets:
    """A fixed number of buckets, and the key in each."""

    def __init__(self, keys: list[Hashable], empty: Hashable, deleted: Hashable) -> None:
        """Take the buckets over as they are."""
        self.keys: Final = keys
        self._empty: Final = empty
        self._deleted: Final = deleted
        #: Number of buckets with a key, and of those whose key was removed.
        self.used, self._removed = len(keys), 0
        #: The hash of each key, by its bucket.
        self._hash_in: Final[dict[int, int]] = {}
        #: The bucket in which a search for a key ends, by key; None if keys stand where no search
        #: finds them, as may be in buckets that were made elsewhere.
        self._bucket_of: dict[Hashable, int] | None = {}
        self._take_over()

    @classmethod
    def none_used(cls, count: int, empty: Hashable, deleted: Hashable) -> Buckets:
        """So many buckets; raises InvalidArgumentError unless that is a power of two."""
        if count < 4 or count & (count - 1):
            raise InvalidArgumentError(
                f"Number of buckets must be at least 4 and a power of 2, got: {count}"
            )
        check_new((count,), np.dtype(object))
        made = cls([], empty, deleted)
        made.keys.extend([empty] * count)
        return made

    def in_use(self) -> Iterator[tuple[int, Hashable]]:
        """All buckets that have a key."""
        marks = (self._empty, self._deleted)
        return ((at, key) for at, key in enumerate(self.keys) if key not in marks)

    def find_all(self, keys: Sequence[Hashable]) -> list[int]:
        """The bucket of each key; -1 for one that has none."""
        if self._bucket_of is not None and self._has_end:
            get = self._bucket_of.get
            return [get(key, -1) for key in keys]
        found = (self._find(key, "lookup") for key in keys)
        return [-1 if at is None else at for at in found]

    def add(self, key: Hashable) -> int:
        """The bucket of a key, which gets one if it has none."""
        # A bucket that is free again may come earlier on the way than the key's own.
        if self._bucket_of is not None and not self._removed and key in self._bucket_of:
            return self._bucket_of[key]
        return self._add(key, hash_of(key))

    def move_to(self, other: Buckets) -> Iterator[tuple[int, int]]:
        """Put all keys into other buckets; gives the numbers of the old and of the new one."""
        return ((at, other._add(key, self._hash_in[at])) for at, key in self.in_use())

    def remove(self, key: Hashable) -> None:
        """Give up the bucket of a key, if it has one."""
        at = self._find(key, "remove")
        if at is None:
            return
        self.keys[at] = self._deleted
        self.used, self._removed = self.used - 1, self._removed + 1
        if self._bucket_of is not None:
            self._bucket_of.pop(key, None)
            other = self._search(key, self._hash_in[at])
            if other is not None and other != _ENDLESS:
                self._bucket_of[key] = other

    @property
    def _has_end(self) -> bool:
        """Whether there are buckets that were never used."""
        return self.used + self._removed < len(self.keys)

    def _find(self, key: Hashable, purpose: str) -> int | None:
        """The bucket of a key, or None; ``purpose`` stands in the error for an endless search."""
        if self._bucket_of is None:
            found = self._search(key, hash_of(key))
        else:
            found = self._bucket_of.get(key, None if self._has_end else _ENDLESS)
        if found == _ENDLESS:
            raise InternalError(f"Internal error in MutableDenseHashTable {purpose}")
        return found

    def _add(self, key: Hashable, hashed: int) -> int:
        for at in self._way(hashed):
            there = self.keys[at]
            if there == key:
                return at
            if there in (self._empty, self._deleted):
                self.keys[at], self._hash_in[at] = key, hashed
                self.used, self._removed = self.used + 1, self._removed - (there == self._deleted)
                if self._bucket_of is not None:
                    self._bucket_of[key] = at
                return at
        raise InternalError("Internal error in MutableDenseHashTable insert")

    def _search(self, key: Hashable, hashed: int) -> int | None:
        """The bucket of a key, None if there is none, or ``_ENDLESS``."""
        for at in self._way(hashed):
            if self.keys[at] == key:
                return at
            if self.keys[at] == self._empty:
                return None
        return _ENDLESS

    def _way(self, hashed: int) -> Iterator[int]:
        """The buckets in which a key may stand, in order; the steps grow by one."""
        count = len(self.keys)
        at = hashed & (count - 1)
        for step in range(1, count + 1):
            yield at
            at = (at + step) & (count - 1)

    def _take_over(self) -> None:
        """Count keys, and note where each is, if each is where it is looked for."""
        self._hash_in.update((at, hash_of(key)) for at, key in self.in_use())
        self.used = len(self._hash_in)
        self._removed = sum(key == self._deleted for key in self.keys)
        found = {key: self._search(key, self._hash_in[at]) for at, key in self.in_use()}
        # If there are as many buckets as there should be, each way comes to all of them.
        is_whole = not len(self.keys) & (len(self.keys) - 1) and all(
            found[key] == at for at, key in self.in_use()
        )
        self._bucket_of = {key: at for at, key in self.in_use()} if is_whole else None
