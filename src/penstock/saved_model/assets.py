"""Files that a model's graph reads.

In:   a MetaGraphDef.
Out:  their names, and the tensors that name them in the graph.
Not:  opens none; where they lie is known to ``folder``.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.message import DecodeError

from penstock.defs.schema import message_class
from penstock.errors import DataLossError

#: The collection in which TensorFlow 1 has them.
_COLLECTION: Final = "saved_model_assets"


def assets_of(meta_graph: Any) -> list[Any]:
    """AssetFileDef messages, in the model's order.

    Raises:
        DataLossError: one of TensorFlow 1 is damaged.

    """
    protos = list(meta_graph.asset_file_def)
    if protos or _COLLECTION not in meta_graph.collection_def:
        return protos
    packed = meta_graph.collection_def[_COLLECTION].any_list.value
    found = {}
    for item in packed:
        proto = _unpacked(item.value)
        found[proto.tensor_info.name, proto.filename] = proto
    return list(found.values())


def _unpacked(content: bytes) -> Any:
    try:
        return message_class("AssetFileDef").FromString(content)
    except (DecodeError, ValueError) as cause:  # bad UTF-8 may be either
        raise DataLossError(f"the SavedModel is damaged: an asset is none: {cause}") from None
