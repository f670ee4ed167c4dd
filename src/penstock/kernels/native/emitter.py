"""A program of StableHLO under construction.

In:   operations, with operands whose types and shapes are known.
Out:  the text of a module; values to be used as further operands.
Not:  knows no op of TensorFlow.

The text is made of numbers, of StableHLO's own words, and of nothing else: no name or string of a
model ever enters it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core.values import Array

#: What elements are called.
_ELEMENTS: Final = {
    np.dtype(np.bool_): "i1",
    np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.uint8): "ui8",
}
#: The types that programs compute with.
NUMBERS: Final = frozenset(_ELEMENTS) - {np.dtype(np.uint8)}
#: Work that one run of a program may do in loops: about as many nanoseconds.  Who needs more is
#: computed in a way that can be interrupted.
FUEL: Final = 200_000_000
#: Lines of a program, bytes of one value and of all constants, at most.  XLA would take minutes,
#: or end the process, where there is no more memory; the nodes have words for that.
MAX_LINES: Final = 10_000
MAX_BYTES: Final = 1 << 30
MAX_CONSTANTS: Final = 1 << 24
#: What an operation costs besides its elements.
_PER_OPERATION: Final = 4


class UnsupportedError(Exception):
    """A program would compute something else than the nodes do, or nobody knows how to write it."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A value that is known while the program is written."""

    value: Array

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its element type."""
        return self.value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        shape: tuple[int, ...] = self.value.shape
        return shape


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A value that the program computes."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def type(self) -> str:
        """Its type, in words of StableHLO."""
        return type_text(self.dtype, self.shape)


#: An array, in some way.
Operand: TypeAlias = Known | Traced


def type_text(dtype: np.dtype[Any], shape: Sequence[int]) -> str:
    """The type of an array."""
    if dtype not in _ELEMENTS:
        raise UnsupportedError
    return f"tensor<{''.join(f'{int(size)}x' for size in shape)}{_ELEMENTS[dtype]}>"


class Emitter:
    """Writes operations, one per line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count = 0
        #: How many lines there are, within other operations, too; and bytes of constants.
        self._line_count = 0
        self._constant_bytes = 0
        self._constants: dict[tuple[Any, ...], Traced] = {}
        #: Whether all was as the nodes want it, so far: else they say what is wrong.
        self.ok: Operand = Known(np.asarray(np.True_))
        #: How much work may still be done in loops.
        self.fuel: Operand = Known(np.asarray(np.int64(FUEL)))
        #: What the lines so far cost.
        self.cost = 0
        #: How often what is written now is done at most, in all loops around it; None if unknown.
        self.turns: int | None = 1
        #: The numbers of which vectors are made, by the vector's name.
        self.numbers_of: dict[str, list[Operand]] = {}
        #: Which elements of arrays of tensors are gone, since they were read, by the array.
        self.cleared: dict[int, Operand] = {}

    @property
    def text(self) -> str:
        """What was written."""
        return "\n".join(self._lines)

    # -- operations ------------------------------------------------------------------------------

    def op(
        self,
        name: str,
        operands: Sequence[Operand],
        dtype: np.dtype[Any],
        shape: Sequence[int],
        attributes: str = "",
        region: str = "",
        touched: int | None = None,
    ) -> Traced:
        """One operation with one result.

        It costs as much as its largest operand has elements, unless it touches fewer.
        """
        if prod(shape) * dtype.itemsize > MAX_BYTES:
            raise UnsupportedError
        traced = [self.traced(operand) for operand in operands]
        result = Traced(self.new_name(), dtype, tuple(shape))
        places = ", ".join(operand.name for operand in traced)
        types = ", ".join(operand.type for operand in traced)
        inside = f" ({region})" if region else ""
        options = f" {{{attributes}}}" if attributes else ""
        self.line(
            f'{result.name} = "stablehlo.{name}"({places}){inside}{options} : '
            f"({types}) -> {result.type}"
        )
        if touched is None:
            touched = max(prod(result.shape), *(prod(operand.shape) for operand in traced), 0)
        self.cost += _PER_OPERATION + touched
        return result

    def same(
        self, name: str, *operands: Operand, dtype: Any = None, attributes: str = ""
    ) -> Traced:
        """An operation on operands of one shape, element by element."""
        first = operands[0]
        return self.op(name, operands, np.dtype(dtype or first.dtype), first.shape, attributes)

    def compare(self, direction: str, x: Operand, y: Operand) -> Traced:
        """A comparison of two operands of one shape: EQ, NE, LT, LE, GT or GE."""
        how = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
        return self.same("compare", x, y, dtype=np.bool_, attributes=how)

    def select(self, condition: Operand, x: Operand, y: Operand) -> Traced:
        """Elements of ``x`` where the condition holds, and of ``y`` elsewhere."""
        return self.op("select", [condition, x, y], x.dtype, x.shape)

    def reshape(self, x: Operand, shape: Sequence[int]) -> Operand:
        """The same elements in another shape."""
        if x.shape == tuple(shape):
            return x
        return self.op("reshape", [x], x.dtype, shape)

    def broadcast(
        self, x: Operand, shape: Sequence[int], axes: Sequence[int] | None = None
    ) -> Operand:
        """A value repeated; its axes become some of the result's, unless said the last ones."""
        if x.shape == tuple(shape):
            return x
        if axes is None:
            axes = range(len(shape) - len(x.shape), len(shape))
        return self.op(
            "broadcast_in_dim", [x], x.dtype, shape, f"broadcast_dimensions = {integers(axes)}"
        )

    def convert(self, x: Operand, dtype: Any) -> Operand:
        """The same numbers in another type."""
        return x if x.dtype == np.dtype(dtype) else self.same("convert", x, dtype=dtype)

    def transpose(self, x: Operand, order: Sequence[int]) -> Traced:
        """The same with its axes in another order."""
        shape = [x.shape[axis] for axis in order]
        return self.op("transpose", [x], x.dtype, shape, f"permutation = {integers(order)}")

    def concatenate(self, parts: Sequence[Operand], axis: int) -> Traced:
        """Parts side by side along an axis."""
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self.op("concatenate", parts, parts[0].dtype, shape, f"dimension = {axis} : i64")

    def slice(
        self, x: Operand, begin: Sequence[int], end: Sequence[int], steps: Sequence[int]
    ) -> Traced:
        """A part of a value; steps are positive."""
        shape = [-(-(b - a) // s) for a, b, s in zip(begin, end, steps, strict=True)]
        where = ("start_indices", begin), ("limit_indices", end), ("strides", steps)
        text = ", ".join(f"{name} = {integers(numbers)}" for name, numbers in where)
        return self.op("slice", [x], x.dtype, shape, text)

    def one_at(self, x: Operand, starts: Mapping[int, Operand]) -> Operand:
        """One place along some axes, which stay; the indices must be in range."""
        if not starts:
            return x
        kind = next(iter(starts.values())).dtype
        zero = self.number(0, kind)
        where = [self.convert(starts.get(axis, zero), kind) for axis in range(len(x.shape))]
        sizes = [1 if axis in starts else size for axis, size in enumerate(x.shape)]
        text = f"slice_sizes = {integers(sizes)}"
        return self.op("dynamic_slice", [x, *where], x.dtype, sizes, text, touched=prod(sizes))

    def row(self, x: Operand, index: Operand) -> Operand:
        """One element along the first axis; the index must be in range."""
        return self.reshape(self.one_at(x, {0: index}), x.shape[1:])

    def with_row(self, x: Operand, index: Operand, element: Operand) -> Traced:
        """A value with another element along the first axis; the index must be in range."""
        starts = [index, *[self.number(0, index.dtype)] * (len(x.shape) - 1)]
        part = self.reshape(element, (1, *x.shape[1:]))
        # In a loop it is done in place.
        return self.op(
            "dynamic_update_slice", [x, part, *starts], x.dtype, x.shape, touched=prod(part.shape)
        )

    def reduce(self, name: str, x: Operand, start: Any, axes: Sequence[int]) -> Traced:
        """All elements along some axes, combined by an operation of two of them."""
        one = type_text(x.dtype, ())
        a, b, r = self.new_name(), self.new_name(), self.new_name()
        region = (
            f'{{\n^bb0({a}: {one}, {b}: {one}):\n{r} = "stablehlo.{name}"({a}, {b}) : '
            f'({one}, {one}) -> {one}\n"stablehlo.return"({r}) : ({one}) -> ()\n}}'
        )
        shape = [size for axis, size in enumerate(x.shape) if axis not in set(axes)]
        operands = [x, self.number(start, x.dtype)]
        return self.op("reduce", operands, x.dtype, shape, f"dimensions = {integers(axes)}", region)

    # -- guards ----------------------------------------------------------------------------------

    def need(self, condition: Operand) -> None:
        """Have the nodes compute all of it, unless a condition holds."""
        if isinstance(condition, Known) and isinstance(self.ok, Known):
            self.ok = Known(np.asarray(self.ok.value & condition.value))
        else:
            self.ok = self.same("and", self.ok, condition)

    def need_index(self, index: Operand, size: int) -> None:
        """The same unless all indices are in range."""
        if isinstance(index, Known):
            self.need(Known(np.asarray(((index.value >= 0) & (index.value < size)).all())))
            return
        ends = (self.full(end, index.dtype, index.shape) for end in (0, size))
        low, high = self.compare("GE", index, next(ends)), self.compare("LT", index, next(ends))
        inside: Operand = self.same("and", low, high)
        if index.shape:
            inside = self.reduce("and", inside, np.True_, range(len(index.shape)))
        self.need(inside)

    # -- constants and names ---------------------------------------------------------------------

    def number(self, value: Any, dtype: np.dtype[Any]) -> Known:
        """A constant of rank 0."""
        return Known(np.asarray(value, dtype))

    def full(self, value: Any, dtype: np.dtype[Any], shape: Sequence[int]) -> Operand:
        """An array of equal numbers."""
        return self.broadcast(self.number(value, dtype), shape)

    def traced(self, operand: Operand) -> Traced:
        """An operand as a name in the program."""
        if isinstance(operand, Traced):
            return operand
        array = np.ascontiguousarray(operand.value).reshape(operand.shape)
        key = array.dtype, array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self._constant(array)
        return self._constants[key]

    def _constant(self, array: Array) -> Traced:
        self._constant_bytes += array.nbytes
        if self._constant_bytes > MAX_CONSTANTS:
            raise UnsupportedError
        result = Traced(self.new_name(), array.dtype, array.shape)
        if array.size == 0:
            content = "dense<>"
        elif array.dtype == np.bool_:
            content = f"dense<{_nested(array.tolist())}>"
        else:
            content = f'dense<"0x{array.astype(array.dtype.newbyteorder("<")).tobytes().hex()}">'
        self.line(
            f'{result.name} = "stablehlo.constant"() {{value = {content} : {result.type}}} : '
            f"() -> {result.type}"
        )
        return result

    def new_name(self) -> str:
        """A name that nothing has yet."""
        self._count += 1
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        """Write a line; raises UnsupportedError if there are too many."""
        self._line_count += 1
        if self._line_count > MAX_LINES:
            raise UnsupportedError
        self._lines.append(text)

    # -- what is written inside of an operation --------------------------------------------------

    @contextmanager
    def repeated(self, turns: int | None) -> Iterator[None]:
        """Write what is done so often at most, or nobody knows how often."""
        kept = self.turns
        self.turns = None if kept is None or turns is None else kept * turns
        try:
            yield
        finally:
            self.turns = kept

    @contextmanager
    def inside(self) -> Iterator[Callable[[], str]]:
        """Write into a region of an operation; what is yielded tells its text.

        What was known before may be used there; what is written there is unknown afterwards.
        """
        kept = self._lines, self._constants, self.ok, self.fuel, self.cost, self.cleared
        # Constants are written once more: what comes from outside is no constant to XLA.
        self._lines, self._constants, self.cost, self.cleared = [], {}, 0, dict(self.cleared)
        inner = self._lines
        try:
            yield lambda: "\n".join(inner)
        finally:
            self._lines, self._constants, self.ok, self.fuel, self.cost, self.cleared = kept


def integers(numbers: Sequence[int]) -> str:
    """Numbers as an attribute."""
    listed = ", ".join(str(int(number)) for number in numbers)
    return f"array<i64: {listed}>" if listed else "array<i64>"


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    return "true" if value else "false"
