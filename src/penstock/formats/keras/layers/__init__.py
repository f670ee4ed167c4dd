"""Keras' layers by family; importing this package makes them known."""

from penstock.formats.keras.layers import (
    attention,
    cells,
    convolutions,
    core,
    merging,
    normalization,
    operations,
    pooling,
    preprocessing,
    recurrent,
    reshaping,
)

__all__ = [
    "attention",
    "cells",
    "convolutions",
    "core",
    "merging",
    "normalization",
    "operations",
    "pooling",
    "preprocessing",
    "recurrent",
    "reshaping",
]
