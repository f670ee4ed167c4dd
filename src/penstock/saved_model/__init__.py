"""SavedModels of TensorFlow 1 and 2: loaded, called, frozen and saved without TensorFlow.

    with ps.saved_model.load("model_folder") as model:
        print(model.signatures)
        outputs = model.signatures["serving_default"](x=[[1.0, 2.0]])
        encoded = model.functions["encoder.call"]([[1.0, 2.0]])

Who reads on may begin with ``loaded_model``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from penstock.saved_model.composites import RaggedTensor, SparseTensor
from penstock.saved_model.describe import GraphFacts, SignatureFacts, describe
from penstock.saved_model.freeze import Frozen, freeze
from penstock.saved_model.functions import ConcreteFunction, Function, Functions
from penstock.saved_model.loaded_model import LoadedModel, load
from penstock.saved_model.signatures import Signature, Signatures
from penstock.saved_model.structured import OtherSpec, RaggedSpec, SparseSpec, TensorSpec

if TYPE_CHECKING:
    from penstock.saved_model.save_model import save
    from penstock.saved_model.tfjs_model import TfjsModel, load_tfjs

__all__ = [
    "ConcreteFunction",
    "Frozen",
    "Function",
    "Functions",
    "GraphFacts",
    "LoadedModel",
    "OtherSpec",
    "RaggedSpec",
    "RaggedTensor",
    "Signature",
    "SignatureFacts",
    "Signatures",
    "SparseSpec",
    "SparseTensor",
    "TensorSpec",
    "TfjsModel",
    "describe",
    "freeze",
    "load",
    "load_tfjs",
    "save",
]

#: Names whose modules bring what not everyone who loads a model needs to wait for.
_LATER = {"save": "save_model", "load_tfjs": "tfjs_model", "TfjsModel": "tfjs_model"}

if not TYPE_CHECKING:  # for mypy, what is not there is not there

    def __getattr__(name: str) -> object:
        """What is imported when it is first used."""
        if name not in _LATER:
            raise AttributeError(f"module 'penstock.saved_model' has no attribute '{name}'")
        module = importlib.import_module(f"penstock.saved_model.{_LATER[name]}")
        globals()[name] = value = getattr(module, name)
        return value
