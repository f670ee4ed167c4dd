"""Tensors as serialized messages.

In:   a tensor, or a serialized TensorProto.
Out:  the other.
Not:  knows no records and no examples.
"""

from __future__ import annotations

import base64

from google.protobuf.message import DecodeError

from penstock.core import dtypes
from penstock.core.values import Value, shape_of
from penstock.defs.schema import TensorProto
from penstock.defs.tensors import from_proto, to_proto
from penstock.errors import InvalidArgumentError, ResourceExhaustedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.strings import items_of
from penstock.kernels.values.variants import decoded


@kernel("SerializeTensor")
def make_serialize_tensor(attrs: Attrs) -> Kernel:
    """The tensor as a serialized TensorProto."""
    dtype = attrs.dtype("T")

    def serialize(tensor: Value) -> bytes:
        text: bytes = to_proto(as_array(tensor), dtype).SerializeToString()
        return text

    return serialize


@kernel("ParseTensor")
def make_parse_tensor(attrs: Attrs) -> Kernel:
    """The tensor in a serialized TensorProto."""
    dtype = attrs.dtype("out_type")

    def parse(serialized: Value) -> Value:
        if shape_of(serialized) != ():
            raise InvalidArgumentError(
                "Expected `serialized` to be a scalar, got shape: "
                f"{shape_text(shape_of(serialized))}"
            )
        text = items_of(serialized)[0]
        proto = TensorProto()
        try:
            proto.ParseFromString(text)
        except DecodeError as cause:
            shown = base64.b64encode(text).decode()
            raise InvalidArgumentError(
                f"Could not parse `serialized` as TensorProto, base64: {shown}"
            ) from cause
        if proto.dtype == 0:
            raise InvalidArgumentError("Cannot parse tensor from proto: it has no data type")
        try:
            tensor = decoded(from_proto(proto)) if dtype is dtypes.variant else from_proto(proto)
        except ResourceExhaustedError as cause:
            raise InvalidArgumentError(f"Cannot parse tensor from proto: {cause.reason}") from cause
        if proto.dtype != dtype.number:
            raise InvalidArgumentError(
                f"Type mismatch between parsed tensor ({type_text(dtypes.of_number(proto.dtype))}) "
                f"and dtype ({type_text(dtype)})"
            )
        return tensor

    return parse
