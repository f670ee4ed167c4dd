"""A model of ONNX under construction.

In:   nodes of ONNX one after the other; constants.
Out:  the model's bytes.
Not:  knows no op of TensorFlow; that is for the rules.

TensorFlow has channels last, ONNX has them first.  A value may be in either layout while it is
inside: convolutions turn it once, what works element by element leaves it as it is, and whoever
needs the other layout gets a Transpose, at most one for each value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.dataclass import dataclass
from penstock.defs.onnx_schema import ModelProto

#: The version of ONNX's operators that is written, and that of its file format.
_OPSET: Final = 17
_IR_VERSION: Final = 8
#: Element types as ONNX numbers them.
TYPES: Final = {
    dtypes.float32: 1,
    dtypes.int32: 6,
    dtypes.int64: 7,
    dtypes.bool_: 9,
}
_FLOAT, _INT, _STRING, _FLOATS, _INTS = 1, 2, 3, 6, 7
#: Says of an initializer that its elements are not in the model; they are given with it.
_EXTERNAL: Final = 1
#: An attribute of a node of ONNX.
Attribute: TypeAlias = "int | float | str | Sequence[int] | Sequence[float]"


class UnsupportedError(Exception):
    """A node of TensorFlow cannot be written; nobody else ever sees this."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value inside of a model."""

    name: str
    dtype: DType
    #: Of TensorFlow's value, whatever the layout inside.
    shape: TensorShape
    #: Whether the channels come first.
    is_turned: bool = False
    #: What it is the product of, if that is a value and a fixed number for each channel.
    factors: tuple[Tensor, Tensor] | None = None
    #: What this is the sum of with 3; and what it is six times the hard sigmoid of: that sum, but
    #: no less than 0 and no more than 6.
    less_three: Tensor | None = None
    of_hard_sigmoid: Tensor | None = None

    @property
    def rank(self) -> int:
        """The number of dimensions; raises UnsupportedError if it is not known."""
        if self.shape.dims is None:
            raise UnsupportedError
        return len(self.shape.dims)

    def size(self, axis: int) -> int | None:
        """A size, of TensorFlow's axis; None if it is not known."""
        return None if self.shape.dims is None else self.shape.dims[axis]


