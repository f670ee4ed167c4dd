"""Shape rules that are written as a signature.

In:   text such as ``[b,n,m], [b,m,k] -> [b,n,k]``.
Out:  a shape rule.
Not:  registers nothing.

One shape per argument of the op, in order; one that stands for a list of tensors is that of each
of them.  Nothing in front of the arrow: the inputs may be anything.  A shape is

| written | means |
| --- | --- |
| ``*`` | any shape |
| ``s`` | a shape; the same name means the same shape |
| ``[]``, ``[2,?]`` | these sizes, of which ``?`` is any |
| ``[n,m]`` | sizes with names; the same name means the same size |
| ``[...,n]`` | any number of sizes in front; the same ones wherever there are dots |
| ``[...x,n]`` | the same with a name |

and in an output also

| written | means |
| --- | --- |
| ``[$k]`` | the attribute ``k`` is the size |
| ``[#1]`` | the value of the argument number 1 is the size |
| ``[:1]``, ``:1`` | the value of the argument number 1 is a list of sizes |
| ``@shape`` | the attribute ``shape`` is the shape, or the list of the shapes |
| ``s^t`` | both broadcast |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.partial_shapes import (
    Dim,
    at_least_rank,
    broadcast,
    concat,
    merge,
    merge_dims,
    of_rank,
    part_of,
    shape,
    with_rank,
)
from penstock.kernels.api.shape_context import ShapeContext

_RUN: Final = "..."


def rule_from(text: str) -> Callable[[ShapeContext], Sequence[TensorShape]]:
    """The rule that a signature stands for."""
    inputs, outputs = (_split(side) for side in text.split("->"))

    def rule(node: ShapeContext) -> Sequence[TensorShape]:
        return _Match(node).outputs(inputs, outputs)

    return rule


def _split(side: str) -> tuple[str, ...]:
    """The shapes of one side: at the commas that stand outside of brackets."""
    parts, depth, start = [], 0, 0
    text = side.strip()
    for place, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if char == "," and not depth:
            parts.append(text[start:place].strip())
            start = place + 1
    return (*parts, text[start:].strip()) if text else ()


class _Match:
    """One node against one signature."""

    def __init__(self, node: ShapeContext) -> None:
        self.node = node
        #: What names stand for: whole shapes, runs of sizes (with their dots), and sizes.
        self.shapes: dict[str, TensorShape] = {}
        self.sizes: dict[str, Dim] = {}
        #: The first slot of each argument, and how long it is if the signature says so.
        self.slots: list[int] = []
        self.lengths: dict[int, int] = {}

    def outputs(self, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> list[TensorShape]:
        """The shapes of all outputs; raises if the inputs do not match."""
        op, values = self.node.attrs.op, self.node.attrs.values
        slot = 0
        for text, arg in zip(inputs or ("*",) * len(op.inputs), op.inputs, strict=True):
            self.slots.append(slot)
            if text[1:-1].isdecimal():
                self.lengths[slot] = int(text[1:-1])
            for _ in arg.types(values):
                self.read(text, self.node.input(slot))
                slot += 1
        found: list[TensorShape] = []
        for text, arg in zip(outputs, op.outputs, strict=True):
            listed = values.get(text[1:]) if text[0] == "@" else None
            if isinstance(listed, tuple):
                found += listed
            else:
                found += [self.made(text)] * len(arg.types(values))
        return found

    def read(self, text: str, given: TensorShape) -> None:
        """Match an input; raises if it does not."""
        if text == "*":
            return
        if text[0] != "[":
            self.shapes[text] = merge(self.shapes.get(text, UNKNOWN), given)
            return
        dims = text[1:-1].split(",") if len(text) > 2 else []
        runs = [place for place, name in enumerate(dims) if name.startswith(_RUN)]
        if not runs:
            self.read_sizes(dims, with_rank(given, len(dims)))
            return
        known = at_least_rank(given, len(dims) - 1)
        if known.dims is None:
            return
        start, tail = runs[0], len(dims) - runs[0] - 1
        stop = len(known.dims) - tail
        name = dims[start]
        run = part_of(known, start, stop)
        self.shapes[name] = merge(self.shapes.get(name, UNKNOWN), run)
        self.read_sizes(dims[:start], part_of(known, 0, start))
        self.read_sizes(dims[start + 1 :], part_of(known, stop))

    def read_sizes(self, names: Sequence[str], given: TensorShape) -> None:
        assert given.dims is not None  # the rank is known here
        for name, size in zip(names, given.dims, strict=True):
            if name.isdecimal():
                if size is not None and size != int(name):
                    raise InvalidArgumentError(f"Dimension must be {name} but is {size}")
            elif name != "?":
                self.sizes[name] = merge_dims(self.sizes.get(name), size)

    def made(self, text: str) -> TensorShape:
        """The shape of an output."""
        if text == "*":
            return UNKNOWN
        if text[0] == "[":
            return concat(*map(self.part, text[1:-1].split(","))) if len(text) > 2 else shape()
        if text[0] == "@":
            return self.node.attrs.shape(text[1:])
        if text[0] == ":":
            return self.asked(text)
        return broadcast(*(self.shapes.get(name, UNKNOWN) for name in text.split("^")))

    def part(self, name: str) -> TensorShape:
        """One size of an output, or a run of them."""
        if name.startswith(_RUN):
            return self.shapes.get(name, UNKNOWN)
        if name[0] == ":":
            return self.asked(name)
        return shape(self.size(name))

    def asked(self, text: str) -> TensorShape:
        """The sizes that an argument holds."""
        slot = self.slots[int(text[1:])]
        return merge(self.node.sizes(slot), of_rank(self.lengths.get(slot)))

    def size(self, name: str) -> Dim:
        if name == "?":
            return None
        if name.isdecimal():
            return int(name)
        if name[0] == "$":
            size = self.node.attrs.int(name[1:])
            return size if size >= 0 else None
        if name[0] == "#":
            return self.node.count(self.slots[int(name[1:])])
        return self.sizes.get(name)
