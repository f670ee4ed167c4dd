"""Models of Keras 3, exported with random weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from saved_models_src.recipe import Call, Recipe

_RANDOM = np.random.default_rng(13)


def _floats(*shape: int) -> Any:
    return _RANDOM.normal(size=shape).astype(np.float32)


def _exported(make: Any) -> Any:
    """A function that saves what ``make`` makes, as people export Keras models."""

    def save(folder: str) -> None:
        import keras

        keras.utils.set_random_seed(7)
        keras.backend.clear_session()
        make(keras).export(folder, verbose=False)

    return save


def _mlp(keras: Any) -> Any:
    layers = keras.layers
    model = keras.Sequential(
        [keras.Input((5,), name="features"), layers.Dense(8, "relu"), layers.Dense(3, "softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(np.ones((4, 5), np.float32), np.array([0, 1, 2, 0]), verbose=0)
    return model


def _cnn(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((12, 12, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(moving_mean_initializer="random_normal"),
            layers.MaxPooling2D(),
            layers.DepthwiseConv2D(2, padding="same"),
            layers.GlobalAveragePooling2D(),
            layers.Dropout(0.5),
            layers.Dense(3),
        ]
    )


def _recurrent(kind: str) -> Any:
    def make(keras: Any) -> Any:
        layers = keras.layers
        cell = getattr(layers, kind)
        return keras.Sequential(
            [
                keras.Input((6, 3)),
                layers.Bidirectional(cell(4, return_sequences=True)),
                cell(5),
                layers.Dense(2),
            ]
        )

    return make


def _transformer(keras: Any) -> Any:
    layers = keras.layers
    tokens = keras.Input((7,), dtype="int32", name="tokens")
    x = layers.Embedding(20, 8)(tokens)
    attended = layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    x = layers.LayerNormalization()(x + attended)
    inner = layers.Dense(8)(layers.Dense(16, "gelu")(x))
    x = layers.LayerNormalization()(x + inner)
    return keras.Model(tokens, {"logits": layers.Dense(20)(x), "pooled": x[:, 0]})


def _mobilenet_v2(keras: Any) -> Any:
    return keras.applications.MobileNetV2((96, 96, 3), alpha=0.35, weights=None, classes=10)


def _application(name: str) -> Any:
    """One of Keras' own, as it stands there."""

    def make(keras: Any) -> Any:
        return getattr(keras.applications, name)(weights=None)

    return make


def _two_inputs(keras: Any) -> Any:
    """Two inputs and nested models whose layers bear the same names."""

    def tower() -> Any:
        return keras.Sequential(
            [keras.Input((4,)), keras.layers.Dense(3, "tanh", name="d1")], name="tower"
        )

    left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    first, second = tower(), keras.Sequential([tower()], name="outer")
    joined = keras.layers.Concatenate()([first(left), second(right)])
    return keras.Model([left, right], keras.layers.Dense(1, name="d1")(joined))


def _text(keras: Any) -> Any:
    layers = keras.layers
    words = layers.TextVectorization(
        vocabulary=["the", "cat", "sat"], output_sequence_length=4, standardize=None
    )
    model = keras.Sequential(
        [keras.Input((), dtype="string"), words, layers.Embedding(5, 3), layers.Flatten()]
    )
    model(np.array(["the cat"]))
    return model


def _trained(folder: str) -> None:
    """A whole Keras model with its optimizer, whose slots are variables of the checkpoint, too."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(7)
    keras.backend.clear_session()
    model = _mlp(keras)
    tf.saved_model.save(model, folder)


_TOKENS = _RANDOM.integers(0, 20, (2, 7)).astype(np.int32)

RECIPES = [
    Recipe(
        "keras_mlp",
        _exported(_mlp),
        [Call("serving_default", kwargs={"features": _floats(2, 5)})],
    ),
    Recipe(
        "keras_cnn",
        _exported(_cnn),
        [
            Call("serving_default", kwargs={"keras_tensor": _floats(2, 12, 12, 1)}),
            Call(path="serve", args=(_floats(1, 12, 12, 1),)),
        ],
    ),
    Recipe(
        "keras_lstm",
        _exported(_recurrent("LSTM")),
        [Call("serve", kwargs={"keras_tensor": _floats(2, 6, 3)})],
    ),
    Recipe(
        "keras_gru",
        _exported(_recurrent("GRU")),
        [Call("serve", kwargs={"keras_tensor": _floats(2, 6, 3)})],
    ),
    Recipe(
        "keras_transformer",
        _exported(_transformer),
        [Call("serving_default", kwargs={"tokens": _TOKENS})],
    ),
    Recipe(
        "keras_mobilenet_v2",
        _exported(_mobilenet_v2),
        [Call("serving_default", kwargs={"keras_tensor": _floats(1, 96, 96, 3)})],
        is_large=True,
    ),
    *[
        # Of some hundred megabytes, to be measured; what they answer to random weights says little.
        Recipe(f"keras_{name.lower()}", _exported(_application(name)), [], is_large=True)
        for name in ("ConvNeXtBase", "EfficientNetV2L", "VGG16")
    ],
    Recipe(
        "keras_two_inputs",
        _exported(_two_inputs),
        [Call("serving_default", kwargs={"left": _floats(3, 4), "right": _floats(3, 4)})],
    ),
    Recipe(
        "keras_text",
        _exported(_text),
        [Call("serve", kwargs={"keras_tensor": np.array([b"the cat sat", b"on the mat"], object)})],
    ),
    Recipe(
        "keras_trained",
        _trained,
        [Call("serving_default", kwargs={"inputs": _floats(2, 5)})],
    ),
]
