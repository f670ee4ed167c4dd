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
#: Pixels of the detector's images, classes beside the background, and objects that it tells of.
SIDE, CLASSES, KEPT = 300, 20, 100


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


def _detector() -> Any:
    """MobileNetV2 for images of 300 by 300, and what an SSD tells of six of its maps.

    For each anchor box: where the object's box lies from there, and the logits of its classes.
    """
    image = keras.Input((SIDE, SIDE, 3), batch_size=1)
    body = keras.applications.MobileNetV2(
        input_tensor=layers.Rescaling(1 / 127.5, -1)(image), include_top=False, weights=None
    )
    maps = [body.get_layer("block_13_expand_relu").output, body.output]
    for width in (512, 256, 256, 128):
        narrow = layers.Conv2D(width // 2, 1, activation="relu6")(maps[-1])
        maps.append(layers.Conv2D(width, 3, 2, padding="same", activation="relu6")(narrow))
    boxes, logits = [], []
    for place, seen in enumerate(maps):
        count = _anchors_per_cell(place)
        boxes.append(layers.Reshape((-1, 4))(_head(f"head_boxes_{place}", 4 * count, 0.0)(seen)))
        # Most of what is looked at is no object of a class.
        head = _head(f"head_classes_{place}", (CLASSES + 1) * count, -2.0)
        logits.append(layers.Reshape((-1, CLASSES + 1))(head(seen)))
    return keras.Model(image, [layers.Concatenate(1)(boxes), layers.Concatenate(1)(logits)])


def _head(name: str, width: int, bias: float) -> Any:
    """A convolution whose weights ``_sensible`` makes small, for scores short of 1."""
    start = keras.initializers.Constant(bias)
    return layers.Conv2D(width, 3, padding="same", bias_initializer=start, name=name)


def _anchors_per_cell(place: int) -> int:
    return 3 if place == 0 else 6


def _anchors() -> Any:
    """The anchor boxes of all maps, as centre and size in parts of the image."""
    rows = []
    for place, cells in enumerate((19, 10, 5, 3, 2, 1)):
        scale = 0.2 + 0.15 * place
        ratios = (1.0, 2.0, 0.5, 3.0, 1 / 3, 1.3)[: _anchors_per_cell(place)]
        for y in range(cells):
            for x in range(cells):
                centre = ((y + 0.5) / cells, (x + 0.5) / cells)
                rows += [(*centre, scale / ratio**0.5, scale * ratio**0.5) for ratio in ratios]
    return np.array(rows, np.float32)


def _detections(found: Any) -> dict[str, Any]:
    """What a detector of TensorFlow's object detection gives: objects, and all it weighed up."""
    encoded, logits = found[0][0], found[1][0]
    anchors = _anchors()
    centre = anchors[:, :2] + encoded[:, :2] / 10 * anchors[:, 2:]
    half = anchors[:, 2:] * tf.exp(encoded[:, 2:] / 5) / 2
    boxes = tf.clip_by_value(tf.concat([centre - half, centre + half], 1), 0.0, 1.0)
    scores = tf.sigmoid(logits)[:, 1:]
    kept_boxes, kept_scores = [], []
    for place in range(CLASSES):
        of_class = scores[:, place]
        kept = tf.image.non_max_suppression(boxes, of_class, KEPT, 0.6, 0.3)
        missing = KEPT - tf.shape(kept)[0]
        kept_boxes.append(tf.pad(tf.gather(boxes, kept), [[0, missing], [0, 0]]))
        kept_scores.append(tf.pad(tf.gather(of_class, kept), [[0, missing]]))
    best = tf.math.top_k(tf.concat(kept_scores, 0), KEPT)
    return {
        "detection_boxes": tf.gather(tf.concat(kept_boxes, 0), best.indices),
        "detection_classes": best.indices // KEPT,
        "detection_scores": best.values,
        "raw_detection_boxes": boxes,
        "raw_detection_scores": scores,
    }


NETWORKS: dict[str, Callable[[], Any]] = {
    "efficientnet_b0": lambda: _application("EfficientNetB0"),
    "mobilenet_v3": lambda: _application("MobileNetV3Large"),
    "densenet_121": lambda: _application("DenseNet121"),
    "inception_v3": lambda: _application("InceptionV3"),
    "encoder_12": _encoder,
    "lstm_classifier": _classifier,
    "ssd_mobilenet": _detector,
}
#: What a network's graph computes of what the network gives, by output; its own result is ``y``.
AFTERWARDS: dict[str, Callable[[Any], dict[str, Any]]] = {"ssd_mobilenet": _detections}


def _sensible(model: Any) -> None:
    """Weights under which numbers neither grow nor vanish from layer to layer."""
    random = np.random.default_rng(7)
    for variable in model.variables:
        shape = tuple(variable.shape)
        if len(shape) > 1 and "embedding" not in variable.path:
            is_by_channel = "depthwise" in variable.path
            fan_in = np.prod(shape[:2]) if is_by_channel else np.prod(shape[:-1])
            scale = np.sqrt(2 / fan_in) * (0.3 if "head" in variable.path else 1)
            variable.assign((random.standard_normal(shape) * scale).astype(np.float32))


def frozen(name: str) -> Any:
    """The graph of a network; its input is called x, and what it gives as it says."""
    model = NETWORKS[name]()
    _sensible(model)
    (given,) = model.inputs
    spec = tf.TensorSpec((1, *given.shape[1:]), given.dtype, name="x")
    after = AFTERWARDS.get(name, lambda result: {"y": result})

    @tf.function
    def called(x: Any) -> list[Any]:
        found = after(model(x, training=False))
        return [tf.identity(value, name=key) for key, value in found.items()]

    return convert_variables_to_constants_v2(
        called.get_concrete_function(spec)
    ).graph.as_graph_def()


def main() -> None:
    """Write one of them."""
    name, path = sys.argv[1:]
    Path(path).write_bytes(frozen(name).SerializeToString())


if __name__ == "__main__":
    main()
