"""What Python's operators mean between tensors.

In:   something that stands for a tensor, and whatever stands beside it.
Out:  nodes: ``x + 1`` is an AddV2 with a constant of x's type.
Not:  compares nothing by ``==``, which stays identity, so that tensors can be keys.

Integers divide to real numbers by ``/``, as in Python.  ``& | ^ ~`` are logical between
truth values and work bit by bit between integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from penstock.builder.slicing import parse_slices
from penstock.core import dtypes

if TYPE_CHECKING:
    from penstock.builder.graph import Graph
    from penstock.builder.tensor import Tensor
    from penstock.core.dtypes import DType

#: Integers that a float32 holds exactly; a quotient of wider ones is a float64.
_NARROW: Final = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16)


class Operators:
    """Mixed into what stands for one tensor."""

    __slots__ = ()
    #: Makes numpy arrays on the left leave the operator to us.
    __array_ufunc__ = None

    if TYPE_CHECKING:
        # Tensors have a field of this name, variables a property.

        @property
        def graph(self) -> Graph:
            """The graph that the tensor belongs to."""

        @property
        def dtype(self) -> DType:
            """The type of its elements."""

    def as_tensor(self) -> Tensor:
        """The tensor that it stands for."""
        raise NotImplementedError

    def _apply(self, op: str, name: str, *inputs: Any) -> Tensor:
        result: Tensor = self.graph.apply(op, *inputs, name=name)
        return result

    def __add__(self, other: Any) -> Tensor:
        return self._apply(self._adding, "add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return self._apply(self._adding, "add", other, self)

    @property
    def _adding(self) -> str:
        return "Add" if self.dtype.base is dtypes.string else "AddV2"

    def __sub__(self, other: Any) -> Tensor:
        return self._apply("Sub", "sub", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return self._apply("Sub", "sub", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return self._apply("Mul", "mul", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return self._apply("Mul", "mul", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return self._apply("RealDiv", "truediv", self._as_real(self), self._as_real(other))

    def __rtruediv__(self, other: Any) -> Tensor:
        return self._apply("RealDiv", "truediv", self._as_real(other), self._as_real(self))

    def _as_real(self, operand: Any) -> Any:
        """An integer tensor as a real one; anything else as it is."""
        if not isinstance(operand, Operators) or not operand.dtype.is_integer:
            return operand
        wanted = dtypes.float32 if operand.dtype.base in _NARROW else dtypes.float64
        return self.graph.apply("Cast", operand, DstT=wanted, name="truediv/Cast")

    def __floordiv__(self, other: Any) -> Tensor:
        return self._apply("FloorDiv", "floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return self._apply("FloorDiv", "floordiv", other, self)

    def __mod__(self, other: Any) -> Tensor:
        return self._apply("FloorMod", "mod", self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return self._apply("FloorMod", "mod", other, self)

    def __pow__(self, other: Any) -> Tensor:
        return self._apply("Pow", "pow", self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return self._apply("Pow", "pow", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return self._apply("BatchMatMulV2", "matmul", self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return self._apply("BatchMatMulV2", "matmul", other, self)

    def __neg__(self) -> Tensor:
        return self._apply("Neg", "Neg", self)

    def __abs__(self) -> Tensor:
        return self._apply("ComplexAbs" if self.dtype.is_complex else "Abs", "Abs", self)

    def __lt__(self, other: Any) -> Tensor:
        return self._apply("Less", "Less", self, other)

    def __le__(self, other: Any) -> Tensor:
        return self._apply("LessEqual", "LessEqual", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return self._apply("Greater", "Greater", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return self._apply("GreaterEqual", "GreaterEqual", self, other)

    def _logical(self, logical: str, bitwise: str) -> str:
        return logical if self.dtype.base is dtypes.bool_ else bitwise

    def __and__(self, other: Any) -> Tensor:
        return self._apply(self._logical("LogicalAnd", "BitwiseAnd"), "and", self, other)

    def __rand__(self, other: Any) -> Tensor:
        return self._apply(self._logical("LogicalAnd", "BitwiseAnd"), "and", other, self)

    def __or__(self, other: Any) -> Tensor:
        return self._apply(self._logical("LogicalOr", "BitwiseOr"), "or", self, other)

    def __ror__(self, other: Any) -> Tensor:
        return self._apply(self._logical("LogicalOr", "BitwiseOr"), "or", other, self)

    def __xor__(self, other: Any) -> Tensor:
        # Between truth values, "one of the two" and "not the same" are one thing.
        return self._apply(self._logical("NotEqual", "BitwiseXor"), "xor", self, other)

    def __rxor__(self, other: Any) -> Tensor:
        return self._apply(self._logical("NotEqual", "BitwiseXor"), "xor", other, self)

    def __invert__(self) -> Tensor:
        return self._apply(self._logical("LogicalNot", "Invert"), "not", self)

    def __getitem__(self, key: Any) -> Tensor:
        slices = parse_slices(key)
        result: Tensor = self.graph.apply(
            "StridedSlice", self, *slices.inputs(), name="strided_slice", **slices.masks()
        )
        return result

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self} has no truth value before a step runs; use cond or ops.select to choose "
            "by it, and `is` to compare tensors themselves"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError(
            f"{self} cannot be iterated over before a step runs; use ops.unpack for a known "
            "number of parts, or while_loop"
        )
