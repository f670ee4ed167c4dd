"""Write networks that Keras has, with random weights of sensible sizes, as frozen graphs.

    python -m benchmarks.keras_networks NAME GRAPH

Needs TensorFlow and Keras.  ``make_graphs`` runs this in a process of its own, since Keras builds
its models eagerly.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf
from keras import layers
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

#: Tokens of the encoder, numbers of each, layers, and heads of each.
TOKENS, WIDTH, LAYERS, HEADS = 128, 768, 12, 12
WORDS = 3000


def _application(name: str) -> Any:
    """An image network of Keras' own, for images of 224 by 224, down to its logits."""
    make = getattr(keras.applications, name)
    return make(weights=None, classifier_activation=None, input_shape=(224, 224, 3))


def _encoder() -> Any:
    """Attention and two dense layers, each around a sum, as in BERT."""
    tokens = keras.Input((TOKENS,), dtype="int32", batch_size=1)
    places = layers.Embedding(TOKENS, WIDTH)(keras.ops.arange(TOKENS)[None])
    x = layers.LayerNormalization()(layers.Embedding(WORDS, WIDTH)(tokens) + places)
    for _ in range(LAYERS):
        seen = layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(x, x)
        x = layers.LayerNormalization()(x + seen)
        hidden = layers.Dense(4 * WIDTH, activation="gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dense(WIDTH)(hidden))
    return keras.Model(tokens, layers.Dense(10)(x[:, 0]))


def _classifier() -> Any:
    """Words, a recurrent layer in both directions, and a class."""
    words = keras.Input((100,), dtype="int32", batch_size=1)
    x = layers.Embedding(WORDS, 128)(words)
    x = layers.Bidirectional(layers.LSTM(128))(x)
    return keras.Model(words, layers.Dense(10)(x))


NETWORKS: dict[str, Callable[[], Any]] = {
    "efficientnet_b0": lambda: _application("EfficientNetB0"),
    "mobilenet_v3": lambda: _application("MobileNetV3Large"),
    "densenet_121": lambda: _application("DenseNet121"),
    "inception_v3": lambda: _application("InceptionV3"),
    "encoder_12": _encoder,
    "lstm_classifier": _classifier,
}


def _sensible(model: Any) -> None:
    """Weights under which numbers neither grow nor vanish from layer to layer."""
    random = np.random.default_rng(7)
    for variable in model.variables:
        shape = tuple(variable.shape)
        if len(shape) > 1 and "embedding" not in variable.path:
            is_by_channel = "depthwise" in variable.path
            fan_in = np.prod(shape[:2]) if is_by_channel else np.prod(shape[:-1])
            scale = np.sqrt(2 / fan_in)
            variable.assign((random.standard_normal(shape) * scale).astype(np.float32))


def frozen(name: str) -> Any:
    """The graph of a network; its input is called x, and what it gives y."""
    model = NETWORKS[name]()
    _sensible(model)
    (given,) = model.inputs
    spec = tf.TensorSpec((1, *given.shape[1:]), given.dtype, name="x")
    called = tf.function(lambda x: tf.identity(model(x, training=False), name="y"))
    return convert_variables_to_constants_v2(
        called.get_concrete_function(spec)
    ).graph.as_graph_def()


def main() -> None:
    """Write one of them."""
    name, path = sys.argv[1:]
    Path(path).write_bytes(frozen(name).SerializeToString())


if __name__ == "__main__":
    main()
