"""``tf.Example`` and ``tf.SequenceExample``, to and from dicts of arrays.

In:   serialized messages; or values by the names of features.
Out:  dicts of arrays; or serialized messages.
Not:  knows no specification of features: types are those that the message has.

A feature is a flat list of strings, of float32 or of int64; it has no shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from penstock.core.given import as_array
from penstock.core.values import Array
from penstock.defs.schema import Example, Message
from penstock.defs.schema import SequenceExample as SequenceExampleProto
from penstock.errors import InvalidArgumentError

#: The types of the lists that a feature may be.
_TYPES: Final[Mapping[str, Any]] = {"float_list": np.float32, "int64_list": np.int64}


class SequenceExample(NamedTuple):
    """Features of a whole, and features of each of its steps."""

    context: dict[str, Array]
    #: By name, an array per step; they may differ in length.
    steps: dict[str, list[Array]]


def decode_example(record: bytes) -> dict[str, Array]:
    """The features of a serialized ``tf.Example``.

    Returns:
        One-dimensional arrays by the names of the features: float32, int64, or objects that are
        ``bytes``.  A feature that is no list of any type is an empty array of float32.

    Raises:
        InvalidArgumentError: it is no such message.

    """
    return _features(_parsed(Example, record).features)


def decode_sequence_example(record: bytes) -> SequenceExample:
    """The features of a serialized ``tf.SequenceExample``, arrays as ``decode_example`` has them.

    Raises:
        InvalidArgumentError: it is no such message.

    """
    message = _parsed(SequenceExampleProto, record)
    lists = message.feature_lists.feature_list
    steps = {name: [_array(feature) for feature in lists[name].feature] for name in lists}
    return SequenceExample(_features(message.context), steps)


def encode_example(features: Mapping[str, Any]) -> bytes:
    """A serialized ``tf.Example``.

    Args:
        features: by name, numbers, texts, arrays or nested lists of them, of which the order of
            elements stays and the shape is lost.  Integers and bools become int64, floats float32,
            texts UTF-8.

    Raises:
        InvalidArgumentError: a value is nothing of the kind, or no int64.

    """
    message = Example()
    _fill(message.features, features)
    return _serialized(message)


def encode_sequence_example(
    context: Mapping[str, Any], steps: Mapping[str, Iterable[Any]]
) -> bytes:
    """A serialized ``tf.SequenceExample``.

    Args:
        context: values as ``encode_example`` takes them.
        steps: by name, one such value per step.

    Raises:
        InvalidArgumentError: a value is nothing of the kind, or no int64.

    """
    message = SequenceExampleProto()
    _fill(message.context, context)
    message.feature_lists.SetInParent()
    for name, values in steps.items():
        features = message.feature_lists.feature_list[_name(name)].feature
        for value in values:
            _set(features.add(), name, value)
    return _serialized(message)


# -- reading ---------------------------------------------------------------------------


def _parsed(kind: Any, record: bytes) -> Message:
    try:
        return kind.FromString(bytes(record))
    except (DecodeError, ValueError) as cause:  # bad UTF-8 may be either
        raise InvalidArgumentError(
            f"Could not parse {kind.DESCRIPTOR.name} of {len(record)} bytes: {cause}"
        ) from None


def _features(message: Message) -> dict[str, Array]:
    return {name: _array(message.feature[name]) for name in message.feature}


def _array(feature: Message) -> Array:
    kind = feature.WhichOneof("kind")
    if kind == "bytes_list":
        items = feature.bytes_list.value
        array = np.empty(len(items), object)
        array[:] = items
        return array
    if kind is None:
        return np.empty(0, np.float32)
    return np.array(getattr(feature, kind).value, _TYPES[kind])


# -- writing ---------------------------------------------------------------------------


def _serialized(message: Message) -> bytes:
    # In the order of names, so that equal examples are equal bytes.
    return bytes(message.SerializeToString(deterministic=True))


def _fill(message: Message, features: Mapping[str, Any]) -> None:
    message.SetInParent()
    for name, value in features.items():
        _set(message.feature[_name(name)], name, value)


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{name!r} is no name of a feature")
    return name


def _set(feature: Message, name: str, value: Any) -> None:
    try:
        array = as_array(value).reshape(-1)
        _set_list(feature, array)
    except (ValueError, TypeError, InvalidArgumentError) as cause:
        reason = getattr(cause, "reason", cause)
        raise InvalidArgumentError(f"Feature {name}: {reason}") from None


def _set_list(feature: Message, array: Array) -> None:
    kind = array.dtype.kind
    if kind in "bui":
        if kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
            raise InvalidArgumentError(f"{array.max()} is no int64")
        feature.int64_list.value.extend(array.astype(np.int64).tolist())
        feature.int64_list.SetInParent()
    elif kind in "SUO":
        feature.bytes_list.value.extend(map(_as_bytes, array.tolist()))
        feature.bytes_list.SetInParent()
    elif kind == "f" or array.dtype.name == "bfloat16":
        with np.errstate(over="ignore"):  # what is too large for float32 is infinite
            feature.float_list.value.extend(array.astype(np.float32).tolist())
        feature.float_list.SetInParent()
    else:
        raise InvalidArgumentError(f"values of type {array.dtype} are no feature")


def _as_bytes(item: Any) -> bytes:
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, bytes):
        return item
    raise InvalidArgumentError(f"a {type(item).__name__} is neither number nor text")
