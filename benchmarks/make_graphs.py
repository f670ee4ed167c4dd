"""Write the benchmark graphs with TensorFlow's own front end, and its answers.

    python -m benchmarks.make_graphs FOLDER [NAME ...]

Needs TensorFlow.  The weights are random and fixed by seeds.  ``benchmarks/graphs`` holds what
is small; the rest goes to ``build/benchmark_graphs``, where the other scripts look for it too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

from benchmarks.cases import Case, write_arrays
from benchmarks.worker import TensorFlowModel, answers_of

tf1 = tf.compat.v1

#: What to feed by a placeholder's name, and the tensors to fetch.
Built: TypeAlias = tuple[dict[str, Any], Any]
#: Answers of more bytes are not stored: then engines are compared with each other.
LARGEST_ANSWER = 1 << 18


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a graph is made, and what it measures."""

    build: Callable[[], Built]
    group: str
    units: int
    has_variables: bool
    devices: int
    is_large: bool


RECIPES: dict[str, Recipe] = {}


def case(
    units: int,
    group: str = "scheduler",
    *,
    has_variables: bool = False,
    devices: int = 1,
    is_large: bool = False,
) -> Callable[[Callable[[], Built]], Callable[[], Built]]:
    """Register a graph; ``units`` is what a step's time is divided by."""

    def register(build: Callable[[], Built]) -> Callable[[], Built]:
        RECIPES[build.__name__] = Recipe(build, group, units, has_variables, devices, is_large)
        return build

    return register


def f32(*shape: int, scale: float = 1.0, seed: int = 0) -> Any:
    """Normal random numbers."""
    return (np.random.RandomState(seed).standard_normal(shape) * scale).astype(np.float32)


def labels(count: int) -> Any:
    """Random classes of ten."""
    return np.random.RandomState(1).randint(0, 10, count).astype(np.int32)


def ph(name: str, value: Any) -> Any:
    """A placeholder for a value."""
    return tf1.placeholder(tf.as_dtype(value.dtype), value.shape, name=name)


def mean_loss(classes: Any, logits: Any) -> Any:
    """The mean cross entropy."""
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)
    )


@case(1, "latency")
def single_add() -> Built:
    """What a run costs when the graph costs nothing."""
    x = np.float32(1.5)
    return {"x": x}, [tf.add(ph("x", x), 1.0)]


@case(20, "latency")
def twenty_feeds() -> Built:
    """What each feed and each fetch adds to a run."""
    feeds = {f"x{i}": f32(4, seed=i) for i in range(20)}
    return feeds, [tf.square(ph(k, v)) for k, v in feeds.items()]


@case(5000)
def chain_scalar() -> Built:
    """What a node costs that waits for one other."""
    feeds = {"x": np.float32(0.5), "y": np.float32(1.25)}
    a, b = (ph(name, value) for name, value in feeds.items())
    for _ in range(5000):
        a = tf.subtract(b, a)  # of a constant, TensorFlow would make one node of two
    return feeds, [a]


@case(5000)
def chain_vec16() -> Built:
    """The same with a small array, so that kernels are real but cheap."""
    x = f32(16)
    a = ph("x", x)
    for _ in range(5000):
        a = tf.tanh(a)
    return {"x": x}, [a]


@case(10000)
def wide_scalar() -> Built:
    """Ten thousand nodes that could all run at once."""
    x = np.float32(0.3)
    a = ph("x", x)
    return {"x": x}, [tf.add_n([tf.tanh(a * (0.001 * i)) for i in range(5000)])]


@case(10000, "control_flow")
def while_counter() -> Built:
    """What a turn of the smallest loop costs."""
    x = np.int32(0)
    return {"x": x}, [tf1.while_loop(lambda i: i < 10000, lambda i: i + 1, [ph("x", x)])]


@case(10000, "control_flow")
def while_nested() -> Built:
    """Loops in a loop: frames are made and thrown away."""
    x = np.int32(0)
    a = ph("x", x)

    def body(i: Any, s: Any) -> Any:
        return i + 1, tf1.while_loop(lambda j, _t: j < 100, lambda j, t: (j + 1, t + j), [0, s])[1]

    return {"x": x}, [tf1.while_loop(lambda i, _s: i < 100, body, [a, 0])[1]]


