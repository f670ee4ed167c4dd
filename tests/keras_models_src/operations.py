"""Models in which functions stand beside layers, as Keras notes them down."""

from __future__ import annotations

from typing import Any

from keras_models_src.book import Family, Given, branches

FAMILIES: list[Family] = []


@branches(FAMILIES, only=(3,), x=(3, 4), y=(3, 4), t=Given((3,), below=4, dtype="int32"))
def operations(k: Any, x: Any, y: Any, t: Any) -> list[Any]:
    o = k.ops
    positive = o.abs(x) + 0.5
    first, second = o.split(x, 2, axis=-1)
    return [
        x * 2.0 + 1.0,
        1.0 - x / 4.0,
        -x - y,
        positive**2.0,
        o.power(positive, 0.5),
        x[:, 0],
        x[:, 1:, ::2],
        x[..., None, -1],
        o.matmul(x, o.transpose(y, (0, 2, 1))),
        o.mean(x, axis=1),
        o.sum(x, axis=(1, 2), keepdims=True),
        o.max(x, axis=-1) - o.min(x, axis=-1),
        o.var(x, axis=-1),
        o.std(x, axis=1, keepdims=True),
        o.prod(x, axis=-1),
        o.reshape(x, (-1, 12)),
        o.transpose(x, (0, 2, 1)),
        o.expand_dims(x, 1),
        o.squeeze(o.expand_dims(x, 1), 1),
        o.concatenate([x, y], axis=1),
        o.stack([x, y], axis=-1),
        first,
        second,
        *(getattr(o, name)(x) for name in ("exp", "sin", "cos", "tanh", "square", "sign")),
        *(getattr(o, name)(x) for name in ("floor", "ceil", "round", "erf", "negative")),
        *(getattr(o, name)(positive) for name in ("log", "sqrt", "rsqrt", "log1p", "reciprocal")),
        *(getattr(o, name)(x) for name in ("relu", "sigmoid", "softplus", "silu", "relu6", "elu")),
        o.gelu(x, approximate=True),
        o.gelu(x, approximate=False),
        o.softmax(x, axis=1),
        o.log_softmax(x),
        o.leaky_relu(x, negative_slope=0.3),
        o.hard_sigmoid(x),
        o.maximum(x, 0.25),
        o.minimum(x, y),
        o.clip(x, -0.5, 0.5),
        o.where(x > y, x, y),
        o.cast(x > 0.0, "float32"),
        o.cast(o.logical_and(x > 0.0, o.logical_not(y <= 0.0)), "float32"),
        o.one_hot(t, 5),
        o.argmax(x, axis=-1),
        o.take(x, t, axis=2),
        o.einsum("bij,bkj->bik", x, y),
        o.zeros_like(x) + o.ones_like(y),
        o.repeat(x, 2, axis=1),
        o.tile(x, (1, 2, 1)),
        o.pad(x, ((0, 0), (1, 2), (0, 0))),
        o.flip(x, axis=1),
        o.cumsum(x, axis=1),
        o.norm(x, axis=-1),
        o.normalize(x, axis=-1),
        o.logsumexp(x, axis=-1),
        o.swapaxes(x, 1, 2),
        o.squeeze(o.mean(x, axis=1, keepdims=True), axis=1),
        o.cast(o.equal(t, 2), "float32") + o.cast(o.not_equal(t, 1), "float32"),
        o.cast(o.any(x > 1.0, axis=-1), "float32"),
        o.cast(o.all(x > -1.0, axis=-1), "float32"),
        o.absolute(x),
        o.arctan2(x, y),
        o.floor_divide(x, 0.5),
        o.mod(x, 0.75),
    ]


@branches(FAMILIES, only=(2,), x=(3, 4), y=(3, 4), t=Given((3,), below=4, dtype="int32"))
def old_operations(_: Any, x: Any, y: Any, t: Any) -> list[Any]:
    import tensorflow as tf

    positive = tf.abs(x) + 0.5
    return [
        x * 2.0 + 1.0,
        1.0 - x / 4.0,
        -x - y,
        positive**2.0,
        x[:, 0],
        x[:, 1:, ::2],
        tf.matmul(x, y, transpose_b=True),
        tf.reduce_mean(x, axis=1),
        tf.reduce_sum(x, axis=[1, 2], keepdims=True),
        tf.reduce_max(x, axis=-1) - tf.reduce_min(x, -1),
        tf.reshape(x, (-1, 12)),
        tf.reshape(x, (tf.shape(x)[0], 2, 6)),
        tf.transpose(x, (0, 2, 1)),
        tf.expand_dims(x, 1),
        tf.squeeze(tf.expand_dims(x, 1), axis=[1]),
        tf.concat([x, y], axis=1),
        tf.stack([x, y], axis=-1),
        *tf.split(x, 2, axis=-1),
        *(getattr(tf, name)(x) for name in ("exp", "sin", "cos", "tanh", "square", "sign")),
        *(getattr(tf, name)(x) for name in ("floor", "abs", "negative", "sigmoid")),
        *(getattr(tf.math, name)(positive) for name in ("log", "sqrt", "rsqrt", "log1p")),
        *(getattr(tf.nn, name)(x) for name in ("relu", "relu6", "softplus", "silu", "elu", "selu")),
        tf.nn.gelu(x),
        tf.nn.softmax(x),
        tf.nn.softmax(x, axis=1),
        tf.nn.leaky_relu(x, alpha=0.3),
        tf.nn.l2_normalize(x, axis=-1),
        tf.math.l2_normalize(x, axis=1),
        tf.maximum(x, 0.25),
        tf.minimum(x, y),
        tf.clip_by_value(x, -0.5, 0.5),
        tf.where(x > y, x, y),
        tf.cast(x > 0.0, tf.float32),
        tf.cast(tf.logical_and(x > 0.0, tf.logical_not(y <= 0.0)), "float32"),
        tf.one_hot(t, 5),
        tf.argmax(x, axis=-1),
        tf.gather(x, 1, axis=2),
        tf.zeros_like(x) + tf.ones_like(y),
        tf.tile(x, (1, 2, 1)),
        tf.pad(x, ((0, 0), (1, 2), (0, 0))),
        tf.norm(x, axis=-1),
        tf.identity(x),
        tf.math.divide(x, positive),
        tf.math.pow(positive, 0.5),
        tf.math.squared_difference(x, y),
        tf.add_n([x, y, x]),
        tf.image.resize(tf.expand_dims(x, -1), (5, 6)),
        tf.nn.space_to_depth(tf.expand_dims(x[:, :2], -1), 2),
        tf.nn.depth_to_space(tf.expand_dims(x, 1), 2),
    ]
