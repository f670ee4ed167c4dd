"""Models: loaded, called, frozen and saved without TensorFlow.

    with ps.load_model("model_folder") as model:
        print(model.signatures)
        outputs = model.signatures["serving_default"](x=[[1.0, 2.0]])
        encoded = model.functions["encoder.call"]([[1.0, 2.0]])

Whatever a model is stored as, ``formats`` reads it as one or several MetaGraphDefs; here they are
opened.  Who reads on may begin with ``loaded_model``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from penstock.core.forks import importing
from penstock.saved_model.composites import RaggedTensor, SparseTensor
from penstock.saved_model.describe import GraphFacts, SignatureFacts, describe
from penstock.saved_model.freeze import Frozen, freeze, freeze_tensors
from penstock.saved_model.functions import ConcreteFunction, Function, Functions
from penstock.saved_model.loaded_model import LoadedModel, load_model
from penstock.saved_model.signatures import Signature, Signatures
from penstock.saved_model.structured import OtherSpec, RaggedSpec, SparseSpec, TensorSpec

if TYPE_CHECKING:
    from penstock.saved_model.save_model import save

#: TensorFlow's name of it.
load = load_model

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
    "freeze_tensors",
    "load",
    "load_model",
    "save",
]

#: Names whose modules bring what not everyone who loads a model needs to wait for.
_LATER = {"save": "save_model"}

if not TYPE_CHECKING:  # for mypy, what is not there is not there

    def __getattr__(name: str) -> object:
        """What is imported when it is first used."""
        if name not in _LATER:
            raise AttributeError(f"module 'penstock.saved_model' has no attribute '{name}'")
        with importing:
            module = importlib.import_module(f"penstock.saved_model.{_LATER[name]}")
        globals()[name] = value = getattr(module, name)
        return value
