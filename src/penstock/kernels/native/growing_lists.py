"""Lists that grow and shrink, as room for as many elements as there can be, and a count.

In:   a list, an element.
Out:  the list with one more, or one less.
Not:  makes no more room than a list's own limit, or the loops around it, can fill; where more
      comes, a guard fails.

Gradients of loops have such lists: what an iteration computes is put on a list, and taken from it
by the loop that goes back.
"""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from penstock.core.values import Value
from penstock.dataclass import replace
from penstock.kernels.native.emitter import Emitter
from penstock.kernels.native.list_rules import Elements, element_type, shape_of, with_element
from penstock.kernels.native.parts import Known, Operand, UnsupportedError
from penstock.kernels.native.rules import Written, rule

_COUNT: Final = np.dtype(np.int32)
#: Bytes of room for a list, at most: a loop may end long before it has filled it.
MAX_ROOM: Final = 1 << 23


@rule("EmptyTensorList", admits=element_type("element_dtype"))
def _empty(node: Written) -> Elements:
    most: Value = node.known(1)
    node.need(most.ndim == 0)
    shape = shape_of(node, 0)
    size = None if most < 0 else int(most)
    made = Elements(
        size, node.attrs["element_dtype"].numpy, shape, None, count=node.emitter.number(0, _COUNT)
    )
    return made.with_shape(node.emitter, shape.as_tuple()) if shape.is_fully_defined else made


@rule("TensorListPushBack", admits=element_type("element_dtype"))
def _push(node: Written) -> Elements:
    before, count = _growing(node)
    emitter, item = node.emitter, node.array(1)
    if before.size is None:
        before = replace(before, size=_room(emitter))
    node.need(before.known_size * prod(item.shape) * item.dtype.itemsize <= MAX_ROOM)
    emitter.need(emitter.compare("less", count, emitter.number(before.known_size, _COUNT)))
    made = with_element(node, before, count, item)
    return replace(made, count=_changed(emitter, count, 1))


@rule("TensorListPopBack", admits=element_type("element_dtype"))
def _pop(node: Written) -> list[Elements | Operand]:
    before, count = _growing(node)
    emitter = node.emitter
    node.need(before.content is not None and before.size)
    node.need(before.dtype == node.types[1].numpy)
    assert before.content is not None
    node.need(shape_of(node, 1).accepts(before.content.shape[1:]))
    emitter.need(emitter.compare("greater", count, emitter.number(0, _COUNT)))
    last = _changed(emitter, count, -1)
    return [replace(before, count=last), emitter.row(before.content, last)]


def _growing(node: Written) -> tuple[Elements, Operand]:
    """The list, and how many elements it has."""
    before: Elements = node.inputs[0]
    if before.count is not None:
        return before, before.count
    count = node.emitter.number(before.known_size, _COUNT)
    return replace(before, count=count), count


def _room(emitter: Emitter) -> int:
    """How many elements a list can get to which nothing was added before."""
    if emitter.turns is None:
        raise UnsupportedError
    return max(1, emitter.turns)


def _changed(emitter: Emitter, count: Operand, by: int) -> Operand:
    if isinstance(count, Known):
        return emitter.number(int(count.value) + by, _COUNT)
    return emitter.same("add", count, emitter.number(by, _COUNT))