class ModelWriter:
    """A model under construction."""

    def __init__(self) -> None:
        self._model: Final[Any] = ModelProto(ir_version=_IR_VERSION, producer_name="penstock")
        self._model.opset_import.add(version=_OPSET)
        self._model.graph.name = "region"
        #: Other layouts of values, by their names.
        self._other: Final[dict[str, Tensor]] = {}
        self._count = 0

    def input(self, name: str, dtype: DType, shape: TensorShape) -> Tensor:
        """What a caller gives."""
        _describe(self._model.graph.input.add(name=name), dtype, shape)
        return Tensor(name, dtype, shape)

    def weight(self, name: str, dtype: DType, shape: tuple[int, ...]) -> Tensor:
        """A constant whose elements are given when the model is loaded."""
        proto = self._model.graph.initializer.add(name=name, data_type=_number(dtype), dims=shape)
        proto.data_location = _EXTERNAL
        proto.external_data.add(key="location", value="given")
        return Tensor(name, dtype, TensorShape.of(shape))

    def constant(self, value: Any) -> Tensor:
        """A constant that stands in the model."""
        array = np.asarray(value)
        dtype = dtypes.of_numpy(array.dtype)
        proto = self._model.graph.initializer.add(name=self._new_name("c"), dims=array.shape)
        proto.data_type = _number(dtype)
        proto.raw_data = np.ascontiguousarray(array).tobytes()
        return Tensor(proto.name, dtype, TensorShape.of(array.shape))

    def output(self, tensor: Tensor) -> None:
        """What the caller gets next, in TensorFlow's layout."""
        plain = self.plain(tensor)
        name = f"output{len(self._model.graph.output)}"
        self._add("Identity", [plain.name], name)
        _describe(self._model.graph.output.add(name=name), plain.dtype, plain.shape)

    def op(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        shape: TensorShape,
        dtype: DType | None = None,
        *,
        is_turned: bool = False,
        **attributes: Attribute,
    ) -> Tensor:
        """The result of an operator of ONNX; it has the type of the first input unless told."""
        name = self._new_name(op_type)
        self._add(op_type, [tensor.name for tensor in inputs], name, **attributes)
        return Tensor(name, dtype or inputs[0].dtype, shape, is_turned)

    # -- layouts -------------------------------------------------------------------------------

    def turned(self, tensor: Tensor) -> Tensor:
        """The value with its channels first."""
        return tensor if tensor.is_turned else self._in_other_layout(tensor)

    def plain(self, tensor: Tensor) -> Tensor:
        """The value as TensorFlow has it."""
        return self._in_other_layout(tensor) if tensor.is_turned else tensor

    def _in_other_layout(self, tensor: Tensor) -> Tensor:
        found = self._other.get(tensor.name)
        if found is None:
            order = channels_last(tensor.rank) if tensor.is_turned else channels_first(tensor.rank)
            found = self.op(
                "Transpose", [tensor], tensor.shape, is_turned=not tensor.is_turned, perm=order
            )
            self._other[tensor.name], self._other[found.name] = found, tensor
        return found

    # -- bytes ---------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The model, without operators whose results nobody reads."""
        graph = self._model.graph
        read = {output.name for output in graph.output}
        kept = []
        for node in reversed(graph.node):  # each after those that read it
            if not read.isdisjoint(node.output):
                read.update(node.input)
                kept.append(node)
        kept.reverse()
        del graph.node[:]
        graph.node.extend(kept)
        return bytes(self._model.SerializeToString(deterministic=True))

    def _add(self, op_type: str, inputs: Sequence[str], output: str, **attributes: Any) -> None:
        node = self._model.graph.node.add(
            name=output, op_type=op_type, input=inputs, output=[output]
        )
        for name, value in attributes.items():
            _set_attribute(node.attribute.add(name=name), value)

    def _new_name(self, what: str) -> str:
        self._count += 1
        return f"{what}_{self._count}"


def channels_first(rank: int) -> tuple[int, ...]:
    """The order of axes that puts the last one behind the first."""
    return (0, rank - 1, *range(1, rank - 1))


def channels_last(rank: int) -> tuple[int, ...]:
    """The order of axes that undoes ``channels_first``."""
    return (0, *range(2, rank), 1)


def turned_axis(axis: int, rank: int) -> int:
    """Where an axis of TensorFlow's is when channels come first."""
    return channels_first(rank).index(axis % rank)


def _number(dtype: DType) -> int:
    number = TYPES.get(dtype)
    if number is None:
        raise UnsupportedError
    return number


def _describe(info: Any, dtype: DType, shape: TensorShape) -> None:
    info.type.tensor_type.elem_type = _number(dtype)
    if shape.dims is None:
        return
    # Each size that is open has a name of its own: no two of them need be equal.
    info.type.tensor_type.shape.SetInParent()
    for axis, size in enumerate(shape.dims):
        dim = info.type.tensor_type.shape.dim.add()
        if size is None:
            dim.dim_param = f"{info.name}_{axis}"
        else:
            dim.dim_value = size


def _set_attribute(proto: Any, value: Any) -> None:
    if isinstance(value, (bool, int, np.integer)):
        proto.type, proto.i = _INT, int(value)
    elif isinstance(value, (float, np.floating)):
        proto.type, proto.f = _FLOAT, float(value)
    elif isinstance(value, str):
        proto.type, proto.s = _STRING, value.encode()
    elif all(isinstance(item, (int, np.integer)) for item in value):
        proto.type = _INTS
        proto.ints.extend(map(int, value))
    else:
        proto.type = _FLOATS
        proto.floats.extend(map(float, value))
