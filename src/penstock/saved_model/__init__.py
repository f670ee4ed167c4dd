"""SavedModels of TensorFlow 1 and 2: loaded and called without TensorFlow.

    with ps.saved_model.load("model_folder") as model:
        print(model.signatures)
        outputs = model.signatures["serving_default"](x=[[1.0, 2.0]])
        encoded = model.functions["encoder.call"]([[1.0, 2.0]])

Who reads on may begin with ``loaded_model``.
"""

from penstock.saved_model.composites import RaggedTensor, SparseTensor
from penstock.saved_model.describe import GraphFacts, SignatureFacts, describe
from penstock.saved_model.freeze import Frozen, freeze
from penstock.saved_model.functions import ConcreteFunction, Function, Functions
from penstock.saved_model.loaded_model import LoadedModel, load
from penstock.saved_model.signatures import Signature, Signatures
from penstock.saved_model.structured import OtherSpec, RaggedSpec, SparseSpec, TensorSpec

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
]
