"""TensorFlow's protobuf messages.

In:   ``messages.txt``.
Out:  message classes such as ``GraphDef``.
Not:  gives messages no meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from penstock.defs.message_pool import Message, MessagePool

__all__ = ["Message", "extended", "message_class"]

_POOL: Final = MessagePool("messages.txt", "tensorflow")
message_class = _POOL.message_class


def extended(table: str) -> Callable[[str], Message]:
    """Read a table of further messages, in which those of this module may stand; finds them all."""
    _POOL.add(table)
    return message_class


AttrValue = message_class("AttrValue")
BundleEntryProto = message_class("BundleEntryProto")
BundleHeaderProto = message_class("BundleHeaderProto")
CallableOptions = message_class("CallableOptions")
CheckpointState = message_class("CheckpointState")
ConfigProto = message_class("ConfigProto")
CostGraphDef = message_class("CostGraphDef")
DeviceAttributes = message_class("DeviceAttributes")
Event = message_class("Event")
Example = message_class("Example")
FunctionDef = message_class("FunctionDef")
FunctionDefLibrary = message_class("FunctionDefLibrary")
GraphDef = message_class("GraphDef")
MetaGraphDef = message_class("MetaGraphDef")
NameAttrList = message_class("NameAttrList")
NodeDef = message_class("NodeDef")
OpDef = message_class("OpDef")
OpList = message_class("OpList")
ReaderBaseState = message_class("ReaderBaseState")
ResourceHandleProto = message_class("ResourceHandleProto")
RunMetadata = message_class("RunMetadata")
RunOptions = message_class("RunOptions")
SavedModel = message_class("SavedModel")
SavedTensorSlices = message_class("SavedTensorSlices")
SaverDef = message_class("SaverDef")
SequenceExample = message_class("SequenceExample")
SignatureDef = message_class("SignatureDef")
StepStats = message_class("StepStats")
Summary = message_class("Summary")
SummaryMetadata = message_class("SummaryMetadata")
TaggedRunMetadata = message_class("TaggedRunMetadata")
TensorProto = message_class("TensorProto")
TensorShapeProto = message_class("TensorShapeProto")
TensorSliceProto = message_class("TensorSliceProto")
TrackableObjectGraph = message_class("TrackableObjectGraph")
VariableDef = message_class("VariableDef")
VariantTensorDataProto = message_class("VariantTensorDataProto")
VersionDef = message_class("VersionDef")
