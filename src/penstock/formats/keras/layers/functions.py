"""Functions of tensors that stand in models beside layers, by one name for all generations.

In:   symbols and Python's numbers; settings by keyword.
Out:  symbols, of a shape that is as well known as the arguments'.
Not:  knows no file; ``operations`` reads how each Keras names functions and settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.formats.keras import activations
from penstock.formats.keras.config import Config
from penstock.formats.keras.layers.core import einsum_of
from penstock.formats.keras.layers.reshaping import resized
from penstock.formats.keras.symbol import Shape, Size, Symbol, constant_like, pack, product, reshape

#: More parts than these are not made of a tensor.
_MOST_PARTS: Final = 4096
#: Takes the layer's description, and then what the call brings.
Function: TypeAlias = Callable[..., Any]


# -- number by number -----------------------------------------------------------------------------


def _unary(function: Callable[[Tensor], Tensor]) -> Function:
    return lambda _, x, **_ignored: x.made(function(x.tensor))


def _binary(function: Callable[[Any, Any], Tensor]) -> Function:
    def binary(config: Config, x: Any, y: Any, **_: Any) -> Symbol:
        first, second = _alike(config, x, y)
        shape = broadcast_shape(config, first.shape, second.shape)
        return first.made(function(first.tensor, second.tensor), shape)

    return binary


def _alike(config: Config, x: Any, y: Any) -> tuple[Symbol, Symbol]:
    """Both as symbols of one type; a number becomes a constant of the other's type."""
    given = x if isinstance(x, Symbol) else y
    if not isinstance(given, Symbol):
        raise config.error("it is called without a tensor")
    dtype = given.tensor.dtype
    return as_symbol(config, x, dtype), as_symbol(config, y, dtype)


def as_symbol(config: Config, value: Any, dtype: DType) -> Symbol:
    """A symbol as it is; numbers as a constant."""
    if isinstance(value, Symbol):
        return value
    try:
        array = np.asarray(value).astype(dtype.numpy)
    except (TypeError, ValueError):
        raise config.error("an argument of it is neither a tensor nor a number") from None
    return Symbol(ops.constant(array), array.shape)


def broadcast_shape(config: Config, first: Shape, second: Shape) -> Shape:
    """The shape of what two tensors make, number by number."""
    rank = max(len(first), len(second))
    made: list[int | None] = []
    for place in range(-rank, 0):
        a = first[place] if -place <= len(first) else 1
        b = second[place] if -place <= len(second) else 1
        if a is not None and b is not None and a != b and 1 not in (a, b):
            raise config.error(f"its arguments have the shapes {first} and {second}")
        made.append(b if a == 1 else a if b == 1 or b is None else b)
    return tuple(made)


def _true_divide(x: Tensor, y: Tensor) -> Tensor:
    return x / y


def _where(config: Config, condition: Symbol, x: Any, y: Any, **_: Any) -> Symbol:
    first, second = _alike(config, x, y)
    shape = broadcast_shape(config, first.shape, second.shape)
    shape = broadcast_shape(config, condition.shape, shape)
    return condition.made(ops.select_v2(condition.tensor, first.tensor, second.tensor), shape)


def _clip(_: Config, x: Symbol, low: float, high: float, **_ignored: Any) -> Symbol:
    low_like, high_like = constant_like(low, x.tensor), constant_like(high, x.tensor)
    return x.made(ops.minimum(ops.maximum(x.tensor, low_like), high_like))


def _cast(config: Config, x: Symbol, dtype: Any = None, **_: Any) -> Symbol:
    return x.made(ops.cast(x.tensor, config.named_type(dtype)))


def _converted(config: Config, x: Symbol, dtype: Any = None, **_: Any) -> Symbol:
    return x if dtype is None else _cast(config, x, dtype)


def _filled_like(op: Callable[[Tensor], Tensor]) -> Function:
    def fill(config: Config, x: Symbol, dtype: Any = None, **_: Any) -> Symbol:
        made = x.made(op(x.tensor))
        return made if dtype is None else _cast(config, made, dtype)

    return fill


