"""Texts as numbers of their words."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.errors import UnimplementedError
from penstock.formats.keras.config import EXPORT, Config, is_whole
from penstock.formats.keras.layer import Layer, layer
from penstock.formats.keras.layers.categories import mode_of
from penstock.formats.keras.layers.lookups import (
    MODES,
    VOCABULARY,
    Lookup,
    idf_weights,
)
from penstock.formats.keras.rows import Rows, joined, split_at_spaces, split_characters
from penstock.formats.keras.symbol import Symbol, pack

#: ASCII's punctuation, as a set of RE2.
_PUNCTUATION: Final = r"""[!"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~']"""
_STANDARDS: Final = ("lower_and_strip_punctuation", "lower", "strip_punctuation")
#: No text is looked at in longer pieces.
_WIDEST: Final = 1000


@layer("TextVectorization", weights=idf_weights, converts=False, assets=(VOCABULARY,))
def text_vectorization(self: Layer, x: Symbol) -> Symbol:
    """The words of each text as numbers, or which of them are there, or how often."""
    config = self.config
    if config.flag("ragged", default=False):
        raise config.unsupported("rows of different lengths as its output")
    mode = mode_of(config, MODES, "int")
    table = Lookup(self, mode, is_text=True, mask=b"", unknown=b"[UNK]", buckets=1)
    texts = _standard(config, x.tensor)
    if _choice(config, "split", ("whitespace", "character")) is None:
        return _without_split(table, x.made(texts))
    rows = _split(config, x, texts)
    numbers = rows.with_values(table.numbers(rows.values))
    if table.mode == "int":
        return _matrix(config, x, numbers)
    if table.mode == "one_hot" or x.rank > 2:
        raise config.unsupported(f"'{table.mode}' of words in {x.rank} dimensions")
    return x.made(table.encoded_rows(numbers), (x.shape[0], table.depth))


def _choice(config: Config, key: str, choices: tuple[str, ...]) -> str | None:
    """One of some words, or None; by default the first."""
    if key in config.settings and config.settings[key] is None:
        return None
    if isinstance(config.settings.get(key), dict):
        raise UnimplementedError(
            f"{config} has Python code of the file's author as '{key}', which is never run",
            next_step=EXPORT,
        )
    return config.choice(key, choices, choices[0])


def _standard(config: Config, texts: Tensor) -> Tensor:
    """Texts in small letters, without punctuation, or as they are."""
    if texts.dtype is not dtypes.string:
        raise config.error(f"it takes text, and gets {texts.dtype}")
    wanted = _choice(config, "standardize", _STANDARDS) or ""
    if "lower" in wanted:
        texts = ops.string_lower(texts)
    if "punctuation" in wanted:
        texts = ops.static_regex_replace(texts, pattern=_PUNCTUATION, rewrite="")
    return texts


def _split(config: Config, x: Symbol, texts: Tensor) -> Rows:
    """The words of all texts, and of several words behind each other, if they are asked for."""
    if x.rank > 1 and x.shape[-1] != 1:
        raise config.error(f"it splits single texts, and gets an input of the shape {x.shape}")
    flat = ops.reshape(texts, np.array([-1], np.int32))
    split = _choice(config, "split", ("whitespace", "character"))
    rows = split_characters(flat) if split == "character" else split_at_spaces(flat)
    widths = _widths(config)
    return joined(rows, widths) if widths else rows


def _widths(config: Config) -> list[int]:
    value: Any = config.get("ngrams", None)
    if value is None:
        return []
    if is_whole(value) and 1 <= value <= _WIDEST:
        return list(range(1, int(value) + 1))
    items = value.get("items") if isinstance(value, dict) else value
    if (
        not isinstance(items, (list, tuple))
        or not items
        or len(items) > _WIDEST
        or not all(is_whole(item) and 1 <= item <= _WIDEST for item in items)
    ):
        raise config.error("'ngrams' must be numbers of words")
    return [int(item) for item in items]


def _length(config: Config) -> int | None:
    has_length = config.get("output_sequence_length", None) is not None
    return config.integer("output_sequence_length") if has_length else None


def _matrix(config: Config, x: Symbol, rows: Rows) -> Symbol:
    """A row of numbers for each text, with 0 behind it."""
    length = _length(config)
    lead = x.shape[:-1] if x.rank > 1 else x.shape
    made = rows.filled(length)
    if len(lead) > 1:
        sizes = x.sizes()[: len(lead)]
        made = ops.reshape(made, pack([*sizes, ops.shape(made)[1]]))
    return x.made(made, (*lead, length))


def _without_split(table: Lookup, x: Symbol) -> Symbol:
    """Words that the caller has split."""
    config = table.config
    if _widths(config):
        raise config.unsupported("several words as one, of texts that it does not split")
    numbers = x.made(table.numbers(x.tensor))
    if table.mode != "int":
        return table.encoded(numbers)
    length = _length(config)
    if length is None:
        return numbers
    return numbers.made(_cut(numbers, length), (*x.shape[:-1], length))


def _cut(numbers: Symbol, length: int) -> Tensor:
    """So many numbers of each row; zeros where it has no more."""
    lead = numbers.rank - 1
    kept = numbers.tensor[(*[slice(None)] * lead, slice(0, length))]
    missing = np.int32(length) - ops.shape(kept)[lead]
    behind = ops.pack([np.int32(0), missing])
    none = np.zeros((lead, 2), np.int32)
    return ops.pad(kept, ops.concat_v2([none, ops.expand_dims(behind, 0)], np.int32(0)))
