"""Tables as rows of buckets, two keys of which mark those that are not in use.

In:   keys and values, as arrays; or all buckets of such a table, as it exported them.
Out:  values of keys; all buckets, in TensorFlow's order.
Not:  knows no handles and no graph.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Final

import numpy as np

from penstock.core import dtypes, trees
from penstock.core.trees import Tree
from penstock.core.values import Array, ResourceHandle, Value, as_value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.lookup.buckets import Buckets
from penstock.kernels.lookup.lookup_tables import LookupTable, TableSpec
from penstock.kernels.values.arrays import as_array, check_new, full, shape_text, zeros
from penstock.kernels.values.variants import EMPTY

#: Buckets for which there is no memory anywhere.
_TOO_MANY: Final = 1 << 60
#: How many a table has at least when it is made.
_FEWEST: Final = 4


class DenseTable(LookupTable):
    """A table in which each key has a bucket; there are more of them when most are in use."""

    def __init__(
        self,
        name: str,
        spec: TableSpec,
        marks: tuple[Array, Array | None],
        bucket_count: int,
        max_load: float,
    ) -> None:
        """Make an empty table.

        Args:
            name: what others find it by.
            spec: what it is.
            marks: the keys of buckets that were never used, and that are free again.
            bucket_count: how many buckets there are at first; a power of two.
            max_load: how much of them may be in use.

        """
        super().__init__(name, spec)
        if len(spec.value_shape) > 1 or len(spec.key_shape) > 1:
            what = "key" if len(spec.key_shape) > 1 else "value"
            shape = spec.key_shape if len(spec.key_shape) > 1 else spec.value_shape
            raise InvalidArgumentError(
                f"Empty {what} must be a scalar or a vector, got shape {shape_text(shape)}"
            )
        empty, deleted = (None if mark is None else self.listed_keys(mark)[0] for mark in marks)
        #: The same keys as they were given.
        self._given_marks: Final = marks
        #: Keys that nobody may use, and what they are called.
        self._marks: Final = {empty: "empty_key", deleted: "deleted_key"}
        self._empty: Final[Hashable] = empty
        self._deleted: Final[Hashable] = deleted
        self._max_load: Final = np.float32(max_load)
        #: Guards all that follows.  Innermost.
        self._lock = Lock()
        #: Keys by bucket.
        self._buckets = Buckets.none_used(bucket_count, empty, deleted)
        #: Values, a row for each bucket; those of unused ones mean nothing.
        self._rows = self._no_rows(bucket_count)

    def state(self) -> Tree:
        """What it is, the keys that mark buckets, how full they may be, and all buckets."""
        return self.spec.state(), *self._given_marks, float(self._max_load), *self.export()

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> DenseTable:  # noqa: ARG003
        """The table that had a state."""
        kind, empty, deleted, load, keys, rows = trees.parts(state, 6)
        spec = TableSpec.of_state(kind)
        marks = (
            as_array(trees.value(empty, spec.key_dtype)),
            None if deleted is None else as_array(trees.value(deleted, spec.key_dtype)),
        )
        if any(mark is not None and mark.shape != spec.key_shape for mark in marks):
            trees.refuse("a mark that is no key")
        if type(load) is not float or not 0 < load < 1:
            trees.refuse("no share of buckets that may be in use")
        listed = as_array(trees.value(keys, spec.key_dtype))
        made = cls(name, spec, marks, _FEWEST, load)
        made.replace(listed, trees.value(rows, spec.value_dtype))
        return made

    @property
    def size(self) -> int:
        """Number of keys."""
        return self._buckets.used

    def find(self, keys: Value, default: Value) -> Value:
        """Values of the keys; the first default for keys that are not there."""
        batch = self.batch_shape(keys)
        self.check_default(batch, default)
        wanted = self._listed(keys)
        for mark, what in self._marks.items():
            if mark in wanted:
                raise _unusable(what)
        with self._lock:
            places = np.array(self._buckets.find_all(wanted), np.int64)
            rows = self._rows[places] if len(self._rows) else self._no_rows(0)
        if places.size and places.min() < 0:
            rows[places < 0] = as_array(default).reshape(-1)[: rows.shape[1]]
        return as_value(rows.reshape((*batch, *self.spec.value_shape)))

    def insert(self, keys: Value, values: Value) -> None:
        """Set the values of keys, up to the first that nobody may use."""
        self.check_values(keys, values)
        wanted = self._listed(keys)
        rows = as_array(values).reshape(len(wanted), -1)
        with self._lock:
            self._make_room(len(wanted))
            places: list[int] = []
            try:
                for key in wanted:
                    if key in self._marks:
                        raise _unusable(self._marks[key])
                    places.append(self._buckets.add(key))
            finally:
                self._rows[places] = rows[: len(places)]

    def remove(self, keys: Value) -> None:
        """Drop keys, up to the first that nobody may use."""
        self.batch_shape(keys)
        with self._lock:
            for key in self._listed(keys):
                if key in self._marks:
                    raise _unusable(self._marks[key])
                self._buckets.remove(key)

    def replace(self, keys: Value, values: Value) -> None:
        """Take over the buckets that another table exported, wherever they come from."""
        width, given = self._rows.shape[1], shape_of(keys)
        if shape_of(values) != (*given[:-1], width):
            raise InvalidArgumentError(
                f"Expected shape {shape_text((*given[:-1], width))} for value, "
                f"got {shape_text(shape_of(values))}"
            )
        if len(given) != 2 or given[1] != self._key_width:
            raise InvalidArgumentError(
                f"Expected a row of {self._key_width} for each bucket, got keys of shape "
                f"{shape_text(given)}"
            )
        buckets = Buckets(self.listed_keys(keys), self._empty, self._deleted)
        with self._lock:
            self._buckets, self._rows = buckets, np.array(values)

    def export(self) -> tuple[Array, Array]:
        """A row for each bucket, used or not."""
        with self._lock:
            listed, rows = list(self._buckets.keys), self._rows.copy()
        keys = np.empty((len(listed), self._key_width), self.spec.key_dtype.numpy)
        if listed:
            keys[:] = listed if self.spec.key_shape else [[key] for key in listed]
        return keys, rows

    @property
    def _key_width(self) -> int:
        return self.spec.key_shape[0] if self.spec.key_shape else 1

    def _listed(self, keys: Value) -> list[Hashable]:
        """The keys in a batch, which may be a vector of them, or a single one."""
        shape, count = shape_of(keys), self._key_width
        batch = shape[0] if shape else 1
        if as_array(keys).size != batch * count:
            raise InvalidArgumentError(
                f"Expected key shape {shape_text((batch, *self.spec.key_shape))} "
                f"got {shape_text(shape)}"
            )
        return self.listed_keys(keys)

    def _make_room(self, new: int) -> None:
        """Double the buckets until so many more keys, were they all new, would not be too many."""
        old = self._buckets
        wanted, count = np.float32(old.used + new), max(len(old.keys), 1)
        while wanted > np.float32(count) * self._max_load and count < _TOO_MANY:
            count *= 2
        if count == max(len(old.keys), 1):
            return
        buckets = Buckets.none_used(count, self._empty, self._deleted)
        rows = self._no_rows(count)
        moves = list(old.move_to(buckets))
        rows[[place for _, place in moves]] = self._rows[[at for at, _ in moves]]
        self._buckets, self._rows = buckets, rows

    def _no_rows(self, count: int) -> Array:
        """Rows of buckets that are not used."""
        dtype, width = self.spec.value_dtype, (*self.spec.value_shape, 1)[0]
        check_new((count, width), dtype.numpy)
        if dtype is dtypes.variant:
            return full((count, width), EMPTY, dtype.numpy)
        if dtype is dtypes.resource:
            return full((count, width), ResourceHandle("", "", "", ""), dtype.numpy)
        return zeros((count, width), dtype)


def _unusable(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Using the {what} as a table key is not allowed")
