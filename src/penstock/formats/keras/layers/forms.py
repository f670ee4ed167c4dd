"""Functions between layers that move numbers and change none: other forms, pieces, repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.builder import ops
from penstock.formats.keras.config import Config
from penstock.formats.keras.layers.arguments import (
    as_symbol,
    axes_of,
    without,
)
from penstock.formats.keras.symbol import Size, Symbol, constant_like, pack, product, reshape

#: More parts than these are not made of a tensor.
_MOST_PARTS: Final = 4096


# -- forms ----------------------------------------------------------------------------------------


def reshaped(config: Config, x: Symbol, shape: Any, **_: Any) -> Symbol:
    """The same numbers in another form."""
    given = shape if isinstance(shape, (list, tuple)) else [shape]
    sizes: list[Size] = [s.tensor if isinstance(s, Symbol) else s for s in given]
    known: list[int | None] = [s if isinstance(s, int) and s >= 0 else None for s in sizes]
    if None in known and sizes.count(-1) == 1 and product(x.shape) is not None:
        rest = product(size for size in known if size is not None) or 1
        if all(isinstance(size, int) for size in sizes):
            known[sizes.index(-1)] = (product(x.shape) or 0) // rest
    if len(given) == 1 and isinstance(given[0], Symbol) and given[0].rank:
        raise config.unsupported("a form that is computed as a whole")
    return x.made(ops.reshape(x.tensor, pack(sizes)), known)


def transpose(config: Config, x: Symbol, axes: Any = None, **_: Any) -> Symbol:
    """The dimensions in another order; reversed if none is given."""
    order = axes_of(config, axes, x.rank) if axes is not None else list(range(x.rank))[::-1]
    return x.made(ops.transpose(x.tensor, np.array(order, np.int32)), [x.shape[a] for a in order])


def swapped(config: Config, x: Symbol, axis1: int, axis2: int, **_: Any) -> Symbol:
    """Two dimensions in each other's place."""
    order = list(range(x.rank))
    first, second = axes_of(config, [axis1, axis2], x.rank)
    order[first], order[second] = order[second], order[first]
    return transpose(config, x, order)


def expand(config: Config, x: Symbol, axis: Any = -1, **_: Any) -> Symbol:
    """New dimensions of size 1."""
    shape = x.shape
    tensor = x.tensor
    given = axis if isinstance(axis, (list, tuple)) else [axis]
    for place in sorted(axes_of(config, given, x.rank + len(given))):
        tensor = ops.expand_dims(tensor, place)
        shape = (*shape[:place], 1, *shape[place:])
    return x.made(tensor, shape)


def squeeze(config: Config, x: Symbol, axis: Any = None, **_: Any) -> Symbol:
    """Without dimensions of size 1: some, or all."""
    if axis is None or axis == []:
        axes = [place for place, size in enumerate(x.shape) if size == 1]
    else:
        axes = axes_of(config, axis, x.rank)
    shape = without(x.shape, axes, keeps=False)
    return x.made(ops.squeeze(x.tensor, squeeze_dims=axes), shape)


def concatenate(config: Config, xs: Sequence[Any], axis: int = 0, **_: Any) -> Symbol:
    """Several tensors behind each other along a dimension."""
    inputs = _all_alike(config, xs)
    (along,) = axes_of(config, axis, inputs[0].rank)
    sizes = [x.shape[along] for x in inputs]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    shape = [
        total if place == along else next((s for s in known if s is not None), None)
        for place, known in enumerate(zip(*(x.shape for x in inputs), strict=False))
    ]
    tensors = [x.tensor for x in inputs]
    return inputs[0].made(ops.concat_v2(tensors, along) if len(tensors) > 1 else tensors[0], shape)


def stack(config: Config, xs: Sequence[Any], axis: int = 0, **_: Any) -> Symbol:
    """Several tensors along a new dimension."""
    inputs = _all_alike(config, xs)
    (along,) = axes_of(config, axis, inputs[0].rank + 1)
    shape = list(inputs[0].shape)
    shape.insert(along, len(inputs))
    return inputs[0].made(ops.pack([x.tensor for x in inputs], axis=along), shape)


def _all_alike(config: Config, xs: Any) -> list[Symbol]:
    given = list(xs) if isinstance(xs, (list, tuple)) else [xs]
    first = next((x for x in given if isinstance(x, Symbol)), None)
    if first is None:
        raise config.error("it is called without a tensor")
    return [as_symbol(config, x, first.tensor.dtype) for x in given]


