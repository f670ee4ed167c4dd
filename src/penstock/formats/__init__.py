"""What models are stored as, and the readers: all end in one form, a ``StoredModel``.

| what is at a path | who reads it |
| --- | --- |
| a GraphDef | ``graph_def`` |
| a ``.meta`` file, or the checkpoint beside it | ``meta_graph`` |
| the folder of a SavedModel, or of a module of TensorFlow 1 Hub | ``saved_model`` |
| a graph model of TensorFlow.js | ``tfjs`` |
| a model of Keras | ``keras`` |

``place`` finds out what is there, ``read_model`` knows who reads it; a reader is a module with a
function ``read``, from a ``Place`` to a ``StoredModel``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from penstock.core.forks import importing
from penstock.formats.place import Place
from penstock.formats.read_model import Reader, read_model
from penstock.formats.stored_model import Companions, StoredModel

if TYPE_CHECKING:
    from penstock.formats import keras

__all__ = ["Companions", "Place", "Reader", "StoredModel", "keras", "read_model"]


if not TYPE_CHECKING:  # for mypy, what is not there is not there

    def __getattr__(name: str) -> object:
        """Keras' layers are many, and imported when they are asked for."""
        if name != "keras":
            raise AttributeError(f"module 'penstock.formats' has no attribute '{name}'")
        with importing:
            return importlib.import_module("penstock.formats.keras")