def _softmax(_: Config, x: Symbol, axis: int = -1, **_ignored: Any) -> Symbol:
    return x.made(activations.softmax(x.tensor, -1 if axis == x.rank - 1 else axis))


def _leaky(_: Config, x: Symbol, slope: float = 0.2, **_ignored: Any) -> Symbol:
    return x.made(activations.leaky_relu(x.tensor, slope))


def _elu(_: Config, x: Symbol, alpha: float = 1.0, **_ignored: Any) -> Symbol:
    return x.made(activations.elu(x.tensor, alpha))


def _gelu(_: Config, x: Symbol, approximate: bool = True, **_ignored: Any) -> Symbol:  # noqa: FBT001, FBT002
    return x.made(activations.gelu(x.tensor, approximate=approximate))


def _named_activation(name: str) -> Function:
    def activate(config: Config, x: Symbol, **_: Any) -> Symbol:
        return x.made(activations.find_function(name, config)(x.tensor))

    return activate


def _add_n(config: Config, xs: Sequence[Symbol], **_: Any) -> Symbol:
    total = xs[0]
    for x in xs[1:]:
        total = _binary(lambda a, b: a + b)(config, total, x)
    return total


# -- along dimensions -----------------------------------------------------------------------------


def axes_of(config: Config, axis: Any, rank: int) -> list[int]:
    """Dimensions, none negative; all if none is named."""
    if axis is None:
        return list(range(rank))
    given = axis if isinstance(axis, (list, tuple)) else [axis]
    if not all(isinstance(a, int) and -rank <= a < rank for a in given):
        raise config.error(f"{axis!r} are no dimensions of an input of rank {rank}")
    return [a % rank for a in given]


def _reduced(function: Callable[..., Tensor]) -> Function:
    def reduce(
        config: Config, x: Symbol, axis: Any = None, keepdims: Any = None, **_: Any
    ) -> Symbol:
        axes = axes_of(config, axis, x.rank)
        made = function(x.tensor, axes, keep_dims=bool(keepdims))
        return x.made(made, without(x.shape, axes, keeps=bool(keepdims)))

    return reduce


def without(shape: Shape, axes: Sequence[int], *, keeps: bool) -> Shape:
    """A shape after a reduction."""
    return tuple(
        1 if axis in axes else size for axis, size in enumerate(shape) if keeps or axis not in axes
    )


def _variance(x: Tensor, axes: list[int], *, keep_dims: bool) -> Tensor:
    centered = x - ops.mean(x, axes, keep_dims=True)
    return ops.mean(ops.square(centered), axes, keep_dims=keep_dims)


def _deviation(x: Tensor, axes: list[int], *, keep_dims: bool) -> Tensor:
    return ops.sqrt(_variance(x, axes, keep_dims=keep_dims))


def _length(x: Tensor, axes: list[int], *, keep_dims: bool) -> Tensor:
    return ops.sqrt(ops.sum(ops.square(x), axes, keep_dims=keep_dims))


def _log_sum(x: Tensor, axes: list[int], *, keep_dims: bool) -> Tensor:
    highest = ops.max(x, axes, keep_dims=True)
    total = ops.log(ops.sum(ops.exp(x - highest), axes, keep_dims=True)) + highest
    return total if keep_dims else ops.squeeze(total, squeeze_dims=axes)


def _norm(config: Config, x: Symbol, ord: Any = None, **more: Any) -> Symbol:
    if ord not in (None, 2, 2.0, "euclidean"):
        raise config.unsupported(f"the norm {ord!r}")
    return _reduced(_length)(config, x, **more)  # type: ignore[no-any-return]


def _normalize(config: Config, x: Symbol, axis: Any = -1, order: Any = 2, **more: Any) -> Symbol:
    if order not in (2, 2.0):
        raise config.unsupported(f"the norm {order!r}")
    epsilon = more.get("epsilon") or 1e-12
    axes = axes_of(config, axis, x.rank)
    squares = ops.sum(ops.square(x.tensor), axes, keep_dims=True)
    return x.made(x.tensor * ops.rsqrt(ops.maximum(squares, constant_like(epsilon, x.tensor))))


