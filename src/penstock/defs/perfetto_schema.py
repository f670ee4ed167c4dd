"""Perfetto's protobuf messages, as far as traces of track events need them.

In:   ``perfetto_messages.txt``.
Out:  message classes such as ``TracePacket``.
Not:  gives messages no meaning.
"""

from __future__ import annotations

from typing import Final

from penstock.defs.message_pool import MessagePool

_POOL: Final = MessagePool("perfetto_messages.txt", "perfetto.protos")

DebugAnnotation = _POOL.message_class("DebugAnnotation")
Trace = _POOL.message_class("Trace")
TracePacket = _POOL.message_class("TracePacket")