@case(1000, "control_flow")
def while_rnn() -> Built:
    """A loop around one small matrix product, whose state neither vanishes nor grows."""
    x = f32(32)
    w = tf.constant(np.linalg.qr(f32(32, 32))[0] * np.float32(1.1))
    h = tf1.while_loop(
        lambda i, _h: i < 1000,
        lambda i, h: (i + 1, tf.tanh(tf.linalg.matvec(w, h))),
        [0, ph("x", x)],
    )[1]
    return {"x": x}, [h]


@case(500, "control_flow")
def cond_chain() -> Built:
    """Five hundred branches, one after the other."""
    x = np.float32(0.5)
    b = ph("x", x)
    for _ in range(500):
        b = tf1.cond(b > 0, lambda b=b: b - 1.0, lambda b=b: b + 1.0)
    return {"x": x}, [b]


@case(1000, "control_flow")
def cond_in_while() -> Built:
    """A branch in each turn of a loop."""
    x = np.int32(27)

    def body(n: Any, k: Any) -> Any:
        return tf1.cond(tf.equal(n % 2, 0), lambda: n // 2, lambda: (3 * n + 1) % 1000003), k + 1

    return {"x": x}, tf1.while_loop(lambda _n, k: k < 1000, body, [ph("x", x), 0])


@case(1000, "control_flow")
def tensor_array_scan() -> Built:
    """A loop that reads and writes one element of an array per turn."""
    x = f32(1000, 8)
    a = ph("x", x)
    ta_in = tf1.TensorArray(tf.float32, 1000).unstack(a)
    ta_out = tf1.TensorArray(tf.float32, 1000)

    def body(i: Any, s: Any, out: Any) -> Any:
        s = s * 0.9 + ta_in.read(i)
        return i + 1, s, out.write(i, s)

    out = tf1.while_loop(lambda i, *_: i < 1000, body, [0, tf.zeros([8]), ta_out])[2]
    return {"x": x}, [out.stack()]


def _lstm(x: Any, units: int, seed: int = 0) -> tuple[Any, Any]:
    t, b, d = x.shape
    w = tf.constant(f32(d + units, 4 * units, scale=0.1, seed=seed))
    bias = tf.constant(np.zeros(4 * units, np.float32))
    ta = tf1.TensorArray(tf.float32, t).unstack(x)
    out = tf1.TensorArray(tf.float32, t)

    def body(i: Any, c: Any, h: Any, out: Any) -> Any:
        z = tf.matmul(tf.concat([ta.read(i), h], 1), w) + bias
        ii, j, f, o = tf.split(z, 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(ii) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        return i + 1, c, h, out.write(i, h)

    z0 = tf.zeros([b, units])
    r = tf1.while_loop(lambda i, *_: i < t, body, [0, z0, z0, out])
    return r[3].stack(), w


@case(100, "control_flow")
def lstm_infer() -> Built:
    """A recurrent network as a loop."""
    x = f32(100, 8, 32)
    y, _ = _lstm(ph("x", x), 64)
    return {"x": x}, [tf.reduce_mean(y)]


@case(100, "training")
def lstm_grad() -> Built:
    """The same with its gradient: values of all turns are kept on stacks."""
    x = f32(100, 8, 32)
    y, w = _lstm(ph("x", x), 64)
    return {"x": x}, [tf1.gradients(tf.reduce_mean(tf.square(y)), [w])[0]]


@case(40, "control_flow")
def greedy_decode() -> Built:
    """A loop that looks up, multiplies and takes the best."""
    x = f32(4, 64)
    emb = tf.constant(f32(500, 64, scale=0.3))
    wo = tf.constant(f32(64, 500, scale=0.3))
    wh = tf.constant(f32(128, 64, scale=0.2))
    ta = tf1.TensorArray(tf.int32, 40)

    def body(t: Any, tok: Any, h: Any, ta: Any) -> Any:
        h = tf.tanh(tf.matmul(tf.concat([tf.gather(emb, tok), h], 1), wh))
        tok = tf.argmax(tf.matmul(h, wo), 1, output_type=tf.int32)
        return t + 1, tok, h, ta.write(t, tok)

    r = tf1.while_loop(lambda t, *_: t < 40, body, [0, tf.zeros([4], tf.int32), ph("x", x), ta])
    return {"x": x}, [tf.transpose(r[3].stack())]


def _trained(optimizer: Any, loss: Any) -> list[Any]:
    """The loss before a step of training, and the sizes of its gradients, as they are watched.

    Without the latter, wrong gradients would hardly be noticed.
    """
    pairs = optimizer.compute_gradients(loss)
    sizes = tf.stack([tf.norm(gradient) for gradient, _ in pairs])
    with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
        return [tf.identity(loss), tf.identity(sizes)]


@case(1, "training", has_variables=True)
def mlp_adam_step() -> Built:
    """One step of training three dense layers."""
    x, y = f32(64, 784), labels(64)
    a, b = ph("x", x), ph("y", y)
    h = a
    params = []
    for i, (m, n) in enumerate([(784, 256), (256, 128), (128, 10)]):
        w = tf1.get_variable(f"w{i}", initializer=tf.constant(f32(m, n, scale=0.05, seed=i)))
        c = tf1.get_variable(f"b{i}", initializer=tf.zeros([n]))
        params += [w, c]
        h = tf.matmul(h, w) + c
        if i < 2:
            h = tf.nn.relu(h)
    loss = mean_loss(b, h)
    return {"x": x, "y": y}, _trained(tf1.train.AdamOptimizer(1e-3), loss)


@case(1, "training", has_variables=True)
def cnn_sgd_step() -> Built:
    """One step of training a small convolutional network."""
    x, y = f32(32, 28, 28, 1), labels(32)
    a, b = ph("x", x), ph("y", y)
    h = a
    for i, (ci, co) in enumerate([(1, 16), (16, 32)]):
        w = tf1.get_variable(f"w{i}", initializer=tf.constant(f32(5, 5, ci, co, scale=0.1, seed=i)))
        h = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(h, w, 1, "SAME")), 2, 2, "SAME")
    h = tf.reshape(h, [32, -1])
    w = tf1.get_variable("wd", initializer=tf.constant(f32(7 * 7 * 32, 10, scale=0.05)))
    loss = mean_loss(b, tf.matmul(h, w))
    return {"x": x, "y": y}, _trained(tf1.train.MomentumOptimizer(0.01, 0.9), loss)


