"""A file of Keras as every other format ends: a graph with a signature.

In:   the place of a ``.keras``, ``.h5`` or ``.hdf5`` file.
Out:  a MetaGraphDef, with the weights as constants.
Not:  knows no layers; ``read`` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.defs.schema import MetaGraphDef
from penstock.defs.tensors import shape_to_proto
from penstock.formats.keras.read import Endpoint, KerasGraph
from penstock.formats.keras.read import read as read_graph
from penstock.formats.place import Place
from penstock.formats.stored_model import (
    DEFAULT_SIGNATURE,
    PREDICT,
    SERVE,
    Companions,
    StoredModel,
)


def read(place: Place) -> StoredModel:
    """The model of a file, with one signature; ``read_graph`` says what may be wrong with it."""
    model = read_graph(place.content or b"", place.path)
    return StoredModel(
        what=f"a model of Keras {model.version}".rstrip(),
        path=place.path,
        meta_graphs=[_meta_graph(model)],
        companions=Companions(files=(place.path,) if place.has_folder else ()),
    )


def _meta_graph(model: KerasGraph) -> Any:
    meta = MetaGraphDef()
    meta.meta_info_def.tags.append(SERVE)
    meta.graph_def.MergeFrom(model.graph.as_graph_def())
    signature = meta.signature_def[DEFAULT_SIGNATURE]
    signature.method_name = PREDICT
    _add(signature.inputs, model.inputs)
    _add(signature.outputs, model.outputs)
    return meta


def _add(infos: Any, endpoints: Mapping[str, Endpoint]) -> None:
    for name, endpoint in endpoints.items():
        info = infos[name]
        info.name, info.dtype = endpoint.name, endpoint.dtype.number
        shape_to_proto(endpoint.shape, info.tensor_shape)
