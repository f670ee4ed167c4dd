"""Who reads what in a program, and where for the last time.

In:   a ``Program``.
Out:  ``Uses``.
Not:  knows no registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from penstock.kernels.native.parts import Block, Loop, Operation, Traced
from penstock.kernels.native.program import Program

#: Operations that touch no more of their operands than these are; all others that are named
#: after a type of numbers may read beyond, up to a whole vector.
_EXACT: Final = (
    *("copy_", "take_", "fill_", "select_", "row", "put_row", "in_range", "concatenate", "need"),
    *("sum_", "prod_", "max_", "min_", "argmax_", "float64_from_", "int"),
)
#: Where in a block something is.
Position: TypeAlias = int


class Uses:
    """What the operations of a program need."""

    def __init__(self, program: Program) -> None:
        #: What is another value in another shape, or by another name.
        self._origins: Final[dict[Traced, Traced]] = {}
        #: By block: the last place where something is read, by its origin.
        self._last: Final[dict[int, dict[Traced, Position]]] = {}
        #: By loop: what is read inside, by its origin.
        self._inside: Final[dict[int, frozenset[Traced]]] = {}
        #: Values that somebody reads; and origins of those that are read beyond their ends.
        self.is_used: Final[set[Traced]] = set(program.results)
        self.needs_room: Final[set[Traced]] = set()
        self._find_origins(program.block)
        self._note_used(program.block)
        read = self._note_block(program.block)
        self._note_last(program.block, program.results, read)

    def origin(self, value: Traced) -> Traced:
        """What a value is in truth."""
        while value in self._origins:
            value = self._origins[value]
        return value

    def last_in(self, block: Block) -> dict[Traced, Position]:
        """Where in a block something is read for the last time."""
        return self._last[id(block)]

    def is_read_in(self, loop: Loop, origin: Traced) -> bool:
        """Whether a loop reads something while it goes on."""
        return origin in self._inside[id(loop)]

    def _find_origins(self, block: Block) -> None:
        for part in block.parts:
            if isinstance(part, Loop):
                self._find_origins(part.cond)
                self._find_origins(part.body)
                self._origins.update(zip(part.results, part.variables, strict=True))
            elif part.what == "reshape" and part.result is not None:
                self._origins[part.result] = part.operands[0]

    def _note_used(self, block: Block) -> None:
        """What is needed, from the end to the beginning."""
        for part in reversed(block.parts):
            if isinstance(part, Loop):
                self.is_used.update((part.test, *part.ends, *part.starts))
                self._note_used(part.body)
                self._note_used(part.cond)
            elif part.result is None or part.result in self.is_used:
                self.is_used.update(part.operands)

    def _note_block(self, block: Block) -> set[Traced]:
        """Note who reads what in a block; returns the origins of all that is read."""
        self._last[id(block)] = {}
        read: set[Traced] = set()
        for position, part in enumerate(block.parts):
            if isinstance(part, Loop):
                inner = self._note_block(part.cond) | self._note_block(part.body)
                self._note_last(part.cond, (part.test,), inner)
                self._note_last(part.body, part.ends, inner)
                self._inside[id(part)] = frozenset(inner)
                inner.update(map(self.origin, part.starts))
                names: Iterable[Traced] = inner
            elif part.result is not None and part.result not in self.is_used:
                continue
            else:
                names = set(map(self.origin, part.operands))
                self.needs_room.update(map(self.origin, _read_beyond(part)))
            for origin in names:
                self._last[id(block)][origin] = position
            read.update(names)
        return read

    def _note_last(self, block: Block, values: Sequence[Traced], read: set[Traced]) -> None:
        """What is read at the end of a block."""
        for origin in map(self.origin, values):
            self._last[id(block)][origin] = len(block.parts)
            read.add(origin)


def _read_beyond(part: Operation) -> Iterator[Traced]:
    """The operands of which functions of vectors may read more than there is."""
    if part.what == "product_float32":
        if part.operands[1].shape[-1] % 16:
            yield part.operands[1]
    elif part.what.endswith("_float32") and not part.what.startswith(_EXACT):
        yield from part.operands