@case(32, "kernels")
def parallel_matmul() -> Built:
    """Eight chains of matrix products that may run side by side."""
    x = f32(512, 512, scale=0.05)
    a = ph("x", x)
    outs = []
    for k in range(8):
        b = a * float(k + 1)
        for _ in range(4):
            b = tf.matmul(b, a)
        outs.append(b)
    return {"x": x}, [tf.add_n(outs)]


@case(20, "kernels")
def elementwise_1m() -> Built:
    """Arithmetic on a million elements: the speed of memory."""
    x = f32(1000, 1000)
    a = ph("x", x)
    h = a
    for _ in range(10):
        h = tf.tanh(h * 0.5 + a)
    return {"x": x}, [tf.reduce_sum(h)]


@case(1, "kernels")
def transformer_block() -> Built:
    """Two blocks of attention."""
    x = f32(1, 128, 256)
    h = ph("x", x)
    for i in range(2):
        weights = [tf.constant(f32(256, 256, scale=0.05, seed=10 * i + j)) for j in range(3)]
        heads = [tf.einsum("btd,de->bte", h, weight) for weight in weights]
        q, k, v = (tf.reshape(head, [1, 128, 4, 64]) for head in heads)
        att = tf.nn.softmax(tf.einsum("bqhd,bkhd->bhqk", q, k) / 8.0)
        o = tf.reshape(tf.einsum("bhqk,bkhd->bqhd", att, v), [1, 128, 256])
        h = h + o
        m, s = tf.nn.moments(h, [-1], keepdims=True)
        h = (h - m) * tf.math.rsqrt(s + 1e-6)
        up = tf.constant(f32(256, 1024, scale=0.05, seed=50 + i))
        down = tf.constant(f32(1024, 256, scale=0.05, seed=60 + i))
        f = tf.nn.relu(tf.einsum("btd,df->btf", h, up))
        h = h + tf.einsum("btf,fd->btd", f, down)
    return {"x": x}, [h]


def _bn(h: Any, c: int, seed: int) -> Any:
    random = np.random.RandomState(seed)
    scale, offset, mean, variance = (random.rand(c).astype("f") for _ in range(4))
    return tf1.nn.fused_batch_norm(h, scale + 0.5, offset, mean, variance + 0.5, is_training=False)[
        0
    ]


