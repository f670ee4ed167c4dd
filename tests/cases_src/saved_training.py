"""Training written for TensorFlow 2: fifty calls of a saved function follow TensorFlow's loss.

A module with a function that trains it is saved as a SavedModel; the graph in that is what is
run.  Loops are While, their arrays lists of tensors, and variables resources.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cases_src.casebook import Steps, graph, i32, integers, normal, steps

_TOL = (1e-4, 0.0)
_EXAMPLES, _BATCH = 16, 4


@dataclass(frozen=True, slots=True)
class Saved:
    """The graph of a SavedModel: its message, and what its function is called there."""

    graph_def: Any
    inputs: list[str]
    loss: str
    #: What the variables start with, by their handles.
    starts: dict[str, Any]


def _fifty_calls(tf: Any, make: Callable[[], Any], *data: Any) -> Steps:
    """Train what ``make`` makes; each call takes the examples that are next."""
    with ThreadPoolExecutor(1) as pool:  # On another thread nothing is built into this graph.
        saved = pool.submit(_saved, tf, make).result()
    tf.import_graph_def(saved.graph_def, name="")
    found, raw = tf.get_default_graph().get_tensor_by_name, tf.raw_ops
    starts = [(found(handle), start) for handle, start in saved.starts.items()]
    init = [raw.AssignVariableOp(resource=handle, value=start) for handle, start in starts]
    ends = [
        tf.norm(raw.ReadVariableOp(resource=handle, dtype=start.dtype))
        for handle, start in starts
        if start.dtype == "float32" and start.size > 1
    ]
    fed = [found(name) for name in saved.inputs]
    calls = [
        ({t: _batch(array, n) for t, array in zip(fed, data, strict=True)}, [found(saved.loss)])
        for n in range(50)
    ]
    return steps(init, *calls, ends)


def _batch(array: Any, number: int) -> Any:
    first = number * _BATCH % _EXAMPLES
    return array[first : first + _BATCH]


def _saved(tf: Any, make: Callable[[], Any]) -> Saved:
    """Save a module whose ``train`` takes a batch, and read the graph again."""
    import tensorflow
    from tensorflow.core.protobuf import saved_model_pb2

    module = make(tensorflow)
    train = module.train.get_concrete_function()
    with tempfile.TemporaryDirectory() as folder:
        tensorflow.saved_model.save(module, folder, signatures={"train": train})
        message = saved_model_pb2.SavedModel()
        message.ParseFromString((Path(folder) / "saved_model.pb").read_bytes())
    meta = message.meta_graphs[0]
    signature = meta.signature_def["train"]
    loss = signature.outputs["loss"].name
    call = loss.partition(":")[0]
    nodes = {node.name: node for node in meta.graph_def.node}
    captured = train.captured_inputs
    starts = {}
    for name, handle in zip(nodes[call].input[-len(captured) :], captured, strict=True):
        dtype = nodes[name].attr["dtype"].type
        read = tensorflow.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
        starts[f"{name}:0"] = read.numpy()
    return Saved(
        graph_def=_called(tf.graph_util.extract_sub_graph(meta.graph_def, [call])),
        inputs=[signature.inputs[key].name for key in sorted(signature.inputs)],
        loss=loss,
        starts=starts,
    )


def _called(graph_def: Any) -> Any:
    """A graph without functions that nobody calls, and without what is only for people."""
    library = {function.signature.name: function for function in graph_def.library.function}
    wanted: dict[str, Any] = {}
    more = list(graph_def.node)
    while more:
        node = more.pop()
        node.ClearField("experimental_debug_info")
        attrs = [value.func.name for value in node.attr.values()]
        for name in (node.op, *attrs):
            if name in library and name not in wanted:
                wanted[name] = library[name]
                more += library[name].node_def
    del graph_def.library.function[:]
    graph_def.library.function.extend(wanted.values())
    return graph_def


def recurrent(tf: Any, kind: str) -> Steps:
    """A loop over time with a condition in it, its outputs kept in a list."""
    data = normal(_EXAMPLES, 6, 3, seed=1)
    return _fifty_calls(tf, lambda tf2: _recurrent(tf2, kind), data, data.cumsum(1)[:, :, :1] * 0.3)


def _recurrent(tf: Any, kind: str) -> Any:
    class Recurrent(tf.Module):
        def __init__(self) -> None:
            self.w = tf.Variable(normal(8, 5, seed=2) * 0.4, name="w")
            self.top = tf.Variable(normal(5, 1, seed=3) * 0.4, name="top")
            self.rule = {
                "adam": lambda: tf.compat.v1.train.AdamOptimizer(0.01),
                "ftrl": lambda: tf.compat.v1.train.FtrlOptimizer(0.1),
            }[kind]()

        def predict(self, x: Any) -> Any:
            h, said = tf.zeros([_BATCH, 5]), tf.TensorArray(tf.float32, 6)
            for t in tf.range(6):
                if t % 3 == 2:
                    h = h * 0.5
                else:
                    h = tf.tanh(tf.matmul(tf.concat([x[:, t], h], 1), self.w))
                said = said.write(t, tf.matmul(h, self.top))
            return tf.transpose(said.stack(), [1, 0, 2])

        @tf.function(
            input_signature=[
                tf.TensorSpec([_BATCH, 6, 3], name="x"),
                tf.TensorSpec([_BATCH, 6, 1], name="y"),
            ]
        )
        def train(self, x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self.predict(x) - y))
            trained = [self.w, self.top]
            gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, trained), 0.5)
            self.rule.apply_gradients(zip(gradients, trained, strict=True))
            return {"loss": loss}

    return Recurrent()


def looked_up(tf: Any, kind: str) -> Steps:
    """Rows of a table are added up while there are words; only what was read is changed."""
    words = integers(_EXAMPLES, 5, high=12, seed=4)
    return _fifty_calls(tf, lambda tf2: _looked_up(tf2, kind), words, i32((words < 5).sum(1) > 1))


def _looked_up(tf: Any, kind: str) -> Any:
    class LookedUp(tf.Module):
        def __init__(self) -> None:
            self.table = tf.Variable(normal(12, 4, seed=5), name="table")
            self.top = tf.Variable(normal(4, 2, seed=6), name="top")
            self.rule = {
                "adam": lambda: tf.compat.v1.train.AdamOptimizer(0.02),
                "adagrad": lambda: tf.compat.v1.train.AdagradOptimizer(0.1),
                "descent": lambda: tf.compat.v1.train.GradientDescentOptimizer(0.3),
            }[kind]()

        @tf.function(
            input_signature=[
                tf.TensorSpec([_BATCH, 5], tf.int32, "x"),
                tf.TensorSpec([_BATCH], tf.int32, "y"),
            ]
        )
        def train(self, x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                total, t = tf.zeros([_BATCH, 4]), 0
                while t < 5 and tf.reduce_any(x[:, t] != 0):
                    total += tf.nn.softsign(tf.nn.embedding_lookup(self.table, x[:, t]))
                    t += 1
                rows = tf.map_fn(
                    lambda row: tf.linalg.matvec(self.top, row, transpose_a=True), total
                )
                wrong = tf.nn.sparse_softmax_cross_entropy_with_logits(y, rows)
                loss = tf.reduce_mean(wrong) + 0.01 * tf.nn.l2_loss(tf.gather(self.table, x))
            trained = [self.table, self.top]
            self.rule.apply_gradients(zip(tape.gradient(loss, trained), trained, strict=True))
            return {"loss": loss}

    return LookedUp()


def keras_text(tf: Any, rule: str) -> Steps:
    """A bidirectional recurrent network of Keras, with dropout."""
    words = integers(_EXAMPLES, 6, high=15, seed=7)

    def layers(keras: Any) -> list[Any]:
        of = keras.layers
        return [
            keras.Input([6], _BATCH, "int32"),
            of.Embedding(15, 4, mask_zero=True),
            of.Bidirectional(of.LSTM(3, return_sequences=True)),
            of.GRU(4),
            of.Dropout(0.2),
            of.LayerNormalization(),
            of.Dense(3),
        ]

    return _fifty_calls(
        tf, lambda tf2: _keras(tf2, layers, rule), words, i32((words < 6).sum(1) % 3)
    )


def keras_images(tf: Any, rule: str) -> Steps:
    """A convolutional network of Keras, with batch normalisation."""
    images = normal(_EXAMPLES, 5, 5, 1, seed=8)

    def layers(keras: Any) -> list[Any]:
        of = keras.layers
        return [
            keras.Input([5, 5, 1], _BATCH),
            of.Conv2D(6, 3, padding="same", use_bias=False),
            of.BatchNormalization(momentum=0.9),
            of.Activation("swish"),
            of.MaxPooling2D(2, padding="same"),
            of.SeparableConv2D(5, 2, activation="selu"),
            of.GlobalAveragePooling2D(),
            of.Dropout(0.3),
            of.Dense(3, kernel_regularizer="l2"),
        ]

    return _fifty_calls(
        tf, lambda tf2: _keras(tf2, layers, rule), images, i32((images[:, 2, 2, 0] > 0) * 2)
    )


def _keras(tf: Any, layers: Callable[[Any], list[Any]], rule: str) -> Any:
    keras = tf.keras
    keras.utils.set_random_seed(1)
    model = keras.Sequential(layers(keras))
    rules = {
        "adam": lambda: keras.optimizers.Adam(0.01, clipnorm=1.0),
        "adamw": lambda: keras.optimizers.AdamW(
            keras.optimizers.schedules.CosineDecay(0.01, 60), amsgrad=True
        ),
        "sgd": lambda: keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
        "rmsprop": lambda: keras.optimizers.RMSprop(0.005, centered=True),
    }

    class Trained(tf.Module):
        def __init__(self) -> None:
            self.model, self.rule = model, rules[rule]()
            self.rule.build(model.trainable_variables)
            self.kept = [v.value for v in (*model.variables, *self.rule.variables)]

        @tf.function(
            input_signature=[
                tf.TensorSpec(model.input_shape, model.inputs[0].dtype, "x"),
                tf.TensorSpec([_BATCH], tf.int32, "y"),
            ]
        )
        def train(self, x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                said = model(x, training=True)
                wrong = tf.nn.sparse_softmax_cross_entropy_with_logits(y, said)
                loss = tf.reduce_mean(wrong) + sum(model.losses)
            gradients = tape.gradient(loss, model.trainable_variables)
            self.rule.apply(gradients, model.trainable_variables)
            return {"loss": loss}

    return Trained()


CASES = [
    *(graph(recurrent, kind, tol=_TOL) for kind in ("adam", "ftrl")),
    *(graph(looked_up, kind, tol=_TOL) for kind in ("adam", "adagrad", "descent")),
    graph(keras_text, "adam", tol=_TOL),
    *(graph(keras_images, rule, tol=_TOL) for rule in ("adamw", "rmsprop", "sgd")),
]
