"""How each Keras notes down a function that stands in a model beside layers.

Keras 3 has a class for each (``keras.src.ops.numpy``: ``Mean``), whose settings are those of its
constructor; Keras 2 has two layers, ``TFOpLambda`` and ``SlicingOpLambda``, that name a function of
TensorFlow (``math.reduce_mean``) and its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock.formats.keras.config import Config
from penstock.formats.keras.layer import Layer, layer
from penstock.formats.keras.layers.functions import FUNCTIONS
from penstock.formats.keras.symbol import Nest

#: Classes whose name is not that of the function in other letters.
_CLASSES: Final = {
    "Absolute": "abs", "TrueDivide": "divide", "GetItem": "getitem", "LeakyRelu": "leaky_relu",
    "LogSoftmax": "log_softmax", "HardSigmoid": "hard_sigmoid", "HardSilu": "hard_silu",
    "LogSigmoid": "log_sigmoid", "ZerosLike": "zeros_like", "OnesLike": "ones_like",
    "ExpandDims": "expand_dims", "NotEqual": "not_equal", "GreaterEqual": "greater_equal",
    "LessEqual": "less_equal", "LogicalAnd": "logical_and", "LogicalOr": "logical_or",
    "LogicalNot": "logical_not", "OneHot": "one_hot", "FloorDivide": "floor_divide",
    "StopGradient": "stop_gradient", "ConvertToTensor": "convert_to_tensor",
}  # fmt: skip
#: Settings by the names that ``functions`` has for them.
_SETTINGS: Final = {
    "newshape": "shape", "indices_or_sections": "sections", "pad_width": "paddings",
    "x_min": "low", "x_max": "high", "negative_slope": "slope", "num_classes": "depth",
    "subscripts": "equation", "clip_value_min": "low", "clip_value_max": "high",
    "num_or_size_splits": "sections", "perm": "axes", "multiples": "repeats",
    "keep_dims": "keepdims",
}  # fmt: skip
#: What belongs to the layer, not to the function.
_OF_THE_LAYER: Final = ("name", "trainable", "batch_shape", "batch_input_shape")


def _known(function: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    settings = {_SETTINGS.get(key, key): value for key, value in kwargs.items()}
    if function == "leaky_relu" and "alpha" in settings:
        settings["slope"] = settings.pop("alpha")
    settings.pop("name", None)
    return settings


def _run(config: Config, function: str, args: tuple[Any, ...], settings: dict[str, Any]) -> Nest:
    """The function's nodes; what does not fit it is an error of the file."""
    try:
        return FUNCTIONS[function](config, *args, **settings)
    except (TypeError, ValueError, AttributeError, IndexError) as cause:
        raise config.error(f"it cannot be called so: {cause}") from None


# -- Keras 3 --------------------------------------------------------------------------------------


def _operation(function: str) -> Callable[..., Nest]:
    def operation(self: Layer, *args: Any, **kwargs: Any) -> Nest:
        config = self.config
        own = {k: v for k, v in config.settings.items() if k not in _OF_THE_LAYER}
        if not isinstance(own.get("dtype"), str):  # the policy of the layer, not an argument
            own.pop("dtype", None)
        return _run(config, function, args, _known(function, {**own, **kwargs}))

    return operation


def _class_name(function: str) -> str:
    by_function = {name: class_name for class_name, name in _CLASSES.items()}
    return by_function.get(function, function[:1].upper() + function[1:])


for _name in FUNCTIONS:
    layer(f"ops.{_class_name(_name)}", converts=False)(_operation(_name))


# -- Keras 2 --------------------------------------------------------------------------------------

#: Functions of TensorFlow whose last word is not the function's name here.
_OF_TENSORFLOW: Final = {
    "truediv": "divide", "pow": "power", "reduce_mean": "mean", "reduce_sum": "sum",
    "reduce_max": "max", "reduce_min": "min", "reduce_prod": "prod", "reduce_any": "any",
    "reduce_all": "all", "reduce_std": "std", "reduce_variance": "var",
    "reduce_logsumexp": "logsumexp", "concat": "concatenate", "gather": "take",
    "clip_by_value": "clip", "l2_normalize": "normalize", "reverse": "flip", "swish": "silu",
    "floordiv": "floor_divide", "floormod": "mod", "atan2": "arctan2", "asin": "arcsin",
    "acos": "arccos", "atan": "arctan", "is_nan": "isnan", "neg": "negative",
    "bias_add": "add", "where_v2": "where", "less_than": "less",
}  # fmt: skip
#: The first argument of functions, which the file may give by its name.
_FIRST: Final = ("x", "input", "input_tensor", "tensor", "a", "value", "features", "values",
                 "images", "logits", "params", "inputs", "condition", "indices")  # fmt: skip


def _function_of(config: Config) -> str:
    name = config.text("function").rpartition(".")[2]
    function = _OF_TENSORFLOW.get(name, name)
    if function not in FUNCTIONS:
        raise config.unsupported(f"the function tf.{config.text('function')}")
    return function


@layer("TFOpLambda", converts=False)
def tensorflow_function(self: Layer, *args: Any, **kwargs: Any) -> Nest:
    """A function of TensorFlow, of those that are known."""
    function = _function_of(self.config)
    settings = _known(function, kwargs)
    # The second operand has a name, such as y or b, and TensorFlow's defaults differ from Keras'.
    for key in ("y", "b", "indices", "paddings", "shape"):
        if key in settings and args and key in _second_of(function):
            args = (*args, settings.pop(key))
    if function == "where" and "x" in settings:
        args = (
            *args,
            settings.pop("x"),
            *args[2:],
            *([settings.pop("y")] if "y" in settings else []),
        )
    if function == "gelu":
        settings.setdefault("approximate", False)
    if function == "one_hot":
        settings = {k: v for k, v in settings.items() if k in ("depth", "axis", "dtype")}
    return _run(self.config, function, args, settings)


def _second_of(function: str) -> tuple[str, ...]:
    """How the second argument of a function may be called."""
    if function == "where":
        return ()
    return ("y", "b", "indices", "paddings", "shape")


@layer("SlicingOpLambda", converts=False)
def slicing(self: Layer, x: Any, slice_spec: Any = None, **_: Any) -> Nest:
    """What stands between brackets behind a tensor."""
    items = slice_spec if isinstance(slice_spec, list) else [slice_spec]
    return _run(self.config, "getitem", (x, [_bounds(item) for item in items]), {})


def _bounds(item: Any) -> Any:
    if isinstance(item, dict):
        return slice(*(item.get(bound) for bound in ("start", "stop", "step")))
    return item