#: Expansion, channels, repetitions and stride of each of MobileNetV2's stages.
_BLOCKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _mobilenet(size: int, alpha: float) -> Built:
    x = f32(1, size, size, 3)
    h = ph("x", x)
    c = int(32 * alpha)
    h = tf.nn.relu6(_bn(tf.nn.conv2d(h, f32(3, 3, 3, c, scale=0.2), 2, "SAME"), c, 1))
    seed = 2
    for t, channels, n, s in _BLOCKS:
        co = max(8, int(channels * alpha))
        for i in range(n):
            seed += 1
            ci, e = int(h.shape[-1]), int(h.shape[-1]) * t
            y = h
            if t != 1:
                widen = f32(1, 1, ci, e, scale=(2.0 / ci) ** 0.5, seed=seed)
                y = tf.nn.relu6(_bn(tf.nn.conv2d(y, widen, 1, "SAME"), e, seed))
            st = s if i == 0 else 1
            each = f32(3, 3, e, 1, scale=0.4, seed=seed)
            y = tf.nn.depthwise_conv2d(y, each, [1, st, st, 1], "SAME")
            narrow = f32(1, 1, e, co, scale=(2.0 / e) ** 0.5, seed=seed)
            y = tf.nn.conv2d(tf.nn.relu6(_bn(y, e, seed)), narrow, 1, "SAME")
            y = _bn(y, co, seed)
            h = y + h if st == 1 and ci == co else y
    h = tf.nn.relu6(tf.nn.conv2d(h, f32(1, 1, int(h.shape[-1]), 1280, scale=0.05), 1, "SAME"))
    h = tf.reduce_mean(h, [1, 2])
    return {"x": x}, [tf.nn.softmax(tf.matmul(h, tf.constant(f32(1280, 1000, scale=0.05))))]


@case(1, "models")
def mobilenet_small() -> Built:
    """A small image network as it is shipped."""
    return _mobilenet(96, 0.35)


@case(1, "models", is_large=True)
def mobilenet_224() -> Built:
    """The same at its usual size."""
    return _mobilenet(224, 1.0)


@case(1, "models", is_large=True)
def resnet50_224() -> Built:
    """A large image network."""
    x = f32(1, 224, 224, 3)
    h = ph("x", x)
    seed = [0]

    def conv(h: Any, k: int, co: int, s: int) -> Any:
        seed[0] += 1
        ci = int(h.shape[-1])
        return _bn(
            tf.nn.conv2d(
                h, f32(k, k, ci, co, scale=(2.0 / (k * k * ci)) ** 0.5, seed=seed[0]), s, "SAME"
            ),
            co,
            seed[0],
        )

    h = tf.nn.max_pool2d(tf.nn.relu(conv(h, 7, 64, 2)), 3, 2, "SAME")
    for co, n, s in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for i in range(n):
            st = s if i == 0 else 1
            sc = conv(h, 1, co * 4, st) if i == 0 else h
            y = tf.nn.relu(conv(h, 1, co, st))
            y = tf.nn.relu(conv(y, 3, co, 1))
            h = tf.nn.relu(conv(y, 1, co * 4, 1) + sc)
    h = tf.reduce_mean(h, [1, 2])
    # Logits: as probabilities one would be 1, and all others 0, whatever is computed.
    return {"x": x}, [tf.matmul(h / tf.norm(h), tf.constant(f32(2048, 1000)))]