def _extreme_place(op: Callable[..., Tensor]) -> Function:
    def place(
        config: Config, x: Symbol, axis: Any = None, keepdims: Any = None, **more: Any
    ) -> Symbol:
        if axis is None and config.is_keras_3:
            raise config.unsupported("places in the whole of a tensor")
        (along,) = axes_of(config, 0 if axis is None else axis, x.rank)
        wanted = (
            dtypes.int32
            if config.is_keras_3
            else config.named_type(more.get("output_type") or "int64")
        )
        made = op(x.tensor, along, output_type=wanted)
        if keepdims:
            made = ops.expand_dims(made, along)
        return x.made(made, without(x.shape, [along], keeps=bool(keepdims)))

    return place


def _cumulated(op: Callable[..., Tensor]) -> Function:
    def cumulate(config: Config, x: Symbol, axis: int = 0, **_: Any) -> Symbol:
        return x.made(op(x.tensor, axes_of(config, axis, x.rank)[0]))

    return cumulate


# -- forms ----------------------------------------------------------------------------------------


def _reshape(config: Config, x: Symbol, shape: Any, **_: Any) -> Symbol:
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


def _transpose(config: Config, x: Symbol, axes: Any = None, **_: Any) -> Symbol:
    order = axes_of(config, axes, x.rank) if axes is not None else list(range(x.rank))[::-1]
    return x.made(ops.transpose(x.tensor, np.array(order, np.int32)), [x.shape[a] for a in order])


def _swapped(config: Config, x: Symbol, axis1: int, axis2: int, **_: Any) -> Symbol:
    order = list(range(x.rank))
    first, second = axes_of(config, [axis1, axis2], x.rank)
    order[first], order[second] = order[second], order[first]
    return _transpose(config, x, order)


def _expand(config: Config, x: Symbol, axis: Any = -1, **_: Any) -> Symbol:
    shape = x.shape
    tensor = x.tensor
    given = axis if isinstance(axis, (list, tuple)) else [axis]
    for place in sorted(axes_of(config, given, x.rank + len(given))):
        tensor = ops.expand_dims(tensor, place)
        shape = (*shape[:place], 1, *shape[place:])
    return x.made(tensor, shape)


def _squeeze(config: Config, x: Symbol, axis: Any = None, **_: Any) -> Symbol:
    if axis is None or axis == []:
        axes = [place for place, size in enumerate(x.shape) if size == 1]
    else:
        axes = axes_of(config, axis, x.rank)
    shape = without(x.shape, axes, keeps=False)
    return x.made(ops.squeeze(x.tensor, squeeze_dims=axes), shape)


def _concatenate(config: Config, xs: Sequence[Any], axis: int = 0, **_: Any) -> Symbol:
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


def _stack(config: Config, xs: Sequence[Any], axis: int = 0, **_: Any) -> Symbol:
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


def _split(config: Config, x: Symbol, sections: Any, axis: int = 0, **_: Any) -> list[Symbol]:
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


def _unstack(config: Config, x: Symbol, num: Any = None, axis: int = 0, **_: Any) -> list[Symbol]:
    (along,) = axes_of(config, axis, x.rank)
    count = x.shape[along] if num is None else num
    if not isinstance(count, int) or count > _MOST_PARTS:
        raise config.unsupported("parts of which the number is not known")
    shape = without(x.shape, [along], keeps=False)
    return [x.made(part, shape) for part in ops.unpack(x.tensor, num=count, axis=along)]


def _item(config: Config, x: Symbol, key: Any, **_: Any) -> Symbol:
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


def _tile(config: Config, x: Symbol, repeats: Any, **_: Any) -> Symbol:
    given = list(repeats) if isinstance(repeats, (list, tuple)) else [repeats]
    counts = [1] * (x.rank - len(given)) + given
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        raise config.unsupported("a number of repetitions that is computed")
    shape = [None if n is None else n * count for n, count in zip(x.shape, counts, strict=True)]
    return x.made(ops.tile(x.tensor, np.array(counts, np.int32)), shape)


