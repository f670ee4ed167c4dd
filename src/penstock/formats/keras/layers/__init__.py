"""Keras' layers by family; importing this package makes them known."""

from penstock.formats.keras.layers import (
    attention,
    categories,
    cells,
    convolutions,
    core,
    lookups,
    merging,
    normalization,
    operations,
    pooling,
    preprocessing,
    recurrent,
    reshaping,
    text,
)

__all__ = [
    "attention",
    "categories",
    "cells",
    "convolutions",
    "core",
    "lookups",
    "merging",
    "normalization",
    "operations",
    "pooling",
    "preprocessing",
    "recurrent",
    "reshaping",
    "text",
]