def _of_keras(name: str, x: Any, outputs: Sequence[str] = ("y",)) -> Built:
    """A network of Keras, built in another process, with its input."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.pb"
        command = [sys.executable, "-m", "benchmarks.keras_networks", name, str(path)]
        subprocess.run(command, check=True)
        graph_def = tf1.GraphDef.FromString(path.read_bytes())
    fetched = [f"{name}:0" for name in outputs]
    return {"x": x}, tf.import_graph_def(graph_def, return_elements=fetched, name="")


def _image() -> Any:
    return np.random.RandomState(3).uniform(0, 255, (1, 224, 224, 3)).astype(np.float32)


def _words(count: int) -> Any:
    return np.random.RandomState(3).randint(1, 3000, (1, count)).astype(np.int32)


@case(1, "models", is_large=True)
def efficientnet_b0() -> Built:
    """Convolutions by channel, with gates for each channel."""
    return _of_keras("efficientnet_b0", _image())


@case(1, "models", is_large=True)
def mobilenet_v3() -> Built:
    """The same, smaller, with activations that are cheap elsewhere."""
    return _of_keras("mobilenet_v3", _image())


@case(1, "models", is_large=True)
def densenet_121() -> Built:
    """Every layer reads all before it."""
    return _of_keras("densenet_121", _image())


@case(1, "models", is_large=True)
def inception_v3() -> Built:
    """Windows of many forms side by side."""
    return _of_keras("inception_v3", _image())


@case(1, "models", is_large=True)
def encoder_12() -> Built:
    """Twelve layers of attention over 128 tokens, as in BERT."""
    return _of_keras("encoder_12", _words(128))


@case(1, "models", is_large=True)
def lstm_classifier() -> Built:
    """A recurrent network in both directions over 100 words."""
    return _of_keras("lstm_classifier", _words(100))


@case(1, "models", is_large=True)
def ssd_mobilenet() -> Built:
    """An object detector with its last stage: boxes of 1,917 anchors, the best of each class.

    As detectors are exported, it also gives what it weighed up: nothing is computed in vain.
    """
    # An image whose best scores differ by more than rounding does, so that their order is one.
    image = np.random.RandomState(29).uniform(0, 255, (1, 300, 300, 3)).astype(np.float32)
    objects = ["detection_boxes", "detection_classes", "detection_scores"]
    return _of_keras(
        "ssd_mobilenet", image, [*objects, "raw_detection_boxes", "raw_detection_scores"]
    )


@case(1000, "scheduler")
def ssd_postprocess() -> Built:
    """An object detector's last stage: non-maximum suppression for each class."""
    boxes, scores = np.abs(f32(1000, 4)), np.abs(f32(1000, 20, seed=3))
    low, high = boxes[:, :2], boxes[:, 2:]
    boxes = np.concatenate([np.minimum(low, high), np.maximum(low, high)], 1)
    b, s = ph("boxes", boxes), ph("scores", scores)
    outs = []
    for c in range(20):
        idx = tf.image.non_max_suppression(b, s[:, c], 50, 0.5, 0.3)
        outs.append(tf.pad(tf.gather(s[:, c], idx), [[0, 50 - tf.shape(idx)[0]]]))
    return {"boxes": boxes, "scores": scores}, tf.nn.top_k(tf.concat(outs, 0), 100)


@case(1000, "scheduler", devices=2)
def two_devices() -> Built:
    """A chain that changes the device at every node: a Send and a Recv each time."""
    x = f32(16)
    a = ph("x", x)
    for i in range(1000):
        with tf1.device(f"/cpu:{i % 2}"):
            a = tf.add(a, 1.0)
    return {"x": x}, [a]


@case(200, "scheduler")
def queue_pump() -> Built:
    """A queue filled and emptied within a step."""
    x = f32(64)
    q = tf1.FIFOQueue(300, tf.float32, shapes=[[64]])
    a = ph("x", x)
    enq = [q.enqueue(a * float(i + 1)) for i in range(200)]
    with tf.control_dependencies(enq):
        return {"x": x}, [tf.reduce_sum(q.dequeue_many(200))]


@case(10000, "functions")
def function_counter() -> Built:
    """The smallest loop, as TensorFlow 2 writes it: a condition and a body that are functions."""
    x = np.int32(0)

    @tf.function
    def run(i: Any) -> Any:
        return tf.while_loop(lambda i: i < 10000, lambda i: (i + 1,), (i,))[0]

    return {"x": x}, [run(ph("x", x))]


