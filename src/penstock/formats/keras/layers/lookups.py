"""Words and numbers by their place in a vocabulary, and back.

A vocabulary stands in the layer's settings, or, if it was learned, in a file of the archive.  What
is looked up takes no state: see ``tables``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.builder import control_dependencies, ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.errors import NotFoundError
from penstock.formats.keras.config import EXPORT, Config, is_whole, shown
from penstock.formats.keras.layer import Layer, Weight, layer
from penstock.formats.keras.layers.categories import (
    ENCODED,
    encoded,
    encoded_rows,
    hashed,
    mode_of,
    salt_of,
)
from penstock.formats.keras.rows import Rows
from penstock.formats.keras.symbol import Symbol
from penstock.formats.keras.tables import find, words_array

#: The file of an archive with a vocabulary that was learned.
VOCABULARY: Final = "vocabulary.txt"
MODES: Final = ("int", *ENCODED, "tf_idf")
#: A number that is in no category.
_NOWHERE: Final = np.iinfo(np.int64).max
_OUTSIDE: Final = (
    "When `num_oov_indices=0` all inputs should be in vocabulary, "
    "consider setting `num_oov_indices=1`."
)


def idf_weights(config: Config) -> list[Weight]:
    """How rare each entry is, where that counts."""
    return (
        [Weight("idf_weights", is_named=True)] if mode_of(config, MODES, "int") == "tf_idf" else []
    )


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a vocabulary's layer says of it."""

    layer: Layer
    mode: str
    #: Whether the entries are words, not numbers.
    is_text: bool
    #: The entry that stands for nothing, and the one that stands for all unknown ones.
    mask: bytes | int | None
    unknown: bytes | int | None
    #: How many buckets there are for unknown entries.
    buckets: int

    @property
    def config(self) -> Config:
        """The layer's description."""
        return self.layer.config

    @property
    def first_bucket(self) -> int:
        """The number of the first unknown entry; in other forms than ``int`` there is no mask."""
        return int(self.mask is not None and self.mode == "int")

    @property
    def first(self) -> int:
        """The number of the first entry of the vocabulary."""
        return self.first_bucket + self.buckets

    def entries(self) -> tuple[list[Any], bool]:
        """The vocabulary, and whether marks stood before it."""
        given = self._given()
        marks = [self.mask] * self.first_bucket + [self.unknown] * self.buckets
        has_marks = given[: self.first] == marks
        entries = given[self.first :] if has_marks else given
        if not entries:
            raise self.config.error("its vocabulary is empty")
        if len(set(entries)) != len(entries) or self.mask in entries:
            raise self.config.error("its vocabulary has an entry twice")
        return entries, has_marks

    def _given(self) -> list[Any]:
        value = self.config.settings.get("vocabulary")
        if isinstance(value, str):
            raise self.config.unsupported("a vocabulary in a file outside of the model")
        if isinstance(value, dict):  # a tuple or an array, as Keras writes it
            inner = value.get("config")
            value = inner.get("value") if isinstance(inner, dict) else value.get("items")
        if value is None:
            return self._learned()
        items = value if isinstance(value, list) else [value]
        return [entry_of(self.config, item, is_text=self.is_text) for item in items]

    def _learned(self) -> list[Any]:
        content = self.layer.assets.get(VOCABULARY)
        if content is None:
            raise NotFoundError(
                f"{self.config}: the file has no vocabulary of it",
                next_step="save the model as .keras: HDF5 files do not hold what such layers learn"
                f"; or {EXPORT}",
            )
        lines = content.replace(b"\r\n", b"\n").split(b"\n")
        # The empty word may be the last one; who has written the file says how many there are.
        size = self.config.settings.get("vocabulary_size")
        while isinstance(size, int) and len(lines) > size and not lines[-1]:
            lines.pop()
        if self.is_text:
            return lines
        try:
            return [int(line) for line in lines]
        except ValueError:
            raise self.config.error("its vocabulary has a line that is no number") from None

    # -- as nodes ----------------------------------------------------------------------------

    def numbers(self, x: Tensor) -> Tensor:
        """The number of each element, as int64."""
        entries, _ = self.entries()
        found = find(x, entries, self.layer.kept_as_is)
        place = found.place + np.int64(self.first)
        known = found.is_there
        if self.mask is None:
            return self._with_unknown(x, known, place, known)
        is_mask = ops.equal(x, ops.constant(self._key(self.mask)))
        nothing = np.int64(0 if self.mode == "int" else _NOWHERE)
        made = self._with_unknown(x, known, place, ops.logical_or(known, is_mask))
        return ops.select_v2(is_mask, nothing, made)

    def _with_unknown(self, x: Tensor, known: Tensor, place: Tensor, meant: Tensor) -> Tensor:
        if self.buckets == 0:
            everything = ops.all(ops.reshape(meant, np.array([-1], np.int32)), [0])
            check = ops.assert_(everything, [ops.constant(_OUTSIDE.encode())])  # noqa: PT009
            with control_dependencies([check]):
                return ops.identity(place)
        bucket: Any = np.int64(self.first_bucket)
        if self.buckets > 1:
            bucket = self._bucket(x) + bucket
        return ops.select_v2(known, place, bucket)

    def _bucket(self, x: Tensor) -> Tensor:
        by_rest = self.config.text("oov_method", "floormod") != "farmhash"
        if not self.is_text and by_rest:
            return ops.floor_mod(x, np.int64(self.buckets))
        return hashed(x if self.is_text else ops.as_string(x), self.buckets, salt_of(self.config))

    def entries_at(self, numbers: Tensor) -> Tensor:
        """The entry of each number: the way back."""
        entries, _ = self.entries()
        if self.unknown is None:
            raise self.config.error("'oov_token' is missing")
        place = numbers - np.int64(self.first)
        last = np.int64(len(entries) - 1)
        is_there = ops.logical_and(place >= np.int64(0), place <= last)
        inside = ops.maximum(ops.minimum(place, last), np.int64(0))
        array = words_array(entries) if self.is_text else np.array(entries, np.int64)
        found = ops.gather_v2(self.layer.kept_as_is("vocabulary", array), inside, 0)
        made = ops.select_v2(is_there, found, ops.constant(self._key(self.unknown)))
        if self.mask is None:
            return made
        is_mask = ops.equal(numbers, np.int64(0))
        return ops.select_v2(is_mask, ops.constant(self._key(self.mask)), made)

    def _key(self, entry: bytes | int) -> Any:
        return entry if self.is_text else np.int64(entry)

    # -- other forms -------------------------------------------------------------------------

    @property
    def depth(self) -> int:
        """The width of rows with a place for each entry."""
        if self.config.flag("pad_to_max_tokens", default=False):
            return self.config.integer("max_tokens", at_least=1)
        return self.first + len(self.entries()[0])

    def encoded(self, numbers: Symbol) -> Symbol:
        """What the numbers are in the layer's form."""
        mode, dtype = self._counting()
        made = encoded(self.config, numbers, mode, self.depth, dtype)
        return made if self.mode != "tf_idf" else made.made(made.tensor * self._idf())

    def encoded_rows(self, numbers: Rows) -> Tensor:
        """The same of rows of different lengths."""
        mode, dtype = self._counting()
        made = encoded_rows(numbers, mode, self.depth, dtype)
        return made if self.mode != "tf_idf" else made * self._idf()

    def _counting(self) -> tuple[str, DType]:
        """In which form, and as what, entries are counted before they have weights."""
        if self.mode == "tf_idf":
            return "count", dtypes.float32
        return self.mode, dtypes.int64 if self.config.is_keras_3 else dtypes.float32

    def _idf(self) -> Tensor:
        weights = self.layer.arrays.get("idf_weights")
        if weights is None:
            weights = self._given_idf()
        if weights.shape != (self.depth,):
            raise self.config.error(f"it has {weights.size} weights for {self.depth} entries")
        return self.layer.kept_as_is("idf_weights", weights.astype(np.float32))

    def _given_idf(self) -> Array:
        """Weights of the settings; unknown entries are as rare as the others on average."""
        try:
            given = np.array(self.config.items("idf_weights"), np.float64)
        except (TypeError, ValueError):
            raise self.config.error("'idf_weights' must be numbers") from None
        _, has_marks = self.entries()
        before = 0 if has_marks else self.first
        after = max(self.depth - before - len(given), 0)
        return np.pad(given, (before, after), constant_values=(given.mean() if before else 0, 0))


