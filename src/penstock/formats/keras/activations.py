"""The functions that layers apply to each number, by Keras' names.

In:   a tensor, and the name of a function or the description of a layer that stands for one.
Out:  another tensor.
Not:  ``hard_sigmoid`` is two functions: Keras 3 changed it, and a file means the one of its time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.formats.keras.config import Config
from penstock.formats.keras.symbol import Symbol, constant_like

Function: TypeAlias = Callable[..., Tensor]


def relu6(x: Tensor) -> Tensor:
    """The positive part, at most 6."""
    return ops.relu6(x)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return ops.sigmoid(x)


def silu(x: Tensor) -> Tensor:
    """X · sigmoid(x)."""
    return x * ops.sigmoid(x)


def hard_sigmoid_2(x: Tensor) -> Tensor:
    """Keras 2's: x / 5 + 1/2, from 0 to 1."""
    zero, one = constant_like(0, x), constant_like(1, x)
    return ops.maximum(ops.minimum(x * constant_like(0.2, x) + constant_like(0.5, x), one), zero)


def hard_sigmoid_3(x: Tensor) -> Tensor:
    """Keras 3's: (x + 3) / 6, from 0 to 1."""
    return ops.real_div(ops.relu6(x + constant_like(3, x)), constant_like(6, x))


def gelu(x: Tensor, *, approximate: bool = False) -> Tensor:
    """X · P(N(0, 1) < x), or its approximation by tanh (Hendrycks and Gimpel, 2016)."""
    half, one = constant_like(0.5, x), constant_like(1, x)
    if approximate:
        cubed = x + constant_like(0.044715, x) * ops.pow(x, constant_like(3, x))
        return half * x * (one + ops.tanh(constant_like(0.7978845608028654, x) * cubed))
    return half * x * (one + ops.erf(ops.real_div(x, constant_like(1.4142135623730951, x))))


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """The positive part, and alpha · (exp(x) - 1) for the negative one."""
    made = ops.elu(x)
    if alpha == 1:
        return made
    return ops.select_v2(x > constant_like(0, x), made, made * constant_like(alpha, x))


