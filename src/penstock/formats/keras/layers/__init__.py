"""Keras' layers by family; importing this package makes them known."""

from penstock.formats.keras.layers import (
    convolutions,
    core,
    merging,
    normalization,
    pooling,
    reshaping,
)

__all__ = ["convolutions", "core", "merging", "normalization", "pooling", "reshaping"]
