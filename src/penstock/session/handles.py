"""Handles as the caller gets and gives them.

In:   a handle out of a graph; or what the caller feeds.
Out:  the form that TensorFlow's front end feeds: the bytes of a ResourceHandleProto, as an array;
      or the handle, if what was fed is one, in any form.
Not:  looks up nothing that a handle means.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError, Message

from penstock.core.values import KEPT_TENSOR, Array, KeptTensor, ResourceHandle
from penstock.defs.schema import ResourceHandleProto
from penstock.defs.tensors import handle_from_proto, handle_to_proto
from penstock.errors import InvalidArgumentError

#: The type of each byte, as TensorFlow's ``dtypes.np_resource``.
_BYTE: Final = np.dtype([("resource", np.ubyte)])
_MESSAGE: Final = "tensorflow.ResourceHandleProto"


def as_bytes(handle: ResourceHandle) -> Array:
    """A handle's message as an array of bytes, which may be fed again."""
    return np.frombuffer(bytearray(handle_to_proto(handle).SerializeToString()), _BYTE)


def handle_in(value: Any) -> ResourceHandle | None:
    """The handle that is fed, in whatever form; None if it is none.

    What a class says of itself counts, and not what its objects pretend to be.

    Raises:
        InvalidArgumentError: the bytes of a handle are damaged.

    """
    kind = type(value)
    if kind is np.ndarray and value.dtype.names is None:
        return None  # nearly always
    if issubclass(kind, np.ndarray):
        return _parsed(np.ndarray.tobytes(value)) if _is_bytes_of_handle(value) else None
    if issubclass(kind, ResourceHandle):
        return value  # type: ignore[no-any-return]  # it is one, which the checker cannot see
    if issubclass(kind, KeptTensor):
        return ResourceHandle("", KEPT_TENSOR, value.handle, KEPT_TENSOR)
    if issubclass(kind, Message):
        return _parsed(value.SerializeToString()) if kind.DESCRIPTOR.full_name == _MESSAGE else None
    # TensorFlow's own class of handles of tensors that a session keeps.
    to_array = getattr(kind, "to_numpy_array", None)
    return None if to_array is None else handle_in(np.asarray(to_array(value)))


def _is_bytes_of_handle(value: Array) -> bool:
    """Whether an array has such a type: its bytes, or vectors of one byte each."""
    dtype: np.dtype[Any] = np.ndarray.dtype.__get__(value)
    return dtype.names == _BYTE.names and dtype.itemsize == 1


def _parsed(content: bytes) -> ResourceHandle:
    try:
        return handle_from_proto(ResourceHandleProto.FromString(content))
    except (DecodeError, ValueError) as cause:  # bad UTF-8 may be either
        raise InvalidArgumentError(f"A resource handle cannot be read: {cause}") from None