@case(1000, "functions")
def function_cond_in_while() -> Built:
    """A branch in each turn of a loop."""
    x = np.int32(27)

    @tf.function
    def run(n: Any) -> Any:
        def body(n: Any, k: Any) -> Any:
            even = tf.equal(n % 2, 0)
            return tf.cond(even, lambda: n // 2, lambda: (3 * n + 1) % 1000003), k + 1

        return tf.while_loop(lambda _n, k: k < 1000, body, (n, tf.constant(0)))

    return {"x": x}, list(run(ph("x", x)))


@case(200, "functions")
def function_conds() -> Built:
    """Two hundred branches, one after the other."""
    x = np.float32(0.5)

    @tf.function
    def run(b: Any) -> Any:
        for _ in range(200):
            b = tf.cond(b > 0, lambda b=b: b - 1.0, lambda b=b: b + 1.0)
        return b

    return {"x": x}, [run(ph("x", x))]


@case(200, "functions")
def function_calls() -> Built:
    """Two hundred calls of one function, which forgets nothing: it turns a line of numbers."""
    x = f32(16)

    @tf.function
    def step(x: Any) -> Any:
        return (x * 0.5 - 1.0) / (x + 0.5)

    @tf.function
    def run(x: Any) -> Any:
        for _ in range(200):
            x = step(x)
        return x

    return {"x": x}, [run(ph("x", x))]


def _function_rnn() -> tuple[Any, Any, Any]:
    """What is fed, and the outputs and weights of a small recurrent network."""
    x = f32(8, 100, 64)
    weights = tf.constant(f32(64, 64, scale=0.1))

    @tf.function
    def run(x: Any, weights: Any) -> Any:
        state, outputs = tf.zeros([8, 64]), tf.TensorArray(tf.float32, 100)
        for t in tf.range(100):
            state = tf.tanh(tf.matmul(state, weights) + x[:, t])
            outputs = outputs.write(t, state)
        return outputs.stack()

    return x, run(ph("x", x), weights), weights


@case(100, "functions")
def function_rnn() -> Built:
    """A recurrent network of TensorFlow 2, which collects its outputs in a list."""
    x, outputs, _ = _function_rnn()
    return {"x": x}, [outputs]


@case(100, "functions")
def function_rnn_grad() -> Built:
    """Its gradient, a loop that takes from lists what the first one put there."""
    x, outputs, weights = _function_rnn()
    return {"x": x}, tf.gradients(tf.reduce_sum(outputs * outputs), [weights])


@case(500, "functions", has_variables=True)
def function_variables() -> Built:
    """A loop that reads and changes variables: what it does must stay in order."""
    x = f32(16)
    total, count = (tf1.Variable(value, use_resource=True) for value in (f32(16), np.int32(0)))

    @tf.function
    def run(x: Any) -> Any:
        total.assign(tf.zeros([16]))
        for _ in tf.range(500):
            total.assign_add(x)
            count.assign_add(1)
        return total.read_value()

    return {"x": x}, [run(ph("x", x))]


@case(20000, "load")
def big_graph() -> Built:
    """Twenty thousand nodes, to be loaded."""
    x = f32(20, 8)
    layer = tf.unstack(ph("x", x))
    for i in range(1000):
        layer = [
            tf.add(layer[j], layer[(j * 7 + i) % 20]) if i % 2 else tf.multiply(layer[j], 0.5)
            for j in range(20)
        ]
    return {"x": x}, [tf.add_n(layer)]


def write(name: str, folder: Path) -> None:
    """Build a graph and store it with its feeds and TensorFlow's answers."""
    recipe = RECIPES[name]
    with tf1.Graph().as_default() as graph:
        tf1.set_random_seed(7)
        feeds, fetches = recipe.build()
        meta = {
            "group": recipe.group,
            "units": recipe.units,
            "devices": recipe.devices,
            "feeds": {f"{key}:0": key for key in feeds},
            "fetches": [tensor.name for tensor in fetches],
        }
        if recipe.has_variables:
            meta["init_op"] = tf1.global_variables_initializer().name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    np.savez_compressed(folder / "feeds.npz", **feeds)
    (folder / "case.json").write_text(json.dumps(meta, indent=1) + "\n", "utf-8")
    write_answers(Case.read(folder))


def write_answers(made: Case) -> None:
    """Store what TensorFlow's first steps give, unless it is large."""
    model = TensorFlowModel(made, made.graph_bytes, made.fed())
    answers = answers_of(model, made.steps)
    model.close()
    if sum(answer.nbytes for answer in answers) <= LARGEST_ANSWER:
        write_arrays(made.folder / "expected.npz", answers)


def main() -> None:
    """Write all graphs but those of full-size models, or those of some names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    tf1.disable_eager_execution()
    tf1.disable_control_flow_v2()
    tf1.disable_resource_variables()
    for name in args.names or [key for key, recipe in RECIPES.items() if not recipe.is_large]:
        write(name, args.folder / name)
        print(name, (args.folder / name / "graph.pb").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
