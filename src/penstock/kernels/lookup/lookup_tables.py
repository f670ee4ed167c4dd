"""Tables from keys to values.

In:   keys and values, as arrays.
Out:  values of keys, a default for those that are not there; everything, for export.
Not:  knows no handles and no graph.

Keys are kept as Python's own numbers and bytes, since these can be hashed fast; values as
they are, or as rows of arrays if one value has several elements.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from threading import Lock
from typing import Any, Final, Self

import numpy as np

from penstock.advice import InitializeIt
from penstock.core import trees
from penstock.core.dtypes import DType
from penstock.core.trees import Tree
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.dataclass import dataclass
from penstock.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from penstock.kernels.values.arrays import as_array, shape_text


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """What a table is; two nodes that share a table must agree on the types."""

    kind: str
    key_dtype: DType
    value_dtype: DType
    key_shape: tuple[int, ...] = ()
    value_shape: tuple[int, ...] = ()

    def state(self) -> Tree:
        """All of it, as a tree."""
        types = self.key_dtype.name, self.value_dtype.name
        return self.kind, *types, self.key_shape, self.value_shape

    @classmethod
    def of_state(cls, state: Tree) -> TableSpec:
        """What a tree says."""
        kind, keys, values, key_shape, value_shape = trees.parts(state, 5)
        return cls(
            kind=trees.text(kind),
            key_dtype=trees.dtype_named(keys),
            value_dtype=trees.dtype_named(values),
            key_shape=tuple(map(trees.number, trees.listed(key_shape))),
            value_shape=tuple(map(trees.number, trees.listed(value_shape))),
        )


class LookupTable(ABC):
    """A table; safe to use from several threads."""

    def __init__(self, name: str, spec: TableSpec) -> None:
        self.name: Final = name
        self.spec: Final = spec

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of keys."""

    @abstractmethod
    def find(self, keys: Value, default: Value) -> Value:
        """Values of the keys; the default, or its part, for keys that are not there."""

    @abstractmethod
    def insert(self, keys: Value, values: Value) -> None:
        """Set the values of keys."""

    @abstractmethod
    def remove(self, keys: Value) -> None:
        """Drop keys; those that are not there do no harm."""

    @abstractmethod
    def replace(self, keys: Value, values: Value) -> None:
        """Forget everything, and take over what a table exported."""

    @abstractmethod
    def export(self) -> tuple[Array, Array]:
        """All keys, and their values in the same order."""

    def initialize(self, container: str, keys: Value, values: Value) -> None:
        """Fill the table with arrays; refuses unless it is one that is filled once."""
        self.fill(container, keys, values)

    def fill(self, container: str, keys: Value, values: Value) -> None:  # noqa: ARG002
        """Fill the table from a file or a dataset; refuses unless it is one that is filled once."""
        raise InvalidArgumentError(f"Table {container} {self.name} is not initializable")

    # -- between arrays and Python's own objects -----------------------------------------

    def batch_shape(self, keys: Value) -> tuple[int, ...]:
        """The shape of ``keys`` without that of a single key."""
        shape, one = shape_of(keys), self.spec.key_shape
        if one and shape[-len(one) :] != one:
            raise InvalidArgumentError(
                f"Input key shape {shape_text(shape)} must end with the table's key shape "
                f"{shape_text(one)}"
            )
        return shape[: len(shape) - len(one)]

    def listed_keys(self, keys: Value) -> list[Hashable]:
        """Keys as numbers and bytes, or tuples of these."""
        array = as_array(keys)
        if self.spec.key_shape:
            rows = array.reshape(-1, *self.spec.key_shape)
            return [tuple(row.ravel().tolist()) for row in rows]
        flat: list[Hashable] = array.ravel().tolist()
        return flat

    def check_values(self, keys: Value, values: Value) -> None:
        """Raise InvalidArgumentError unless there is a value of the right shape for each key."""
        expected = (*self.batch_shape(keys), *self.spec.value_shape)
        if shape_of(values) != expected:
            raise InvalidArgumentError(
                f"Expected shape {shape_text(expected)} for value, "
                f"got {shape_text(shape_of(values))}"
            )

    def check_default(self, batch: tuple[int, ...], default: Value) -> None:
        """Raise InvalidArgumentError unless a default is one value, or one for each key."""
        one, given = self.spec.value_shape, shape_of(default)
        if given not in (one, (*batch, *one)):
            raise InvalidArgumentError(
                f"Expected shape {shape_text(one)} or {shape_text((*batch, *one))} "
                f"for default value, got {shape_text(given)}"
            )


