"""Write TensorFlow's message schema as the table ``defs/messages.txt``.

In:   an installed TensorFlow (``pip install tensorflow-cpu``, in an environment of its own).
Out:  one block per message or enum: field numbers, labels, types and names, nothing else.

    python tools/make_messages.py > src/penstock/defs/messages.txt
"""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from tensorflow.core.example import example_pb2
from tensorflow.core.framework import (
    device_attributes_pb2,
    op_def_pb2,
    reader_base_pb2,
    step_stats_pb2,
    summary_pb2,
    variable_pb2,
)
from tensorflow.core.protobuf import (
    config_pb2,
    device_properties_pb2,
    fingerprint_pb2,
    meta_graph_pb2,
    saved_model_pb2,
    saver_pb2,
    tensor_bundle_pb2,
)
from tensorflow.core.util import event_pb2, saved_tensor_slice_pb2
from tensorflow.python.training import checkpoint_state_pb2

HEADER = (
    "# TensorFlow's messages by field number.  Made by tools/make_messages.py; not edited by hand."
)
ROOTS = [
    op_def_pb2.OpList,
    saved_model_pb2.SavedModel,
    meta_graph_pb2.MetaGraphDef,
    saver_pb2.SaverDef,
    config_pb2.ConfigProto,
    config_pb2.RunOptions,
    config_pb2.RunMetadata,
    config_pb2.CallableOptions,
    device_attributes_pb2.DeviceAttributes,
    device_properties_pb2.DeviceProperties,
    step_stats_pb2.StepStats,
    tensor_bundle_pb2.BundleHeaderProto,
    tensor_bundle_pb2.BundleEntryProto,
    example_pb2.Example,
    example_pb2.SequenceExample,
    summary_pb2.Summary,
    saved_tensor_slice_pb2.SavedTensorSlices,
    event_pb2.Event,
    reader_base_pb2.ReaderBaseState,
    variable_pb2.VariableDef,
    fingerprint_pb2.FingerprintDef,
    checkpoint_state_pb2.CheckpointState,
]
SCALARS = {
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_FIXED64: "fixed64",
    FieldDescriptor.TYPE_FIXED32: "fixed32",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_SINT32: "sint32",
    FieldDescriptor.TYPE_SINT64: "sint64",
}


def reachable(roots: list[type]) -> tuple[dict[str, Descriptor], dict[str, EnumDescriptor]]:
    """Every top-level message and enum that the roots' fields lead to."""
    messages: dict[str, Descriptor] = {}
    enums: dict[str, EnumDescriptor] = {}
    waiting = [root.DESCRIPTOR for root in roots]
    while waiting:
        message = waiting.pop()
        while message.containing_type is not None:
            message = message.containing_type
        if message.full_name in messages or message.full_name.startswith("google."):
            continue
        messages[message.full_name] = message
        waiting.extend(links(message, enums))
    return messages, enums


def links(message: Descriptor, enums: dict[str, EnumDescriptor]) -> list[Descriptor]:
    """Messages that ``message`` and its nested types mention; top-level enums are noted."""
    found = []
    for field in message.fields:
        if field.message_type is not None:
            found.append(field.message_type)
        if field.enum_type is not None and field.enum_type.containing_type is None:
            enums[field.enum_type.full_name] = field.enum_type
    for nested in message.nested_types:
        found.extend(links(nested, enums))
    return [m for m in found if m is not message]


def type_name(field: FieldDescriptor) -> str:
    """The field's type as the table spells it: absolute, without the leading dot."""
    if field.message_type is not None:
        return str(field.message_type.full_name)
    if field.enum_type is not None:
        return "enum " + str(field.enum_type.full_name)
    return SCALARS[field.type]


def field_line(field: FieldDescriptor) -> str:
    """``number [label] type name [in oneof]``."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = (
            field.message_type.fields_by_name["key"],
            field.message_type.fields_by_name["value"],
        )
        return f"{field.number} map {type_name(key)} {type_name(value)} {field.name}"
    words = [str(field.number)]
    if field.is_repeated:
        words.append("repeated")
        scalar = field.message_type is None and field.type not in (
            FieldDescriptor.TYPE_STRING,
            FieldDescriptor.TYPE_BYTES,
        )
        if scalar and not field.is_packed:
            words.append("unpacked")
    words += [type_name(field), field.name]
    oneof = field.containing_oneof
    if oneof is not None:
        words.append("?" if oneof.name == "_" + field.name else f"in {oneof.name}")
    return " ".join(words)


def show_enum(enum: EnumDescriptor, indent: str) -> None:
    print(f"{indent}enum {enum.name if indent else enum.full_name}")
    for value in enum.values:
        print(f"{indent}  {value.number} {value.name}")


def show_message(message: Descriptor, indent: str = "") -> None:
    print(f"{indent}message {message.name if indent else message.full_name}")
    for field in message.fields:
        print(f"{indent}  {field_line(field)}")
    for enum in message.enum_types:
        show_enum(enum, indent + "  ")
    for nested in message.nested_types:
        if not nested.GetOptions().map_entry:
            show_message(nested, indent + "  ")


def main() -> None:
    """Print the table."""
    messages, enums = reachable(ROOTS)
    print(HEADER)
    for name in sorted(messages):
        print()
        show_message(messages[name])
    for name in sorted(enums):
        print()
        show_enum(enums[name], "")


if __name__ == "__main__":
    main()
