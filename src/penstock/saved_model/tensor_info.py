"""The tensors of a signature, as a SignatureDef has them.

In:   TensorInfo messages.
Out:  specifications, and the tensors of the graph that they mean.
Not:  looks into no graph.
"""

from __future__ import annotations

from typing import Any

from penstock.core import dtypes
from penstock.core.names import parse_endpoint
from penstock.defs.schema import message_class
from penstock.defs.tensors import shape_from_proto
from penstock.errors import DataLossError
from penstock.saved_model.structured import SparseSpec, Spec, TensorSpec, decode, is_spec


def read_tensor_info(info: Any) -> tuple[Spec, list[str]]:
    """A specification, and the names of its tensors; raises DataLossError if there are none."""
    dtype = dtypes.of_number(info.dtype) if info.dtype else dtypes.variant
    shape = shape_from_proto(info.tensor_shape)
    match info.WhichOneof("encoding"):
        case "name":
            return TensorSpec(dtype, shape), [_endpoint(info.name)]
        case "coo_sparse":
            parts = info.coo_sparse
            pair = [parts.indices_tensor_name, parts.values_tensor_name]
            names = [*pair, parts.dense_shape_tensor_name]
            return SparseSpec(dtype, shape), list(map(_endpoint, names))
        case "composite_tensor":
            parts = info.composite_tensor
            spec = decode(message_class("StructuredValue")(type_spec_value=parts.type_spec))
            names = [_endpoint(part.name) for part in parts.components]
            if is_spec(spec) and spec.flat_count == len(names):
                return spec, names
    raise DataLossError("the SavedModel is damaged: a signature has a tensor without a name")


def _endpoint(name: str) -> str:
    node, slot = parse_endpoint(name)
    return f"{node}:{max(slot, 0)}"