class MutableTable(LookupTable):
    """A table that can be changed."""

    #: Whether a default for each key is heeded; other tables take the first one for all.
    has_default_per_key = True

    def __init__(self, name: str, spec: TableSpec) -> None:
        super().__init__(name, spec)
        #: Held while ``_items`` changes or is walked through; looking one key up needs no lock.
        self._lock = Lock()
        #: Values by key.
        self._items: dict[Hashable, Any] = {}

    def state(self) -> Tree:
        """What it is, and what it exports."""
        return self.spec.state(), *MutableTable.export(self)

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> Self:  # noqa: ARG003
        """The table that had a state."""
        spec, keys, values = trees.parts(state, 3)
        made = cls(name, TableSpec.of_state(spec))
        made._items = made._items_in(keys, values)
        return made

    def _items_in(self, keys: Tree, values: Tree) -> dict[Hashable, Any]:
        wanted = trees.value(keys, self.spec.key_dtype)
        return dict(self._pairs(wanted, trees.value(values, self.spec.value_dtype)))

    @property
    def size(self) -> int:
        """Number of keys."""
        return len(self._items)

    def find(self, keys: Value, default: Value) -> Value:
        """Values of the keys; the default, or its part, for keys that are not there."""
        spec, get = self.spec, self._items.get
        batch, given = self.batch_shape(keys), shape_of(default)
        self.check_default(batch, default)
        wanted = self.listed_keys(keys)
        if given != spec.value_shape and not self.has_default_per_key:
            default = default[(0,) * len(batch)] if wanted else None
            given = spec.value_shape
        if given == spec.value_shape:
            one = default if spec.value_shape else _plain(default)
            found = [get(key, one) for key in wanted]
        else:
            found = [get(*pair) for pair in zip(wanted, self._values(default), strict=True)]
        return as_value(self._rows(found).reshape((*batch, *spec.value_shape)))

    def insert(self, keys: Value, values: Value) -> None:
        """Set the values of keys."""
        new = dict(self._pairs(keys, values))
        with self._lock:
            self._items.update(new)

    def remove(self, keys: Value) -> None:
        """Drop keys; those that are not there do no harm."""
        with self._lock:
            for key in self.listed_keys(keys):
                self._items.pop(key, None)

    def replace(self, keys: Value, values: Value) -> None:
        """Forget everything, and set these values."""
        new = dict(self._pairs(keys, values))
        with self._lock:
            self._items = new

    def export(self) -> tuple[Array, Array]:
        """All keys, and their values in the same order."""
        with self._lock:
            items = dict(self._items)
        keys = np.empty(len(items), self.spec.key_dtype.numpy)
        keys[:] = list(items)
        return keys, self._rows(list(items.values()))

    def _values(self, values: Value) -> Iterable[Any]:
        array = as_array(values)
        if self.spec.value_shape:
            return iter(array.reshape(-1, *self.spec.value_shape))
        flat: list[Any] = array.ravel().tolist()
        return flat

    def _pairs(self, keys: Value, values: Value) -> Iterable[tuple[Hashable, Any]]:
        self.check_values(keys, values)
        # What is kept must not change when the arrays it came from do.
        kept = values.copy() if self.spec.value_shape else values
        return zip(self.listed_keys(keys), self._values(kept), strict=True)

    def _rows(self, values: list[Any]) -> Array:
        """Values as one array, a row for each."""
        rows = np.empty((len(values), *self.spec.value_shape), self.spec.value_dtype.numpy)
        if values:
            rows[:] = values
        return rows


def _plain(scalar: Value) -> Any:
    return scalar.item() if isinstance(scalar, (np.generic, np.ndarray)) else scalar


class StaticTable(MutableTable):
    """A table that is filled once, and fixed from then on."""

    has_default_per_key = False

    def __init__(self, name: str, spec: TableSpec) -> None:
        super().__init__(name, spec)
        #: Whether the table was filled.  Never becomes False again.
        self.is_initialized = False

    def state(self) -> Tree:
        """What it is, what it holds, and whether it was filled."""
        return *super().state(), self.is_initialized

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> Self:
        """The table that had a state."""
        *rest, is_filled = trees.parts(state, 4)
        made = super().of_state(name, tuple(rest), there)
        made.is_initialized = trees.flag(is_filled)
        return made

    def find(self, keys: Value, default: Value) -> Value:
        """Values of the keys, once there are any."""
        if not self.is_initialized:
            raise FailedPreconditionError("Table not initialized.", next_step=InitializeIt("table"))
        return super().find(keys, default)

    def insert(self, keys: Value, values: Value) -> None:  # noqa: ARG002
        """Refuse."""
        raise UnimplementedError("Insert not supported by InitializableLookupTable implementations")

    def remove(self, keys: Value) -> None:  # noqa: ARG002
        """Refuse."""
        raise UnimplementedError("Remove not supported by InitializableLookupTable implementations")

    def replace(self, keys: Value, values: Value) -> None:
        """Fill the table; one that is filled already stays as it is.

        Raises:
            FailedPreconditionError: as many elements as are given are not in it.

        """
        # TensorFlow compares nothing else, and counts repeated keys each time.
        if not self._is_filled_by(keys, values) and np.size(keys) != self.size:
            raise FailedPreconditionError(
                "Table was already initialized with different data.",
                next_step=f"it has {self.size} elements, not {np.size(keys)}; fill it once",
            )

    def initialize(self, container: str, keys: Value, values: Value) -> None:  # noqa: ARG002
        """Fill the table like ``replace``."""
        self.replace(keys, values)

    def fill(self, container: str, keys: Value, values: Value) -> None:  # noqa: ARG002
        """Fill the table; one that is filled already stays as it is."""
        self._is_filled_by(keys, values)

    def _is_filled_by(self, keys: Value, values: Value) -> bool:
        """Fill the table unless it is filled already; returns whether it was not."""
        if shape_of(keys) and not keys.size:
            raise InvalidArgumentError("keys and values cannot be empty tensors.")
        new = self._pairs(keys, values)
        with self._lock:
            if self.is_initialized:
                return False
            self._items = _without_conflicts(new)
            self.is_initialized = True
        return True

    def export(self) -> tuple[Array, Array]:
        """All keys, and their values in the same order."""
        if not self.is_initialized:
            raise AbortedError("HashTable is not initialized.")
        return super().export()


def _without_conflicts(pairs: Iterable[tuple[Hashable, Any]]) -> dict[Hashable, Any]:
    items: dict[Hashable, Any] = {}
    for key, value in pairs:
        if items.setdefault(key, value) != value:
            raise FailedPreconditionError(
                f"HashTable has different value for same key. Key {_shown(key)} has "
                f"{_shown(items[key])} and trying to add value {_shown(value)}"
            )
    return items


def _shown(item: object) -> str:
    return item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item)
