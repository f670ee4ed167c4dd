"""Graph models of TensorFlow.js: a ``model.json`` and files of weights, as a graph.

| what | made by |
| --- | --- |
| ``model.json`` and weight files → values by name | ``weights`` |
| nodes that only TensorFlow.js has → TensorFlow's | ``fused`` |
| all of that → StoredModel | ``read`` |
"""

from penstock.formats.tfjs.read import read

__all__ = ["read"]