def _repeat(config: Config, x: Symbol, repeats: int, axis: Any = None, **_: Any) -> Symbol:
    if axis is None or not isinstance(repeats, int):
        raise config.unsupported("repetitions of several numbers")
    (along,) = axes_of(config, axis, x.rank)
    wide = ops.expand_dims(x.tensor, along + 1)
    counts = [1] * (x.rank + 1)
    counts[along + 1] = repeats
    sizes = x.sizes()
    sizes[along] = sizes[along] * repeats
    return reshape(x.made(ops.tile(wide, np.array(counts, np.int32))), sizes)


def _pad(config: Config, x: Symbol, paddings: Any, mode: str = "constant", **more: Any) -> Symbol:
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


def _flip(config: Config, x: Symbol, axis: Any = None, **_: Any) -> Symbol:
    return x.made(ops.reverse_v2(x.tensor, axes_of(config, axis, x.rank)))


def _shape_of(_: Config, x: Symbol, **_ignored: Any) -> Symbol:
    return x.made(x.sizes_tensor(), (x.rank,))


# -- products and places --------------------------------------------------------------------------


def _matmul(config: Config, x: Any, y: Any, **more: Any) -> Symbol:
    first, second = _alike(config, x, y)
    if first.rank < 2 or second.rank < 2:
        raise config.unsupported("a product with a vector")
    turn_x, turn_y = bool(more.get("transpose_a")), bool(more.get("transpose_b"))
    made = ops.batch_mat_mul_v2(first.tensor, second.tensor, adj_x=turn_x, adj_y=turn_y)
    rows = first.shape[-1 if turn_x else -2]
    columns = second.shape[-2 if turn_y else -1]
    around = broadcast_shape(config, first.shape[:-2], second.shape[:-2])
    return first.made(made, (*around, rows, columns))


def _einsum(config: Config, *operands: Symbol, equation: str = "", **_: Any) -> Symbol:
    if len(operands) != 2 or not isinstance(equation, str):
        raise config.unsupported("a product of other than two tensors")
    return einsum_of(config, equation, *operands)


def _take(config: Config, x: Symbol, indices: Any, axis: Any = None, **_: Any) -> Symbol:
    if axis is None:
        if config.is_keras_3:
            raise config.unsupported("places in the whole of a tensor")
        axis = 0
    (along,) = axes_of(config, axis, x.rank)
    places = as_symbol(config, indices, dtypes.int32)
    shape = (*x.shape[:along], *places.shape, *x.shape[along + 1 :])
    return x.made(ops.gather_v2(x.tensor, places.tensor, along), shape)


def _one_hot(config: Config, x: Symbol, depth: int, axis: int = -1, **more: Any) -> Symbol:
    dtype = config.named_type(more.get("dtype") or "float32")
    if axis not in (-1, x.rank):
        raise config.unsupported("a new dimension that is not the last")
    one, zero = np.ones((), dtype.numpy), np.zeros((), dtype.numpy)
    return x.made(ops.one_hot(x.tensor, depth, one, zero), (*x.shape, depth))


def _resize(config: Config, x: Symbol, size: Any, method: str = "bilinear", **_: Any) -> Symbol:
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise config.unsupported("a size that is computed")
    return resized(config, x, [int(n) for n in size], method)


