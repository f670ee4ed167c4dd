"""ONNX's protobuf messages.

In:   ``onnx_messages.txt``.
Out:  message classes such as ``ModelProto``.
Not:  gives messages no meaning.
"""

from __future__ import annotations

from typing import Final

from penstock.defs.message_pool import MessagePool

_POOL: Final = MessagePool("onnx_messages.txt", "onnx")

ModelProto = _POOL.message_class("ModelProto")
NodeProto = _POOL.message_class("NodeProto")
TensorProto = _POOL.message_class("TensorProto")
ValueInfoProto = _POOL.message_class("ValueInfoProto")
