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
    "describe",
    "freeze",
    "load",
    "save",
]

if not TYPE_CHECKING:  # for mypy, what is not there is not there

    def __getattr__(name: str) -> object:
        """``save``, whose module brings what builds graphs: who only loads need not wait for it."""
        if name != "save":
            raise AttributeError(f"module 'penstock.saved_model' has no attribute '{name}'")
        globals()[name] = value = importlib.import_module("penstock.saved_model.save_model").save
        return value
