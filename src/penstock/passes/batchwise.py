"""Which nodes compute each entry of a batch from that entry alone.

In:   a node, the shapes of what it reads as far as they are known, and how many entries there are.
Out:  which of its inputs it reads entry by entry, if that makes its first output entry by entry.
Not:  knows no sizes that are worth it, and no kernels.

The entries of a batch are what an array has along its first dimension.  A node that treats each of
them alone may be given some entries at a time; so may all those that follow each other, and what
lies between them need not be there for the whole batch at once.  What is said here holds for
any number of entries, as long as shapes are otherwise the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core.values import Array
from penstock.graph.graph import Node
from penstock.passes.graph_rewriter import value_of

#: The sizes of an array, None for those that are not known; None instead if not even the rank is.
Sizes: TypeAlias = "Sequence[int | None] | None"
#: For each input, whether it is read entry by entry; None if entries are not treated alone.
ByEntries: TypeAlias = "tuple[bool, ...] | None"
_Rule: TypeAlias = Callable[[Node, Sequence[Sizes], int], ByEntries]

#: Ops that look at one image after the other, whatever else they read.
_OF_IMAGES: Final = (
    "AvgPool Conv2D Conv3D DepthToSpace DepthwiseConv2dNative LRN MaxPool ResizeBilinear "
    "ResizeNearestNeighbor SpaceToDepth _FusedDepthwiseConv2dNative BiasAdd"
)
_WITH_SUMS: Final = "_FusedConv2D _FusedConv3D"
_OF_ELEMENTS: Final = (
    "Abs Add AddV2 Ceil Cos Elu Erf Exp Floor Identity Inv LeakyRelu Log Maximum Minimum Mul Neg "
    "Pow RealDiv Reciprocal Relu Relu6 Rsqrt Selu Sigmoid Sin Softplus Softsign Sqrt Square "
    "SquaredDifference StopGradient Sub Tanh"
)
_REDUCTIONS: Final = "Max Mean Min Prod Sum"


def read_by_entries(node: Node, sizes: Sequence[Sizes], batch: int) -> ByEntries:
    """Which inputs a node reads entry by entry; None if it does not treat each entry alone.

    Args:
        node: some node, of which others read the first output at most.
        sizes: those of its inputs.
        batch: how many entries there are, which no other first dimension may be by chance: what
            has so many is a batch.

    """
    rule = _RULES.get(node.op.name)
    found = rule(node, sizes, batch) if rule is not None else None
    return found if found is not None and any(found) else None


def _first(_node: Node, sizes: Sequence[Sizes], batch: int) -> ByEntries:
    """The first input alone has the batch."""
    return (_is_batch(sizes[0], batch), *[False] * (len(sizes) - 1))


def _normalised(node: Node, sizes: Sequence[Sizes], batch: int) -> ByEntries:
    return None if node.attrs["is_training"] else _first(node, sizes, batch)


def _with_sums(_node: Node, sizes: Sequence[Sizes], batch: int) -> ByEntries:
    """Images, filters, numbers by channel, and perhaps what is added to each result."""
    images, _filters, *others = sizes
    if images is None or any(other is None for other in others):
        return None
    added = [len(other or ()) == len(images) for other in others]
    if not all(_is_batch(o, batch) for o, is_added in zip(others, added, strict=True) if is_added):
        return None
    return (_is_batch(images, batch), False, *added)


def _of_elements(_node: Node, sizes: Sequence[Sizes], batch: int) -> ByEntries:
    """Operands that are broadcast: those of the largest rank have the batch, or one for all."""
    ranks = [len(each) for each in sizes if each is not None]
    if len(ranks) < len(sizes):
        return None
    full = [len(each or ()) == max(ranks) for each in sizes]
    of_all = [_is_batch(each, batch) for each in sizes]
    for each, is_full, is_batch in zip(sizes, full, of_all, strict=True):
        if is_full and not is_batch and (not each or each[0] != 1):
            return None
    return tuple(a and b for a, b in zip(full, of_all, strict=True))


def _joined(node: Node, sizes: Sequence[Sizes], batch: int) -> ByEntries:
    *parts, _ = sizes
    axis = _axis(node, len(parts), parts[0])
    if axis in {0, None} or not all(_is_batch(part, batch) for part in parts):
        return None
    return (*[True] * len(parts), False)


def _padded(node: Node, sizes: Sequence[Sizes], batch: int) -> ByEntries:
    ends = _value(node, 1)
    if ends is None or ends.ndim != 2 or not len(ends) or ends[0].any():
        return None
    return _first(node, sizes, batch)


def _reduced(node: Node, sizes: Sequence[Sizes], batch: int) -> ByEntries:
    axes, x = _value(node, 1), sizes[0]
    if axes is None or not x or any(axis % len(x) == 0 for axis in axes.reshape(-1)):
        return None
    return _first(node, sizes, batch)


def _of_rows(_node: Node, sizes: Sequence[Sizes], batch: int) -> ByEntries:
    x = sizes[0]
    return (_is_batch(x, batch),) if x is not None and len(x) > 1 else None


def _multiplied(node: Node, sizes: Sequence[Sizes], batch: int) -> ByEntries:
    return None if node.attrs["transpose_a"] else _first(node, sizes, batch)


def _reshaped(node: Node, sizes: Sequence[Sizes], batch: int) -> ByEntries:
    """As many numbers of each entry as before, and the number of entries left open."""
    shape, x = _value(node, 1), sizes[0]
    if shape is None or shape.ndim != 1 or not len(shape) or shape[0] != -1 or x is None:
        return None
    numbers = [size for size in x[1:] if size is not None]
    if len(numbers) < len(x) - 1 or math.prod(numbers) != math.prod(shape[1:].tolist()):
        return None
    return _first(node, sizes, batch)


def _squeezed(node: Node, sizes: Sequence[Sizes], batch: int) -> ByEntries:
    axes, x = node.attrs["squeeze_dims"], sizes[0]
    if not axes or not x or any(axis % len(x) == 0 for axis in axes):
        return None
    return _first(node, sizes, batch)


_RULES: Final[dict[str, _Rule]] = {
    **dict.fromkeys(_OF_IMAGES.split(), _first),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _normalised),
    **dict.fromkeys(_WITH_SUMS.split(), _with_sums),
    **dict.fromkeys(_OF_ELEMENTS.split(), _of_elements),
    "ConcatV2": _joined,
    **dict.fromkeys(("Pad", "PadV2", "MirrorPad"), _padded),
    **dict.fromkeys(_REDUCTIONS.split(), _reduced),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _of_rows),
    **dict.fromkeys(("MatMul", "_FusedMatMul"), _multiplied),
    "Reshape": _reshaped,
    "Squeeze": _squeezed,
}


def _is_batch(sizes: Sizes, batch: int) -> bool:
    return bool(sizes) and sizes is not None and sizes[0] == batch


def _value(node: Node, slot: int) -> Array | None:
    """A constant that a node reads."""
    value: Any = value_of(node.input(slot).src)
    return None if value is None else np.asarray(value)


def _axis(node: Node, slot: int, x: Sizes) -> int | None:
    """The axis that a constant says, counted from the first."""
    axis = _value(node, slot)
    if axis is None or axis.ndim or not x:
        return None
    return int(axis) % len(x)
