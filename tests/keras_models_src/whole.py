"""Models as a whole: models inside of models, layers that are called twice, dicts, Sequential."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from keras_models_src.book import Family, Given, branches, generation_of

FAMILIES: list[Family] = []


def model(**inputs: Any) -> Callable[..., Any]:
    """Add a model: a function from Keras and inputs by name to the model itself."""
    only, without_h5 = inputs.pop("only", (2, 3)), inputs.pop("without_h5", ())
    given = {n: v if isinstance(v, Given) else Given(v) for n, v in inputs.items()}

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        FAMILIES.append(Family(function.__name__, function, given, only, without_h5=without_h5))
        return function

    return register


@model(x=(4,))
def sequential(k: Any, tensors: dict[str, Any]) -> Any:
    L = k.layers  # noqa: N806
    return k.Sequential([tensors["x"], L.Dense(5, activation="relu"), L.Dropout(0.5), L.Dense(2)])


@model(first_input=(4,))
def sequential_without_input_layer(k: Any, _: dict[str, Any]) -> Any:
    L = k.layers  # noqa: N806
    shape = {} if generation_of(k) == 3 else {"input_shape": (4,)}
    made = k.Sequential([L.Dense(5, activation="relu", name="first", **shape), L.Dense(2)])
    made.build((None, 4))
    return made


@model(x=(3, 4), y=(3, 4))
def nested(k: Any, tensors: dict[str, Any]) -> Any:
    L = k.layers  # noqa: N806
    x, y = tensors["x"], tensors["y"]
    i = k.Input((3, 4))
    tower = k.Model(i, L.Conv1D(4, 2)(L.BatchNormalization()(L.Dense(4)(i))), name="tower")
    head = k.Sequential([L.Flatten(), L.Dense(3)], name="head")
    listed = (
        k.Sequential([L.Dense(4, input_shape=(3, 4)), L.ReLU()], name="listed")
        if (generation_of(k) == 2)
        else k.Sequential([k.Input((3, 4)), L.Dense(4), L.ReLU()], name="listed")
    )
    a, b = k.Input((3, 4)), k.Input((3, 4))
    two = k.Model([a, b], [L.Add()([a, b]), L.Dense(2)(L.Multiply()([a, b]))], name="two")
    j = k.Input((3, 4))
    inner = k.Sequential([k.Input((3, 4)), L.BatchNormalization(), L.Dense(4)], name="inner")
    frozen = k.Model(j, L.Dense(2)(L.BatchNormalization()(inner(L.Dense(4)(j)))), name="frozen")
    frozen.trainable = False
    around_i = k.Input((3, 4))
    partly = L.Dense(4, trainable=False)(L.BatchNormalization(trainable=False)(around_i))
    around = k.Model(around_i, L.Flatten()(frozen(L.Dense(4)(partly))), name="around")
    shared = L.Dense(4, name="shared")
    total, products = two([x, y])
    return k.Model(
        [x, y],
        [
            head(tower(x)),
            head(tower(listed(y))),
            around(total),
            around(listed(shared(shared(x)))),
            products,
            two([y, shared(y)])[1],
            L.TimeDistributed(k.Sequential([L.Dense(3), L.Dense(2)]))(x),
        ],
        name="outer",
    )


@model(left=(3,), right=(2,))
def dicts(k: Any, tensors: dict[str, Any]) -> Any:
    L = k.layers  # noqa: N806
    left, right = tensors["left"], tensors["right"]
    joined = L.Concatenate()([right, left])
    outputs = {"sum": L.Dense(2)(joined), "by": L.Dense(1, activation="sigmoid")(joined)}
    return k.Model(tensors, outputs, name="dicts")


@model(x=(6,), only=(3,))
def dict_inside(k: Any, tensors: dict[str, Any]) -> Any:
    L = k.layers  # noqa: N806
    a, b = k.Input((3,), name="zz"), k.Input((3,), name="aa")
    inner = k.Model({"zz": a, "aa": b}, {"p": L.Dense(2)(a), "o": L.Dense(3)(b)}, name="inner")
    x = tensors["x"]
    made = inner({"zz": x[:, :3], "aa": x[:, 3:]})
    return k.Model(x, [made["o"], made["p"]], name="outer")


@model(x=Given((None,), below=20, declared=(None,)))
def text(k: Any, tensors: dict[str, Any]) -> Any:
    L = k.layers  # noqa: N806
    return k.Sequential(
        [
            tensors["x"],
            L.Embedding(20, 6, mask_zero=True),
            L.SpatialDropout1D(0.2),
            L.Bidirectional(L.LSTM(5, return_sequences=True, dropout=0.1)),
            L.Bidirectional(L.GRU(4)),
            L.Dense(3, activation="softmax"),
        ]
    )


@model(image=Given((None, None, 3), declared=(None, None, 3)))
def image_of_any_size(k: Any, tensors: dict[str, Any]) -> Any:
    L = k.layers  # noqa: N806
    x = tensors["image"]
    y = L.Conv2D(4, 3, strides=2, padding="same", use_bias=False)(x)
    y = L.ReLU(6.0)(L.BatchNormalization()(y))
    y = L.ZeroPadding2D(((0, 1), (0, 1)))(y)
    y = L.DepthwiseConv2D(3, strides=2, use_bias=False)(y)
    z = L.Conv2DTranspose(3, 3, strides=2, padding="same")(y)
    z = L.UpSampling2D(2, interpolation="bilinear")(z)
    z = L.Cropping2D(1)(z)
    return k.Model(x, [L.Dense(2)(L.GlobalAveragePooling2D()(y)), z, L.MaxPooling2D(2)(z)])


@model(only=(3,), without_h5=(3,), x=(32, 32, 3))
def mobilenet_v2(k: Any, tensors: dict[str, Any]) -> Any:
    return k.applications.MobileNetV2(
        input_tensor=tensors["x"], alpha=0.05, weights=None, classes=5
    )


@model(x=(4, 3))
def half_precision(k: Any, tensors: dict[str, Any]) -> Any:
    L = k.layers  # noqa: N806
    x = L.Dense(4, dtype="mixed_float16")(tensors["x"])
    y = L.LayerNormalization(dtype="mixed_float16")(L.BatchNormalization(dtype="float16")(x))
    return k.Model(
        tensors["x"], [L.Dense(2, dtype="float32")(x), L.Dense(2, dtype="float64")(x), y]
    )


@branches(FAMILIES, without_h5=(3,), x=(6, 5, 3), y=(3,), t=Given((2,), below=4, dtype="int32"))
def preprocessing(k: Any, x: Any, y: Any, t: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    made = [
        L.Rescaling(1 / 127.5, offset=-1)(x),
        L.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 0.25])(y),
        L.Normalization(mean=1.0, variance=4.0, invert=True)(y),
        L.Resizing(4, 7)(x),
        L.Resizing(3, 3, interpolation="nearest")(x),
        L.Resizing(4, 4, crop_to_aspect_ratio=True)(x),
        L.CenterCrop(4, 3)(x),
        L.CategoryEncoding(4, output_mode="one_hot")(t[:, :1]),
        L.CategoryEncoding(4, output_mode="multi_hot")(t),
        L.CategoryEncoding(4, output_mode="count")(t),
        L.Discretization(bin_boundaries=[-0.5, 0.0, 1.0])(y),
        *(layer(x) for layer in (L.RandomFlip(), L.RandomRotation(0.1), L.RandomZoom(0.1))),
        *(layer(x) for layer in (L.RandomContrast(0.1), L.RandomTranslation(0.1, 0.1))),
        L.RandomBrightness(0.1)(x),
        L.GaussianNoise(0.1)(x),
    ]
    adapted = L.Normalization()
    adapted.adapt(np.arange(12, dtype=np.float32).reshape(4, 3) ** 2 / 64)
    return [*made, adapted(y)]
