"""Models of Keras 2 and 3 as graphs: ``.keras``, ``.h5`` and ``.hdf5`` files, without Keras.

The journey of a file:

| what | made by |
| --- | --- |
| bytes → description and weights | ``archive``, ``h5`` |
| description → layers | ``config``, ``layer``, ``models``, ``topology`` |
| weights → each layer's arrays | ``weights`` |
| layers → nodes | ``layers``, ``activations``, ``windows`` |
| all of that | ``read`` |
"""

from penstock.formats.keras.layer import known_layers
from penstock.formats.keras.read import Endpoint, KerasGraph, read

__all__ = ["Endpoint", "KerasGraph", "known_layers", "read"]
