"""Functions of tensors that stand in models beside layers, by one name for all generations.

In:   symbols and Python's numbers; settings by keyword.
Out:  symbols, of a shape that is as well known as the arguments'.
Not:  knows no file; ``operations`` reads how each Keras names functions and settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.formats.keras import activations
from penstock.formats.keras.config import Config
from penstock.formats.keras.layers.arguments import (
    Function,
    alike,
    axes_of,
    broadcast_shape,
    without,
)
from penstock.formats.keras.layers.forms import (
    concatenate,
    expand,
    flip,
    item,
    pad,
    repeat,
    reshaped,
    shape_of,
    split,
    squeeze,
    stack,
    swapped,
    tile,
    transpose,
    unstack,
)
from penstock.formats.keras.layers.products import blocks, einsum, matmul, one_hot, resize, take
from penstock.formats.keras.symbol import Symbol, constant_like

# -- number by number -----------------------------------------------------------------------------


def _unary(function: Callable[[Tensor], Tensor]) -> Function:
    return lambda _, x, **_ignored: x.made(function(x.tensor))


def _binary(function: Callable[[Any, Any], Tensor]) -> Function:
    def binary(config: Config, x: Any, y: Any, **_: Any) -> Symbol:
        first, second = alike(config, x, y)
        shape = broadcast_shape(config, first.shape, second.shape)
        return first.made(function(first.tensor, second.tensor), shape)

    return binary


def _true_divide(x: Tensor, y: Tensor) -> Tensor:
    return x / y


def _where(config: Config, condition: Symbol, x: Any, y: Any, **_: Any) -> Symbol:
    first, second = alike(config, x, y)
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


def _reduced(function: Callable[..., Tensor]) -> Function:
    def reduce(
        config: Config, x: Symbol, axis: Any = None, keepdims: Any = None, **_: Any
    ) -> Symbol:
        axes = axes_of(config, axis, x.rank)
        made = function(x.tensor, axes, keep_dims=bool(keepdims))
        return x.made(made, without(x.shape, axes, keeps=bool(keepdims)))

    return reduce


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
    "reshape": reshaped,
    "transpose": transpose,
    "swapaxes": swapped,
    "expand_dims": expand,
    "squeeze": squeeze,
    "concatenate": concatenate,
    "stack": stack,
    "split": split,
    "unstack": unstack,
    "getitem": item,
    "tile": tile,
    "repeat": repeat,
    "pad": pad,
    "flip": flip,
    "shape": shape_of,
    "matmul": matmul,
    "einsum": einsum,
    "take": take,
    "one_hot": one_hot,
    "resize": resize,
    "space_to_depth": blocks(ops.space_to_depth, is_deeper=True),
    "depth_to_space": blocks(ops.depth_to_space, is_deeper=False),
}  # fmt: skip
