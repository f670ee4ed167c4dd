"""Models of layers that see each example at once: dense, convolutional, pooling, normalising."""

from __future__ import annotations

from typing import Any

from keras_models_src.book import Family, branches, generation_of, only

FAMILIES: list[Family] = []


@branches(FAMILIES, x=(3, 4))
def dense(k: Any, x: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    made = [
        L.Dense(5)(x),
        L.Dense(5, use_bias=False, activation="tanh")(x),
        L.Dense(4, trainable=False)(x),
        L.Dense(2, activation=k.activations.softmax)(L.Flatten()(x)),
        L.EinsumDense("abc,cd->abd", output_shape=(None, 6), bias_axes="d", activation="relu")(x),
        L.EinsumDense("...x,xy->...y", output_shape=5)(x),
        L.ActivityRegularization(0.1)(L.Dropout(0.5)(x)),
        L.GaussianNoise(1.0)(L.GaussianDropout(0.5)(L.SpatialDropout1D(0.5)(x))),
    ]
    return [*made, *only(k, 3, lambda: [L.AlphaDropout(0.5)(L.Identity()(x))])]


_FUNCTIONS = [
    "linear",
    "relu",
    "sigmoid",
    "tanh",
    "softmax",
    "softplus",
    "softsign",
    "exponential",
    "elu",
    "selu",
    "swish",
    "gelu",
    "hard_sigmoid",
]
_NEW_FUNCTIONS = [
    "relu6",
    "silu",
    "mish",
    "celu",
    "glu",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "hard_silu",
    "hard_tanh",
    "hard_shrink",
    "soft_shrink",
    "tanh_shrink",
    "squareplus",
    "sparse_plus",
    "sparse_sigmoid",
]


@branches(FAMILIES, x=(3, 6))
def activations(k: Any, x: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    slope = "negative_slope" if generation_of(k) == 3 else "alpha"
    made = [L.Activation(name)(x) for name in _FUNCTIONS]
    made += [
        L.ReLU()(x),
        L.ReLU(max_value=1.5)(x),
        L.ReLU(6)(x),
        L.ReLU(negative_slope=0.1, threshold=0.25, max_value=1.0)(x),
        L.ReLU(negative_slope=0.1)(x),
        L.LeakyReLU(**{slope: 0.2})(x),
        L.LeakyReLU()(x),
        L.ELU(0.7)(x),
        L.PReLU()(x),
        L.PReLU(shared_axes=[1])(x),
        L.Softmax()(x),
        L.Softmax(axis=1)(x),
        L.Softmax(axis=[1, 2])(x),
        L.Dense(3, activation=L.LeakyReLU(**{slope: 0.4}))(x),
    ]
    made += only(k, 2, lambda: [L.ThresholdedReLU(0.5)(x)])
    return made + only(k, 3, lambda: [L.Activation(name)(x) for name in _NEW_FUNCTIONS])


@branches(FAMILIES, x=(9, 4), y=(9, 8, 4))
def convolutions(k: Any, x: Any, y: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    made = [
        L.Conv1D(3, 3)(x),
        L.Conv1D(3, 2, padding="same", strides=2, activation="relu")(x),
        L.Conv1D(3, 2, padding="causal", dilation_rate=2, use_bias=False)(x),
        L.DepthwiseConv1D(3, depth_multiplier=2, padding="same")(x),
        L.SeparableConv1D(3, 3, depth_multiplier=2, strides=2)(x),
        *only(k, 2, lambda: [L.SeparableConv1D(3, 2, padding="causal", use_bias=False)(x)]),
        L.Conv2D(3, 3)(y),
        L.Conv2D(3, (2, 3), padding="same", strides=(2, 1), activation="relu")(y),
        L.Conv2D(4, 3, padding="same", strides=2)(y),
        L.Conv2D(3, 2, dilation_rate=(2, 1), use_bias=False)(y),
        L.Conv2D(3, 3, dilation_rate=2, padding="same")(y),
        L.DepthwiseConv2D(3, depth_multiplier=2)(y),
        L.DepthwiseConv2D((3, 2), strides=2, padding="same", use_bias=False)(y),
        L.DepthwiseConv2D(2, dilation_rate=2, padding="same")(y),
        L.SeparableConv2D(3, 3, depth_multiplier=2, padding="same", activation="tanh")(y),
        L.SeparableConv2D(3, 2, strides=2, use_bias=False)(y),
    ]
    return made + only(
        k, 3, lambda: [L.Conv2D(4, 3, groups=2)(y), L.Conv1D(4, 3, groups=2, padding="same")(x)]
    )


@branches(FAMILIES, x=(6, 3), y=(5, 6, 3), z=(4, 5, 4, 2))
def convolutions_back(k: Any, x: Any, y: Any, z: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    return [
        L.Conv1DTranspose(2, 3)(x),
        L.Conv1DTranspose(2, 3, strides=2, padding="same", activation="relu")(x),
        L.Conv1DTranspose(2, 2, strides=3)(x),
        L.Conv2DTranspose(2, 3)(y),
        L.Conv2DTranspose(2, (3, 2), strides=2, padding="same", use_bias=False)(y),
        L.Conv2DTranspose(2, 2, strides=(2, 3))(y),
        L.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=1)(y),
        L.Conv3D(3, 2)(z),
        L.Conv3D(3, (2, 3, 2), strides=2, padding="same", activation="relu")(z),
        L.Conv3DTranspose(2, 2)(z),
        L.Conv3DTranspose(2, 3, strides=2, padding="same")(z),
    ]


@branches(FAMILIES, x=(9, 3), y=(7, 6, 3), z=(5, 4, 6, 2))
def pooling(k: Any, x: Any, y: Any, z: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    made = []
    for kind in ("Max", "Average"):
        one, two, three = (getattr(L, f"{kind}Pooling{n}D") for n in (1, 2, 3))
        made += [one(2)(x), one(3, strides=2, padding="same")(x)]
        made += [two(2)(y), two((3, 2), strides=(2, 1), padding="same")(y)]
        made += [three(2)(z), three(2, strides=1, padding="same")(z)]
        made += [one(2, data_format="channels_first")(x)]
        made += only(k, 3, lambda two=two: [two(2, data_format="channels_first")(y)])
        for n, value in ((1, x), (2, y), (3, z)):
            over = getattr(L, f"Global{kind}Pooling{n}D")
            made += [over()(value), over(keepdims=True)(value)]
            made += [over(data_format="channels_first")(value)]
    adaptive = [
        lambda: [L.AdaptiveAveragePooling1D(4)(x), L.AdaptiveMaxPooling1D(2)(x)],
        lambda: [L.AdaptiveAveragePooling2D((3, 4))(y), L.AdaptiveMaxPooling2D((2, 3))(y)],
        lambda: [L.AdaptiveAveragePooling3D((2, 3, 4))(z), L.AdaptiveMaxPooling3D(2)(z)],
    ]
    return made + [leaf for make in adaptive for leaf in only(k, 3, make)]


@branches(FAMILIES, x=(5, 4), y=(4, 3, 6))
def normalization(k: Any, x: Any, y: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    made = [
        L.BatchNormalization()(x),
        L.BatchNormalization(axis=1, epsilon=0.01)(y),
        L.BatchNormalization(scale=False)(y),
        L.BatchNormalization(center=False, trainable=False)(y),
        L.BatchNormalization(center=False, scale=False)(y),
        L.LayerNormalization()(x),
        L.LayerNormalization(axis=[1, 2], epsilon=1e-5)(x),
        L.LayerNormalization(axis=1, center=False)(y),
        L.LayerNormalization(scale=False, center=False)(y),
        L.GroupNormalization(2)(y),
        L.GroupNormalization(-1, center=False, scale=False)(y),
        L.GroupNormalization(2, axis=1)(y),
        L.UnitNormalization()(x),
        L.UnitNormalization(axis=1)(y),
    ]
    new = (
        [
            L.LayerNormalization(rms_scaling=True)(y),
            L.RMSNormalization()(x),
            L.RMSNormalization(axis=[1, 2], epsilon=0.1)(x),
        ]
        if (generation_of(k) == 3)
        else []
    )
    return made + new


@branches(FAMILIES, x=(5, 4), y=(5, 6, 2), z=(4, 3, 5, 2))
def reshaping(k: Any, x: Any, y: Any, z: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    made = [
        L.Flatten()(y),
        L.Flatten(data_format="channels_first")(y),
        L.Reshape((10, 2))(x),
        L.Reshape((-1, 2, 2))(x),
        L.Permute((3, 1, 2))(y),
        L.RepeatVector(3)(L.Flatten()(x)),
        L.Cropping1D((1, 2))(x),
        L.Cropping1D(1)(x),
        L.Cropping2D(((1, 0), (2, 1)))(y),
        L.Cropping2D((1, 2), data_format="channels_last")(y),
        L.Cropping3D(1)(z),
        L.Cropping3D(((1, 0), (0, 1), (2, 1)))(z),
        L.ZeroPadding1D(2)(x),
        L.ZeroPadding1D((0, 2))(x),
        L.ZeroPadding2D(((1, 0), (2, 1)))(y),
        L.ZeroPadding2D((1, 2), data_format="channels_first")(y),
        L.ZeroPadding3D((1, 0, 2))(z),
        L.UpSampling1D(3)(x),
        L.UpSampling2D((2, 3))(y),
        L.UpSampling2D(2, interpolation="bilinear")(y),
        L.UpSampling3D((1, 2, 3))(z),
    ]
    more = (
        ("bicubic", "lanczos3")
        if generation_of(k) == 3
        else ("bicubic", "lanczos3", "area", "gaussian")
    )
    return made + [L.UpSampling2D(2, interpolation=how)(y) for how in more]


@branches(FAMILIES, x=(3, 4), y=(3, 4), z=(3, 4), w=(5, 4))
def merging(k: Any, x: Any, y: Any, z: Any, w: Any) -> list[Any]:
    L = k.layers  # noqa: N806
    flat = L.Flatten()
    return [
        *(getattr(L, name)()([x, y, z]) for name in ("Add", "Multiply", "Average")),
        *(getattr(L, name)()([x, y, z]) for name in ("Maximum", "Minimum", "Concatenate")),
        L.Subtract()([x, y]),
        L.Concatenate(axis=1)([x, w]),
        L.Concatenate(axis=-2)([x, w, y]),
        L.Add()([x, L.Dense(1)(y)]),
        L.Dot(axes=1)([flat(x), flat(y)]),
        L.Dot(axes=-1, normalize=True)([flat(x), flat(y)]),
        L.Dot(axes=2)([x, w]),
        L.Dot(axes=(1, 1))([x, y]),
        L.Dot(axes=(2, 1))([x, L.Permute((2, 1))(w)]),
    ]