def entry_of(config: Config, value: Any, *, is_text: bool) -> Any:
    """An entry of a vocabulary in a layer's settings."""
    if is_text and isinstance(value, str):
        return value.encode("utf-8", "replace")
    if not is_text and is_whole(value) and -(2**63) <= value < 2**63:
        return int(value)
    raise config.error(f"its vocabulary has {shown(value)}")


def lookup_of(self: Layer, *, is_text: bool) -> Lookup:
    """What a lookup layer says of its vocabulary."""
    config = self.config

    def mark(key: str) -> Any:
        value = config.get(key, None)
        return None if value is None else entry_of(config, value, is_text=is_text)

    return Lookup(
        self,
        mode_of(config, MODES, "int"),
        is_text,
        mark("mask_token"),
        mark("oov_token"),
        config.integer("num_oov_indices", 1),
    )


@layer("StringLookup", "IntegerLookup", weights=idf_weights, converts=False, assets=(VOCABULARY,))
def lookup(self: Layer, x: Symbol) -> Symbol:
    """The number of each word or number, rows that say which are there, or the way back."""
    is_text = self.config.class_name == "StringLookup"
    table = lookup_of(self, is_text=is_text)
    wanted = dtypes.string if is_text else dtypes.int64
    if self.config.flag("invert", default=False):
        return x.made(table.entries_at(_typed(self.config, x.tensor, dtypes.int64)))
    numbers = x.made(table.numbers(_typed(self.config, x.tensor, wanted)))
    if table.mode == "int":
        return numbers
    return table.encoded(numbers)


def _typed(config: Config, x: Tensor, wanted: Any) -> Tensor:
    if x.dtype is wanted:
        return x
    if dtypes.string in (x.dtype, wanted):
        raise config.error(f"it takes {wanted}, and gets {x.dtype}")
    return ops.cast(x, wanted)
