"""A program under construction.

In:   operations, with operands whose types and shapes are known.
Out:  blocks of operations; values to be used as further operands.
Not:  knows no op of TensorFlow, and no registers.

What does not depend on a loop's variables is written before that loop, however deep inside it was
asked for: nothing here has effects, and an index that is out of range does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.native.parts import (
    NUMBERS,
    Block,
    Known,
    Loop,
    Operand,
    Operation,
    Traced,
    UnsupportedError,
)

#: Operations of a program, bytes of one value and of all constants, at most.
MAX_OPERATIONS: Final = 10_000
MAX_BYTES: Final = 1 << 28
MAX_CONSTANTS: Final = 1 << 24
#: An operation that takes more nanoseconds, roughly, is for kernels that have threads.
MAX_COST: Final = 400_000
#: What an operation costs besides its elements.
_PER_OPERATION: Final = 4
#: Bytes of a constant array that is made of a number when the program is written.
_SMALL: Final = 1 << 16


class Emitter:
    """Writes operations."""

    def __init__(self) -> None:
        #: What is being written: the whole, and loops in it, the innermost last.
        self._blocks = [Block()]
        self._count = 0
        self._constant_bytes = 0
        self._constants: dict[tuple[Any, ...], Traced] = {}
        #: The values of constants.
        self.constants: dict[Traced, Array] = {}
        #: How often what is written now is done at most, in all loops around it; None if unknown.
        self.turns: int | None = 1
        #: The numbers of which vectors are made, by the vector.
        self.numbers_of: dict[Operand, list[Operand]] = {}
        #: What changes from node to node though it is nobody's output: which elements of an array
        #: of tensors are gone, since they were read, by the array's number; and where a random
        #: stream has come to, by the name of its node.
        self.states: dict[int | str, Operand] = {}

    @property
    def block(self) -> Block:
        """The whole."""
        return self._blocks[0]

    # -- operations ------------------------------------------------------------------------------

    def op(
        self,
        what: str,
        operands: Sequence[Operand],
        dtype: Any,
        shape: Sequence[int],
        numbers: Sequence[int] = (),
        cost: int | None = None,
    ) -> Traced:
        """One operation with one result.

        It costs as much as its largest operand has elements, unless it says something else.
        """
        traced = tuple(map(self.traced, operands))
        level = max((one.level for one in traced), default=0)
        result = Traced(np.dtype(dtype), tuple(map(int, shape)), level)
        if result.nbytes > MAX_BYTES:
            raise UnsupportedError
        if cost is None:
            cost = max(result.size, *(one.size for one in traced), 0)
        self._write(Operation(what, result, traced, tuple(map(int, numbers))), level, cost)
        return result

    def _write(self, part: Operation, level: int, cost: int) -> None:
        self._count += 1
        if self._count > MAX_OPERATIONS or cost > MAX_COST:
            raise UnsupportedError
        block = self._blocks[level]
        block.parts.append(part)
        block.cost += _PER_OPERATION + cost

    def same(self, what: str, *operands: Operand) -> Traced:
        """A function of operands of one shape and type, element by element."""
        first = operands[0]
        return self.op(f"{what}_{first.dtype.name}", operands, first.dtype, first.shape)

    def compare(self, what: str, x: Operand, y: Operand) -> Traced:
        """A comparison of two operands of one shape, as the operation is called."""
        return self.op(f"{what}_{x.dtype.name}", [x, y], np.bool_, x.shape)

    def select(self, condition: Operand, x: Operand, y: Operand) -> Traced:
        """Elements of ``x`` where the condition holds, and of ``y`` elsewhere."""
        return self.op(f"select_{x.dtype.itemsize}", [condition, x, y], x.dtype, x.shape)

    def reshape(self, x: Operand, shape: Sequence[int]) -> Operand:
        """The same elements in another shape."""
        if x.shape == tuple(shape):
            return x
        if isinstance(x, Known):
            return Known(x.value.reshape(shape))
        return self.op("reshape", [x], x.dtype, shape, cost=0)

    def broadcast(
        self, x: Operand, shape: Sequence[int], axes: Sequence[int] | None = None
    ) -> Operand:
        """A value repeated; its axes become some of the result's, unless said the last ones."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        if axes is None:
            axes = range(len(shape) - len(x.shape), len(shape))
        among = [1] * len(shape)
        for axis, size in zip(axes, x.shape, strict=True):
            among[axis] = size
        x = self.reshape(x, among)
        if isinstance(x, Known) and prod(shape) * x.dtype.itemsize <= _SMALL:
            return Known(np.broadcast_to(x.value, shape))
        if prod(shape) == prod(among):
            return self.reshape(x, shape)
        if prod(among) == 1:
            return self.op(f"fill_{x.dtype.itemsize}", [x], x.dtype, shape, cost=prod(shape) // 8)
        steps = [0 if size == 1 else step for size, step in zip(among, _steps(among), strict=True)]
        return self._copy(x, shape, steps)

    def convert(self, x: Operand, dtype: Any) -> Operand:
        """The same numbers in another type."""
        if x.dtype == np.dtype(dtype):
            return x
        return self.op(f"{np.dtype(dtype).name}_from_{x.dtype.name}", [x], dtype, x.shape)

    def transpose(self, x: Operand, order: Sequence[int]) -> Operand:
        """The same with its axes in another order."""
        shape = [x.shape[axis] for axis in order]
        if [axis for axis in order if x.shape[axis] > 1] == sorted(
            axis for axis in order if x.shape[axis] > 1
        ):
            return self.reshape(x, shape)
        steps = _steps(x.shape)
        return self._copy(x, shape, [steps[axis] for axis in order])

    def concatenate(self, parts: Sequence[Operand], axis: int) -> Traced:
        """Parts side by side along an axis."""
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        traced = [self.traced(part) for part in parts]
        to_steps, begin, numbers = _steps(shape), 0, list[int]()
        for part in traced:
            copied = _copied(part.shape, _steps(part.shape), to_steps)
            numbers += [len(copied) + 2, 0, begin * to_steps[axis], *copied]
            begin += part.shape[axis]
        return self.op("concatenate", traced, parts[0].dtype, shape, numbers)

    def slice(
        self, x: Operand, begin: Sequence[int], end: Sequence[int], steps: Sequence[int]
    ) -> Operand:
        """A part of a value; steps are positive."""
        shape = [-(-(b - a) // s) for a, b, s in zip(begin, end, steps, strict=True)]
        if tuple(shape) == x.shape:
            return x
        from_steps = _steps(x.shape)
        first = sum(at * step for at, step in zip(begin, from_steps, strict=True))
        wide = [step * by for step, by in zip(from_steps, steps, strict=True)]
        return self._copy(x, shape, wide, first if prod(shape) else 0)

    def one_at(self, x: Operand, starts: Mapping[int, Operand]) -> Operand:
        """One place along some axes, which stay; the indices must be in range."""
        for axis, index in starts.items():
            shape, steps = list(x.shape), _steps(x.shape)
            shape[axis] = 1
            copied = _copied(shape, steps, _steps(shape))
            greatest = x.shape[axis] - 1, steps[axis], index.dtype.itemsize == 8
            x = self.op(
                f"take_{x.dtype.itemsize}", [x, index], x.dtype, shape, (*greatest, *copied),
                cost=prod(shape),
            )  # fmt: skip
        return x

    def row(self, x: Operand, index: Operand) -> Operand:
        """One element along the first axis; the index must be in range."""
        return self.op(
            "row", [x, index], x.dtype, x.shape[1:], _row_numbers(x, index), prod(x.shape[1:])
        )

    def rows(self, x: Operand, indices: Operand) -> Operand:
        """Elements along the first axis, by their indices, which must be in range."""
        shape = [*indices.shape, *x.shape[1:]]
        return self.op("rows", [x, indices], x.dtype, shape, _row_numbers(x, indices), prod(shape))

    def with_row(self, x: Operand, index: Operand, element: Operand) -> Traced:
        """A value with another element along the first axis; the index must be in range."""
        return self.op(
            "put_row", [x, element, index], x.dtype, x.shape, _row_numbers(x, index),
            prod(x.shape[1:]),
        )  # fmt: skip

    def reduce(self, what: str, x: Operand, axes: Sequence[int]) -> Operand:
        """All elements along some axes, combined: sum, prod, max, min, all or any."""
        axes = sorted(axes)
        kept = [axis for axis in range(len(x.shape)) if axis not in axes]
        shape = [x.shape[axis] for axis in kept]
        if not axes:
            return x
        if axes != list(range(axes[0], axes[-1] + 1)):
            x, axes = self.transpose(x, [*kept, *axes]), list(range(len(kept), len(x.shape)))
        return self.op(f"{what}_{x.dtype.name}", [x], x.dtype, shape, _around(x, axes[0], axes[-1]))

    def place_of_most(self, x: Operand, axis: int, dtype: np.dtype[Any]) -> Traced:
        """Where the first of the largest elements is; the size if one of them is no number."""
        shape = [*x.shape[:axis], *x.shape[axis + 1 :]]
        return self.op(
            f"argmax_{x.dtype.name}_{dtype.name}", [x], dtype, shape, _around(x, axis, axis)
        )

    def _copy(
        self, x: Operand, shape: Sequence[int], steps: Sequence[int], first: int = 0
    ) -> Traced:
        numbers = first, 0, *_copied(shape, steps, _steps(shape))
        return self.op(f"copy_{x.dtype.itemsize}", [x], x.dtype, shape, numbers, prod(shape))

    # -- guards ----------------------------------------------------------------------------------

    def need(self, condition: Operand) -> None:
        """Have the nodes compute all of it, unless a condition holds."""
        if isinstance(condition, Known):
            if not condition.value:
                raise UnsupportedError
            return
        self._write(Operation("need", None, (condition,)), condition.level, 0)

    def need_index(self, index: Operand, size: int) -> None:
        """The same unless all indices are in range."""
        if isinstance(index, Known):
            self.need(Known(np.asarray(((index.value >= 0) & (index.value < size)).all())))
            return
        is_wide = index.dtype.itemsize == 8
        self.need(self.op("in_range", [index], np.bool_, (), (size, is_wide)))

    # -- constants -------------------------------------------------------------------------------

    def number(self, value: Any, dtype: np.dtype[Any]) -> Known:
        """A constant of rank 0."""
        return Known(np.asarray(value, dtype))

    def full(self, value: Any, dtype: np.dtype[Any], shape: Sequence[int]) -> Operand:
        """An array of equal numbers."""
        return self.broadcast(self.number(value, dtype), shape)

    def traced(self, operand: Operand) -> Traced:
        """An operand as a value of the program."""
        if isinstance(operand, Traced):
            return operand
        if operand.dtype not in NUMBERS:
            raise UnsupportedError
        array = np.ascontiguousarray(operand.value).reshape(operand.shape)
        key = array.dtype, array.shape, array.tobytes()
        if key not in self._constants:
            self._constant_bytes += array.nbytes
            if self._constant_bytes > MAX_CONSTANTS:
                raise UnsupportedError
            made = self._constants[key] = Traced(array.dtype, array.shape)
            self.constants[made] = array
        return self._constants[key]

    # -- what is written inside of a loop --------------------------------------------------------

    @contextmanager
    def repeated(self, turns: int | None) -> Iterator[None]:
        """Write what is done so often at most, or nobody knows how often."""
        kept = self.turns
        self.turns = None if kept is None or turns is None else kept * turns
        try:
            yield
        finally:
            self.turns = kept

    @property
    def level(self) -> int:
        """In how many loops is written what is written now."""
        return len(self._blocks) - 1

    @contextmanager
    def inside(self) -> Iterator[Block]:
        """Write into a block of its own, one level deeper."""
        kept, block = self.states, Block()
        self.states = dict(kept)
        self._blocks.append(block)
        try:
            yield block
        finally:
            self._blocks.pop()
            self.states = kept

    def mark(self) -> list[tuple[int, int]]:
        """How far all blocks have come."""
        return [(len(block.parts), block.cost) for block in self._blocks]

    def rewind(self, mark: Sequence[tuple[int, int]]) -> None:
        """Forget what was written since then."""
        for block, (count, cost) in zip(self._blocks, mark, strict=True):
            del block.parts[count:]
            block.cost = cost

    def repeat(self, loop: Loop) -> None:
        """Write a loop."""
        self._blocks[-1].parts.append(loop)
        self._blocks[-1].cost += loop.body.cost


def _steps(shape: Sequence[int]) -> list[int]:
    """From element to element along each axis."""
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _copied(shape: Sequence[int], from_steps: Sequence[int], to_steps: Sequence[int]) -> list[int]:
    """A rank, and size and steps of each axis; axes that are one are told as one."""
    axes: list[list[int]] = []
    for size, from_step, to_step in zip(shape, from_steps, to_steps, strict=True):
        if size == 1:
            continue
        if axes and axes[-1][1:] == [from_step * size, to_step * size]:
            axes[-1] = [axes[-1][0] * size, from_step, to_step]
        else:
            axes.append([size, from_step, to_step])
    axes = axes or [[1, 1, 1]]
    return [len(axes), *(number for axis in axes for number in axis)]


def _row_numbers(x: Operand, index: Operand) -> tuple[int, int, int]:
    size = prod(x.shape[1:]) * x.dtype.itemsize
    return x.shape[0] - 1, size, index.dtype.itemsize == 8


def _around(x: Operand, first: int, last: int) -> tuple[int, int, int]:
    """Elements before some axes, along these, and after."""
    return prod(x.shape[:first]), prod(x.shape[first : last + 1]), prod(x.shape[last + 1 :])
