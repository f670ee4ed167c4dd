"""Records of all files that fit a pattern, in an order that looks random, again and again.

In:   a pattern, and how to mix.
Out:  batches of records.
Not:  the format of the files stands in ``readers``.

Each epoch shuffles the files, deals them to so many shards, and puts the records of each shard
into a buffer at random places, from whose end they are taken.  TensorFlow reads the shards at the
same time, and its files come in the order of their folder; here one shard follows the other, and
files are sorted, so that the same seed always gives the same records.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from threading import Lock
from typing import Final

from penstock.core.files import FileSystem
from penstock.core.values import Value
from penstock.errors import InvalidArgumentError, NotFoundError, OutOfRangeError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Kernel, context_kernel
from penstock.kernels.io.readers import Format, tf_records
from penstock.kernels.random.twister import shuffled, twister
from penstock.kernels.values.fingerprints import murmurhash64
from penstock.kernels.values.strings import string_array

_KIND: Final = "RecordInput"
#: So many records are read before the first of them goes into the buffer.
_AT_ONCE: Final = 16


@context_kernel("RecordInput")
def make_record_input(attrs: Attrs) -> Kernel:
    """The next batch of records; the node goes on from run to run."""
    size, name = attrs.int("batch_size"), attrs.node_name
    method = attrs.str("compression_type")
    method = method if method in ("GZIP", "ZLIB") else ""
    sizes = attrs.int("file_parallelism"), attrs.int("file_buffer_size")
    if min(sizes) < 1 or size < 0:
        raise InvalidArgumentError(
            "RecordInput needs file_parallelism and file_buffer_size of at least 1 and no "
            f"negative batch_size, got {sizes[0]}, {sizes[1]} and {size}"
        )
    ratio, seed = attrs.float("file_shuffle_shift_ratio"), attrs.int("file_random_seed")
    files, pattern = attrs.host.files, attrs.str("file_pattern")

    def create() -> RecordInput:
        order = _Order(files, pattern, seed, ratio)
        return RecordInput(order, tf_records(files, method), *sizes)

    def record_input(context: OpKernelContext) -> Value:
        found: RecordInput = context.resources.lookup_or_create("", name, _KIND, create)
        return string_array(found.take(size), (size,))

    return record_input


class _Order:
    """Which files there are, in the order of an epoch."""

    def __init__(self, files: FileSystem, pattern: str, seed: int, ratio: float) -> None:
        self._files: Final = files
        self._pattern: Final = pattern
        self.seed: Final = seed
        self._ratio: Final = ratio

    def of(self, epoch: int) -> list[str]:
        """The files' names; raises NotFoundError if there are none."""
        names = self._files.matching(self._pattern)
        if not names:
            raise NotFoundError(f"Found no files at {self._pattern}")
        words = twister(murmurhash64(epoch.to_bytes(8, "little"), self.seed))
        names = shuffled(names, words)
        shift = int(self._ratio * len(names)) if 0 <= self._ratio < 1 else 0
        return names[shift:] + names[:shift]


class RecordInput:
    """Records that wait in a buffer, and what fills it."""

    def __init__(self, order: _Order, read: Format, shards: int, room: int) -> None:
        """``room`` is how many records may wait, ``shards`` how the files are dealt out."""
        self._order: Final = order
        self._read: Final = read
        self._shards: Final = shards
        self._room: Final = room
        self._words: Final = twister(order.seed)
        #: Guards what follows.  Files are read under it, by one thread at a time.
        self._lock = Lock()
        self._buffer: list[bytes] = []
        #: Whether an epoch has been read to its end.
        self._is_whole = False
        self._filling = self._fill()
        #: What ended it, for all who come after.
        self._failure: Exception | None = None

    def take(self, number: int) -> list[bytes]:
        """The next so many records; raises OpError if there are no more."""
        with self._lock:
            return [self._next() for _ in range(number)]

    def _next(self) -> bytes:
        # Unless nothing else comes, a buffer that is half empty would mix too little.
        while not self._buffer or (
            not self._is_whole and len(self._buffer) < max(1, self._room // 2)
        ):
            if self._failure is not None:
                raise self._failure
            try:
                next(self._filling)
            except Exception as failure:
                self._failure = failure
                raise
        return self._buffer.pop()

    def _fill(self) -> Iterator[None]:
        """Fill the buffer; stops whenever it is full, and at the end of each epoch."""
        for epoch in count(1):
            names, has_some = self._order.of(epoch), False
            for shard in range(self._shards):
                for _ in self._fill_with(names[shard :: self._shards]):
                    has_some = True
                    yield
            if not has_some:
                raise OutOfRangeError("No file has a record: there is nothing to repeat")
            self._is_whole = True
            while self._buffer:
                yield
            self._is_whole = False

    def _fill_with(self, names: list[str]) -> Iterator[None]:
        """Put the records of some files into the buffer; stops after each time."""
        records: list[bytes] = []
        for name in names:
            for _, record in self._read(name):
                records.append(record)
                if len(records) >= _AT_ONCE:
                    yield from self._add(records)
        while records:
            yield from self._add(records)

    def _add(self, records: list[bytes]) -> Iterator[None]:
        """Move the last records to random places in the buffer, as many as there is room for."""
        while len(self._buffer) >= self._room:
            yield
        while records and len(self._buffer) < self._room:
            place = next(self._words) % (len(self._buffer) + 1)
            self._buffer.append(records[-1])
            self._buffer[place], self._buffer[-1] = records.pop(), self._buffer[place]
        yield
