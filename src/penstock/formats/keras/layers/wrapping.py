"""Layers around layers that leave what is inside as it is when it is not trained."""

from __future__ import annotations

from typing import Any

from penstock.builder import ops
from penstock.formats.keras.config import Config
from penstock.formats.keras.layer import Layer, Masking, Weight, layer
from penstock.formats.keras.models import entries, sequential
from penstock.formats.keras.symbol import Nest, Symbol


def _vector(_: Config) -> list[Weight]:
    """What only training needs; files that list all arrays list it, too."""
    return [Weight("vector_u", is_trained=False)]


@layer("Pipeline", parts=entries, masking=Masking.OWN, converts=False)
def pipeline(self: Layer, x: Nest, **_: Any) -> Nest:
    """One layer after the other."""
    return sequential(self, x)


@layer(
    "SpectralNormalization",
    weights=_vector,
    parts=lambda config: {"layer": config.nested("layer")},
    masking=Masking.OWN,
)
def spectral_normalization(self: Layer, x: Symbol, **_: Any) -> Nest:
    """The layer inside, whose kernel training has divided by its norm (Miyato et al. 2018).

    Keras 3 gives what comes out in the type of the input.
    """
    made = self.part("layer")(x)
    if not self.config.is_keras_3 or made.tensor.dtype is x.tensor.dtype:
        return made
    return made.made(ops.cast(made.tensor, x.tensor.dtype))