def _blocks(op: Callable[..., Tensor], *, is_deeper: bool) -> Function:
    def rearrange(config: Config, x: Symbol, block_size: Any, **_: Any) -> Symbol:
        if x.rank != 4 or not isinstance(block_size, int) or block_size < 1:
            raise config.error("it takes an image, and the size of blocks")
        batch, rows, columns, channels = x.shape
        b = block_size
        space = [n if n is None else n // b if is_deeper else n * b for n in (rows, columns)]
        deep = None if channels is None else _deep(channels, b * b, is_deeper=is_deeper)
        return x.made(op(x.tensor, block_size=b), (batch, *space, deep))

    return rearrange


def _deep(channels: int, cells: int, *, is_deeper: bool) -> int:
    return channels * cells if is_deeper else channels // cells


FUNCTIONS: Final[dict[str, Function]] = {
    **{
        name: _unary(getattr(ops, op))
        for name, op in (
            ("abs", "abs"), ("exp", "exp"), ("expm1", "expm1"), ("log", "log"),
            ("log1p", "log1p"), ("sin", "sin"), ("cos", "cos"), ("tan", "tan"),
            ("sinh", "sinh"), ("cosh", "cosh"), ("arcsin", "asin"), ("arccos", "acos"),
            ("arctan", "atan"), ("square", "square"), ("sqrt", "sqrt"), ("rsqrt", "rsqrt"),
            ("sign", "sign"), ("floor", "floor"), ("ceil", "ceil"), ("round", "round"),
            ("erf", "erf"), ("negative", "neg"), ("reciprocal", "reciprocal"),
            ("logical_not", "logical_not"), ("identity", "identity"), ("isnan", "is_nan"),
            ("isinf", "is_inf"), ("isfinite", "is_finite"), ("stop_gradient", "identity"),
        )
    },
    **{
        name: _binary(getattr(ops, op))
        for name, op in (
            ("subtract", "sub"), ("multiply", "mul"), ("add", "add_v2"), ("power", "pow"),
            ("maximum", "maximum"), ("minimum", "minimum"), ("equal", "equal"),
            ("not_equal", "not_equal"), ("greater", "greater"), ("less", "less"),
            ("greater_equal", "greater_equal"), ("less_equal", "less_equal"),
            ("logical_and", "logical_and"), ("logical_or", "logical_or"),
            ("floor_divide", "floor_div"), ("mod", "floor_mod"), ("arctan2", "atan2"),
            ("squared_difference", "squared_difference"),
        )
    },
    **{
        name: _named_activation(name)
        for name in (
            "relu", "relu6", "sigmoid", "tanh", "softplus", "softsign", "silu", "selu",
            "hard_sigmoid", "hard_silu", "log_sigmoid", "mish", "celu",
        )
    },
    **{
        name: _reduced(function)
        for name, function in (
            ("mean", ops.mean), ("sum", ops.sum), ("max", ops.max), ("min", ops.min),
            ("prod", ops.prod), ("any", ops.any), ("all", ops.all), ("var", _variance),
            ("std", _deviation), ("logsumexp", _log_sum),
        )
    },
    "zeros_like": _filled_like(ops.zeros_like),
    "ones_like": _filled_like(ops.ones_like),
    "divide": _binary(_true_divide),
    "where": _where,
    "clip": _clip,
    "cast": _cast,
    "convert_to_tensor": _converted,
    "softmax": _softmax,
    "log_softmax": _unary(ops.log_softmax),
    "leaky_relu": _leaky,
    "elu": _elu,
    "gelu": _gelu,
    "add_n": _add_n,
    "norm": _norm,
    "normalize": _normalize,
    "argmax": _extreme_place(ops.arg_max),
    "argmin": _extreme_place(ops.arg_min),
    "cumsum": _cumulated(ops.cumsum),
    "cumprod": _cumulated(ops.cumprod),
    "reshape": _reshape,
    "transpose": _transpose,
    "swapaxes": _swapped,
    "expand_dims": _expand,
    "squeeze": _squeeze,
    "concatenate": _concatenate,
    "stack": _stack,
    "split": _split,
    "unstack": _unstack,
    "getitem": _item,
    "tile": _tile,
    "repeat": _repeat,
    "pad": _pad,
    "flip": _flip,
    "shape": _shape_of,
    "matmul": _matmul,
    "einsum": _einsum,
    "take": _take,
    "one_hot": _one_hot,
    "resize": _resize,
    "space_to_depth": _blocks(ops.space_to_depth, is_deeper=True),
    "depth_to_space": _blocks(ops.depth_to_space, is_deeper=False),
}  # fmt: skip