def leaky_relu(x: Tensor, slope: float) -> Tensor:
    """The positive part, and ``slope`` times the negative one."""
    return ops.leaky_relu(x, alpha=slope)


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) over the sum of exp(x) along an axis."""
    if axis == -1:
        return ops.softmax(x)
    shifted = ops.exp(x - ops.max(x, axis, keep_dims=True))
    return ops.real_div(shifted, ops.sum(shifted, axis, keep_dims=True))


def log_softmax(x: Tensor) -> Tensor:
    """The logarithm of ``softmax``."""
    return ops.log_softmax(x)


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """The positive part, and alpha · (exp(x / alpha) - 1) for the negative one."""
    zero, scale = constant_like(0, x), constant_like(alpha, x)
    return ops.maximum(x, zero) + scale * ops.expm1(ops.real_div(ops.minimum(x, zero), scale))


def _glu(x: Tensor) -> Tensor:
    """The first half of the last dimension times the sigmoid of the second."""
    first, second = ops.split(-1, x, num_split=2)
    return first * ops.sigmoid(second)


def _log_sigmoid(x: Tensor) -> Tensor:
    return -ops.softplus(-x)


def _mish(x: Tensor) -> Tensor:
    return x * ops.tanh(ops.softplus(x))


def _hard_tanh(x: Tensor) -> Tensor:
    return ops.maximum(ops.minimum(x, constant_like(1, x)), constant_like(-1, x))


def _hard_shrink(x: Tensor) -> Tensor:
    is_large = ops.abs(x) > constant_like(0.5, x)
    return ops.select_v2(is_large, x, constant_like(0, x))


def _soft_shrink(x: Tensor) -> Tensor:
    half = constant_like(0.5, x)
    return ops.sign(x) * ops.relu(ops.abs(x) - half)


def _tanh_shrink(x: Tensor) -> Tensor:
    return x - ops.tanh(x)


def _threshold(x: Tensor, limit: float = 0.0, below: float = 0.0) -> Tensor:
    return ops.select_v2(x > constant_like(limit, x), x, constant_like(below, x))


def _squareplus(x: Tensor) -> Tensor:
    return (x + ops.sqrt(x * x + constant_like(4, x))) * constant_like(0.5, x)


def _sparse_plus(x: Tensor) -> Tensor:
    one = constant_like(1, x)
    inner = ops.square(x + one) * constant_like(0.25, x)
    above = ops.select_v2(x < one, inner, x)
    return ops.select_v2(x <= constant_like(-1, x), ops.zeros_like(x), above)


def _sparse_sigmoid(x: Tensor) -> Tensor:
    half = constant_like(0.5, x)
    one, zero = constant_like(1, x), constant_like(0, x)
    return ops.maximum(ops.minimum(half * (x + one), one), zero)


def linear(x: Tensor) -> Tensor:
    """X itself."""
    return x


_FUNCTIONS: Final[dict[str, Function]] = {
    "linear": linear,
    "relu": ops.relu,
    "relu6": relu6,
    "sigmoid": sigmoid,
    "tanh": ops.tanh,
    "softmax": softmax,
    "log_softmax": log_softmax,
    "softplus": ops.softplus,
    "softsign": ops.softsign,
    "exponential": ops.exp,
    "elu": elu,
    "selu": ops.selu,
    "silu": silu,
    "swish": silu,
    "gelu": gelu,
    "mish": _mish,
    "celu": celu,
    "glu": _glu,
    "leaky_relu": lambda x: leaky_relu(x, 0.2),
    "log_sigmoid": _log_sigmoid,
    "hard_tanh": _hard_tanh,
    "hard_shrink": _hard_shrink,
    "soft_shrink": _soft_shrink,
    "tanh_shrink": _tanh_shrink,
    "threshold": _threshold,
    "squareplus": _squareplus,
    "sparse_plus": _sparse_plus,
    "sparse_sigmoid": _sparse_sigmoid,
}
#: Those that Keras 3 made anew, by generation.
_HARD: Final[dict[bool, Function]] = {False: hard_sigmoid_2, True: hard_sigmoid_3}


def known_activations() -> list[str]:
    """The names of all functions that are known, sorted."""
    return sorted([*_FUNCTIONS, "hard_sigmoid", "hard_silu", "hard_swish"])


def find_function(name: str, config: Config) -> Function:
    """The function of a name, as the Keras that wrote ``config`` has it.

    Raises:
        UnimplementedError: there is none.

    """
    hard = _HARD[config.is_keras_3]
    if name == "hard_sigmoid":
        return hard
    if name in ("hard_silu", "hard_swish"):
        return lambda x: x * hard(x)
    if name not in _FUNCTIONS:
        raise config.unsupported(f"the activation '{name}'")
    return _FUNCTIONS[name]


def activation(config: Config, key: str = "activation", default: str = "linear") -> Function:
    """The function that a setting of a layer names, or describes as a layer of its own."""
    value = config.get(key, default)
    if isinstance(value, str):
        return find_function(value, config)
    if not isinstance(value, dict):
        raise config.error(f"'{key}' is no activation")
    inner = value.get("config")
    if value.get("class_name") == "function" and isinstance(inner, str):
        return find_function(inner, config)
    described = config.inner(value, key)
    function = _LAYERS.get(described.class_name)
    if function is None:
        raise config.unsupported(f"the activation {described.class_name}")
    return function(described)


def activated(config: Config, x: Symbol, key: str = "activation") -> Symbol:
    """``x`` behind the function of a layer."""
    function = activation(config, key)
    if function is not _glu:
        return x.made(function(x.tensor))
    last = x.shape[-1]
    return x.made(function(x.tensor), (*x.shape[:-1], None if last is None else last // 2))


def bounded_relu(config: Config) -> Function:
    """The function of a ReLU layer: a slope below a threshold, and a highest value."""
    slope = config.number("negative_slope", 0.0)
    threshold = config.number("threshold", 0.0)
    highest = config.number("max_value", float("1e38"))

    def function(x: Tensor) -> Tensor:
        if threshold == 0 and slope == 0:
            if highest == 6:
                return ops.relu6(x)
            made = ops.relu(x)
        elif threshold == 0:
            made = leaky_relu(x, slope)
        else:
            limit = constant_like(threshold, x)
            below = (x - limit) * constant_like(slope, x)
            made = ops.select_v2(x >= limit, x, below)
        return made if highest >= 1e38 else ops.minimum(made, constant_like(highest, x))

    return function


def _slope(config: Config) -> float:
    """The slope of a LeakyReLU: Keras 2 calls it alpha."""
    key = "negative_slope" if "negative_slope" in config.settings else "alpha"
    return config.number(key, 0.3)


def leaky(config: Config) -> Function:
    """The function of a LeakyReLU layer."""
    slope = _slope(config)
    return lambda x: leaky_relu(x, slope)


def _elu_of(config: Config) -> Function:
    alpha = config.number("alpha", 1.0)
    return lambda x: elu(x, alpha)


def _softmax_of(config: Config) -> Function:
    axis: Any = config.get("axis", -1)
    if axis != -1:
        raise config.unsupported("an axis as an activation")
    return softmax


#: Layers that may stand where a function is asked for.
_LAYERS: Final[dict[str, Callable[[Config], Function]]] = {
    "ReLU": bounded_relu,
    "LeakyReLU": leaky,
    "ELU": _elu_of,
    "Softmax": _softmax_of,
    "Activation": activation,
}
