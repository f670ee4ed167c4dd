"""Layers that look words and numbers up, or hash them, and what they have learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from keras_models_src.book import Family, Given, branches, only

FAMILIES: list[Family] = []
#: Half of the words that inputs have, and one that they do not have.
KNOWN = ["green", "blue", "fish", "zebra", "Zürich", "rot"]
WORDS = Given((3,), dtype="string")
TEXT = Given((), dtype="string")
NUMBERS = Given((3,), below=12, dtype="int64")


def rare(count: int) -> list[float]:
    """As many weights, all different."""
    return [0.5 + place / 4 for place in range(count)]


@branches(FAMILIES, without_h5=(2,), s=WORDS, n=NUMBERS, c=Given((1,), dtype="string"))
def lookups(k: Any, s: Any, n: Any, c: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    numbers = [7, 3, 11, 5]
    several = {"vocabulary": KNOWN, "num_oov_indices": 3}
    made = [
        L.StringLookup(vocabulary=KNOWN)(s),
        L.StringLookup(vocabulary=KNOWN, mask_token="")(s),
        L.StringLookup(vocabulary=["", "[UNK]", *KNOWN], mask_token="")(s),
        L.StringLookup(**several)(s),
        L.StringLookup(**several, mask_token="red")(s),
        *(L.StringLookup(vocabulary=KNOWN, output_mode=m)(s) for m in ("multi_hot", "count")),
        L.StringLookup(vocabulary=KNOWN, output_mode="one_hot", mask_token="")(c),
        L.StringLookup(vocabulary=KNOWN, output_mode="tf_idf", idf_weights=rare(6))(s),
        L.StringLookup(
            vocabulary=KNOWN, output_mode="tf_idf", idf_weights=rare(6), max_tokens=9,
            pad_to_max_tokens=True, mask_token="",
        )(s),
        L.StringLookup(vocabulary=KNOWN, output_mode="count", max_tokens=9, pad_to_max_tokens=True)(
            c
        ),
        L.StringLookup(vocabulary=KNOWN, invert=True)(n),
        L.StringLookup(vocabulary=KNOWN, invert=True, mask_token="")(n),
        L.IntegerLookup(vocabulary=numbers)(n),
        L.IntegerLookup(vocabulary=numbers, mask_token=0)(n),
        L.IntegerLookup(vocabulary=numbers, num_oov_indices=4, mask_token=0)(n),
        L.IntegerLookup(vocabulary=numbers, output_mode="multi_hot")(n),
        L.IntegerLookup(vocabulary=numbers, output_mode="count", mask_token=2)(n),
        L.IntegerLookup(vocabulary=numbers, invert=True)(n),
        L.IntegerLookup(vocabulary=list(range(12)), num_oov_indices=0)(n),
        L.Dense(2)(L.StringLookup(vocabulary=KNOWN, output_mode="multi_hot")(s)),
        L.Embedding(8, 2)(L.StringLookup(vocabulary=KNOWN)(s)),
        L.Concatenate()([
            L.StringLookup(vocabulary=KNOWN, output_mode="count")(s),
            L.Rescaling(0.5)(L.IntegerLookup(vocabulary=numbers)(n)),
        ]),
    ]  # fmt: skip
    strong = {"vocabulary": numbers, "num_oov_indices": 4, "oov_method": "farmhash"}
    return [
        *made,
        *only(k, 2, lambda: [L.StringLookup(vocabulary=KNOWN, output_mode="one_hot")(c)]),
        *only(k, 3, lambda: [
            L.StringLookup(vocabulary=KNOWN, output_mode="one_hot")(s),
            L.StringLookup(**several, salt=[133, 137])(s),
            L.IntegerLookup(**strong)(n),
            L.IntegerLookup(**strong, salt=7)(n),
        ]),
    ]  # fmt: skip


@branches(FAMILIES, without_h5=(2, 3), s=WORDS, n=NUMBERS)
def learned_lookups(k: Any, s: Any, n: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    words = np.array([["green", "red", "fish"], ["fish", "", "green"]])
    layers = [
        L.StringLookup(),
        L.StringLookup(mask_token=""),
        L.StringLookup(output_mode="tf_idf"),
        L.StringLookup(output_mode="multi_hot", max_tokens=3),
        L.StringLookup(
            num_oov_indices=2, max_tokens=7, pad_to_max_tokens=True, output_mode="count"
        ),
    ]
    whole = [
        L.IntegerLookup(),
        L.IntegerLookup(mask_token=0, num_oov_indices=2),
        L.IntegerLookup(output_mode="tf_idf", max_tokens=6, pad_to_max_tokens=True),
    ]
    for layer in layers:
        layer.adapt(words)
    for layer in whole:
        layer.adapt(np.array([[1, 2, 3], [0, 2, -1]]))
    return [*(layer(s) for layer in layers), *(layer(n) for layer in whole)]


@branches(FAMILIES, without_h5=(2,), s=TEXT, c=Given((1,), dtype="string"), w=WORDS)
def texts(k: Any, s: Any, c: Any, w: Any) -> list[Any]:
    L = k.layers  # noqa: N806

    def layer(**settings: Any) -> Any:
        return L.TextVectorization(**{"vocabulary": KNOWN, **settings})

    letters = {"split": "character", "vocabulary": list("efhiü,")}
    made = [
        layer()(s),
        layer()(c),
        *(layer(standardize=w)(s) for w in ("lower", "strip_punctuation", None)),
        layer(output_sequence_length=3)(s),
        layer(output_sequence_length=9)(c),
        layer(**letters)(s),
        layer(**letters, standardize=None)(c),
        layer(vocabulary=["fish", "one fish", "two fish", "one"], ngrams=2)(s),
        layer(vocabulary=["fish two fish", "one", "f"], ngrams=(1, 3))(c),
        *(layer(output_mode=mode)(s) for mode in ("multi_hot", "count")),
        layer(output_mode="tf_idf", idf_weights=rare(6))(c),
        layer(output_mode="tf_idf", idf_weights=rare(6), max_tokens=9, pad_to_max_tokens=True)(s),
        layer(split=None)(w),
        layer(split=None, output_sequence_length=2)(w),
        layer(split=None, output_sequence_length=5)(w),
        layer(split=None, output_mode="count")(w),
    ]
    embedded = L.Embedding(8, 2, mask_zero=True)(layer(output_sequence_length=4)(s))
    return [*made, L.GlobalAveragePooling1D()(embedded), L.LSTM(2)(embedded)]


@branches(FAMILIES, without_h5=(2, 3), s=TEXT)
def learned_texts(k: Any, s: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    layers = [
        L.TextVectorization(),
        L.TextVectorization(max_tokens=4, output_sequence_length=3),
        L.TextVectorization(output_mode="tf_idf"),
        L.TextVectorization(output_mode="count", max_tokens=9, pad_to_max_tokens=True, ngrams=2),
    ]
    for layer in layers:
        layer.adapt(np.array(["One red fish", "two fish", "red red herrings", "Zürich"], object))
    return [layer(s) for layer in layers]


@branches(
    FAMILIES,
    s=WORDS,
    c=Given((1,), dtype="string"),
    n=Given((1,), below=50, dtype="int64"),
    m=Given((4,), below=50, dtype="int32"),
)
def hashes(k: Any, s: Any, c: Any, n: Any, m: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    made = [
        L.Hashing(5)(s),
        L.Hashing(5, mask_value="red")(s),
        L.Hashing(5, salt=133)(s),
        L.Hashing(5, salt=[133, 137], mask_value="")(s),
        L.Hashing(7)(m),
        L.Hashing(7, mask_value=3)(n),
        *(L.Hashing(5, output_mode=mode)(s) for mode in ("multi_hot", "count")),
        L.Hashing(5, output_mode="one_hot")(c),
        L.HashedCrossing(9)([c, n]),
        L.HashedCrossing(9, output_mode="one_hot")([c, n]),
        L.HashedCrossing(1000)([n, n]),
    ]
    return [
        *made,
        *only(k, 2, lambda: [L.HashedCrossing(9)([c, c, n])]),
        *only(
            k, 3, lambda: [L.Hashing(5, output_mode="one_hot")(s), L.Hashing(5, dtype="int32")(s)]
        ),
    ]


@branches(FAMILIES, x=(4,), v=(), m=Given((4,), below=6, dtype="int32"), c=(2, 3))
def categories(k: Any, x: Any, v: Any, m: Any, c: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    bounds = [-0.5, 0.0, 1.0]
    single = k.layers.Cropping1D((0, 2))(k.layers.Reshape((3, 1))(c[:, 0]))[:, :, 0]
    made = [
        *(L.Discretization(bounds, output_mode=mode)(x) for mode in ("int", "multi_hot", "count")),
        L.Discretization(bounds, output_mode="one_hot")(single),
        L.Discretization(bounds)(v),
        L.CategoryEncoding(6, output_mode="count")(m),
        L.CategoryEncoding(8)(m),
    ]
    return [
        *made,
        *only(k, 3, lambda: [
            L.Discretization(bounds, output_mode="one_hot")(x),
            L.Discretization(bounds, output_mode="count")(c),
            L.Discretization(bounds, output_mode="multi_hot")(c),
            L.CategoryEncoding(6, output_mode="one_hot")(m),
        ]),
    ]  # fmt: skip


@branches(FAMILIES, without_h5=(2, 3), x=(4,))
def learned_categories(k: Any, x: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    layers = [L.Discretization(num_bins=4), L.Discretization(num_bins=3, epsilon=0.1)]
    for layer in layers:
        layer.adapt(np.linspace(-2.0, 2.0, 40, dtype=np.float32) ** 3)
    return [layer(x) for layer in layers]
