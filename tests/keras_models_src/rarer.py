"""Layers that are new or rare: sounds, embeddings in both directions, layers around layers."""

from __future__ import annotations

from typing import Any

from keras_models_src.book import Family, Given, branches

FAMILIES: list[Family] = []


@branches(FAMILIES, only=(3,), x=(40, 2), y=(100,))
def sounds(k: Any, x: Any, y: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    modes = ("log", "magnitude", "psd", "real", "imag", "angle", "stft")
    short = {"frame_length": 8, "window": None}
    return [
        *(L.STFTSpectrogram(mode=mode, **short)(x) for mode in modes),
        L.STFTSpectrogram(**short, frame_step=3, padding="same", expand_dims=True)(x),
        L.STFTSpectrogram(frame_length=7, fft_length=16, window=None)(x),
        L.MelSpectrogram(32, 16, num_mel_bins=5, sampling_rate=200)(y),
        L.MelSpectrogram(
            32, 10, 21, window="hamming", num_mel_bins=4, sampling_rate=2000, min_freq=100.0,
            max_freq=900.0, top_db=20.0, mag_exp=1.5, ref_power=2.0,
        )(y),
        L.MelSpectrogram(16, 8, num_mel_bins=3, sampling_rate=200, power_to_db=False)(y),
    ]  # fmt: skip


@branches(FAMILIES, only=(3,), t=Given((3,), below=5, dtype="int32"), x=(4,))
def rarer(k: Any, t: Any, x: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    both = [
        L.ReversibleEmbedding(5, 3),
        L.ReversibleEmbedding(5, 3, tie_weights=False, mask_zero=True),
        L.ReversibleEmbedding(5, 3, logit_soft_cap=0.5, reverse_dtype="float64"),
    ]
    return [
        *(layer(layer(t), reverse=True) for layer in both),
        L.SpectralNormalization(L.Dense(3))(x),
        L.SpectralNormalization(L.Embedding(5, 2))(t),
        L.Pipeline([L.Dense(3, activation="relu"), L.Dropout(0.5), L.Dense(2)])(x),
    ]


@branches(FAMILIES, x=(6, 5, 3))
def crops(k: Any, x: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    return [L.RandomCrop(4, 3)(x), L.RandomCrop(4, 4)(x), L.RandomCrop(8, 9)(x)]


@branches(FAMILIES, only=(2,), x=(6, 5, 3))
def sizes(k: Any, x: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    return [L.RandomHeight(0.3)(x), L.RandomWidth(0.3)(x)]


@branches(FAMILIES, only=(2,), x=(7, 6, 2), y=(9, 3))
def local(k: Any, x: Any, y: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    return [
        L.LocallyConnected2D(3, (2, 3), strides=(2, 1), activation="relu")(x),
        L.LocallyConnected2D(2, 3, use_bias=False)(x),
        L.LocallyConnected1D(4, 3, strides=2)(y),
    ]


@branches(FAMILIES, only=(3,), x=(6, 5, 3))
def frames(k: Any, x: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    framed = {"pad_to_aspect_ratio": True}
    return [
        L.Resizing(4, 7, **framed)(x),
        L.Resizing(9, 2, **framed, fill_value=0.5, interpolation="nearest")(x),
        L.Resizing(6, 5, **framed)(x),
        *(
            L.Resizing(3, 3, interpolation=way, antialias=True)(x)
            for way in ("bilinear", "bicubic", "nearest", "lanczos3", "area")
        ),
        L.Resizing(8, 9, antialias=True)(x),
    ]


@branches(FAMILIES, n=Given((4,), below=6, dtype="int32"), w=(4,))
def weighted_counts(k: Any, n: Any, w: Any) -> list[Any]:
    return [k.layers.CategoryEncoding(6, output_mode="count")(n, count_weights=w)]


@branches(FAMILIES, only=(3,), without_h5=(3,), x=(6, 5, 3))
def images(k: Any, x: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    flat = L.Rescaling(0.0, offset=0.25)(x)
    trained = (L.AugMix(), L.CutMix(), L.MixUp(), L.RandAugment(), L.Solarization())
    return [
        L.AutoContrast()(x),
        L.AutoContrast(value_range=(0, 1))(x),
        L.AutoContrast(value_range=(-1, 1))(L.Concatenate()([x, flat])),
        *(layer(x) for layer in trained),
    ]