def split(config: Config, x: Symbol, sections: Any, axis: int = 0, **_: Any) -> list[Symbol]:
    """Equal parts along a dimension."""
    (along,) = axes_of(config, axis, x.rank)
    size = x.shape[along]
    if not isinstance(sections, int):
        raise config.unsupported("parts of several sizes")
    if not 1 <= sections <= _MOST_PARTS or (size is not None and size % sections):
        raise config.error(f"a dimension of size {size} does not make {sections} equal parts")
    shape = list(x.shape)
    shape[along] = None if size is None else size // sections
    parts = ops.split(along, x.tensor, num_split=sections)
    return [x.made(part, shape) for part in parts]


def unstack(config: Config, x: Symbol, num: Any = None, axis: int = 0, **_: Any) -> list[Symbol]:
    """All parts of size 1 along a dimension, without that."""
    (along,) = axes_of(config, axis, x.rank)
    count = x.shape[along] if num is None else num
    if not isinstance(count, int) or count > _MOST_PARTS:
        raise config.unsupported("parts of which the number is not known")
    shape = without(x.shape, [along], keeps=False)
    return [x.made(part, shape) for part in ops.unpack(x.tensor, num=count, axis=along)]


def item(config: Config, x: Symbol, key: Any, **_: Any) -> Symbol:
    """What stands between brackets behind a tensor."""
    items = list(key) if isinstance(key, (list, tuple)) else [key]
    if any(
        isinstance(i, Symbol) or not isinstance(i, (int, slice, type(None), type(...)))
        for i in items
    ):
        raise config.unsupported("an index that is a tensor")
    missing = x.rank - sum(item is not None and item is not ... for item in items)
    full = [slice(None)] * max(missing, 0)
    place = items.index(...) if ... in items else len(items)
    items = [*items[:place], *full, *items[place + 1 :]]
    shape: list[int | None] = []
    axis = 0
    for item in items:
        if item is None:
            shape.append(1)
            continue
        size = x.shape[axis] if axis < x.rank else None
        if isinstance(item, slice):
            is_known = size is not None or item == slice(None)
            shape.append(len(range(*item.indices(size))) if is_known and size is not None else None)
        axis += 1
    return x.made(x.tensor[tuple(items)], shape)


def tile(config: Config, x: Symbol, repeats: Any, **_: Any) -> Symbol:
    """The whole so many times along each dimension."""
    given = list(repeats) if isinstance(repeats, (list, tuple)) else [repeats]
    counts = [1] * (x.rank - len(given)) + given
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        raise config.unsupported("a number of repetitions that is computed")
    shape = [None if n is None else n * count for n, count in zip(x.shape, counts, strict=True)]
    return x.made(ops.tile(x.tensor, np.array(counts, np.int32)), shape)


def repeat(config: Config, x: Symbol, repeats: int, axis: Any = None, **_: Any) -> Symbol:
    """Each part so many times, beside itself."""
    if axis is None or not isinstance(repeats, int):
        raise config.unsupported("repetitions of several numbers")
    (along,) = axes_of(config, axis, x.rank)
    wide = ops.expand_dims(x.tensor, along + 1)
    counts = [1] * (x.rank + 1)
    counts[along + 1] = repeats
    sizes = x.sizes()
    sizes[along] = sizes[along] * repeats
    return reshape(x.made(ops.tile(wide, np.array(counts, np.int32))), sizes)


def pad(config: Config, x: Symbol, paddings: Any, mode: str = "constant", **more: Any) -> Symbol:
    """More at the borders: one number, or what is beside them."""
    table = paddings if isinstance(paddings, (list, tuple)) else [[paddings, paddings]] * x.rank
    table = [list(p) if isinstance(p, (list, tuple)) else [p, p] for p in table]
    if len(table) != x.rank or not all(isinstance(n, int) and n >= 0 for p in table for n in p):
        raise config.unsupported("borders that are computed")
    shape = [None if n is None else n + sum(p) for n, p in zip(x.shape, table, strict=True)]
    around = np.array(table, np.int32)
    if mode.lower() == "constant":
        value = constant_like(more.get("constant_values") or 0, x.tensor)
        return x.made(ops.pad_v2(x.tensor, around, value), shape)
    if mode.lower() not in ("reflect", "symmetric"):
        raise config.unsupported(f"the padding {mode!r}")
    return x.made(ops.mirror_pad(x.tensor, around, mode=mode.upper()), shape)


def flip(config: Config, x: Symbol, axis: Any = None, **_: Any) -> Symbol:
    """Back to front along some dimensions."""
    return x.made(ops.reverse_v2(x.tensor, axes_of(config, axis, x.rank)))


def shape_of(_: Config, x: Symbol, **_ignored: Any) -> Symbol:
    """The sizes, as a tensor."""
    return x.made(x.sizes_tensor(), (x.rank,))
