"""Models in training: fifty steps of each follow TensorFlow's loss, and end at its variables.

The data are constants, or large ones drawn in the graph, and a step takes those that are next.
After the steps come the lengths of the variables, taken as vectors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from cases_src.casebook import Steps, graph, i32, integers, normal, steps, uniform

#: How far a loss may be from TensorFlow's, relative to it.
_TOL = (1e-4, 0.0)
_EXAMPLES, _BATCH = 64, 16

_OPTIMISERS: dict[str, Callable[[Any, Any], Any]] = {
    "adadelta": lambda train, _: train.AdadeltaOptimizer(1.0, rho=0.9, epsilon=1e-4),
    "adagrad": lambda train, _: train.AdagradOptimizer(0.2),
    "adagrad_da": lambda train, step: train.AdagradDAOptimizer(
        0.2, step, l1_regularization_strength=1e-3, l2_regularization_strength=1e-3
    ),
    "adam": lambda train, _: train.AdamOptimizer(0.01),
    "centered": lambda train, _: train.RMSPropOptimizer(0.01, momentum=0.5, centered=True),
    "descent": lambda train, step: train.GradientDescentOptimizer(
        train.exponential_decay(0.3, step, 10, 0.9)
    ),
    "ftrl": lambda train, _: train.FtrlOptimizer(
        0.2, l1_regularization_strength=1e-3, l2_shrinkage_regularization_strength=1e-3
    ),
    "momentum": lambda train, step: train.MomentumOptimizer(
        train.piecewise_constant(step, [20, 40], [0.1, 0.05, 0.01]), 0.9
    ),
    "nesterov": lambda train, _: train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "proximal": lambda train, _: train.ProximalGradientDescentOptimizer(
        0.2, l1_regularization_strength=1e-3, l2_regularization_strength=1e-3
    ),
    "proximal_adagrad": lambda train, _: train.ProximalAdagradOptimizer(
        0.2, l1_regularization_strength=1e-3
    ),
    "rmsprop": lambda train, _: train.RMSPropOptimizer(0.01, decay=0.9, momentum=0.5),
}


@contextlib.contextmanager
def _old_loops(tf: Any) -> Iterator[None]:
    """Loops and conditions are made of Enter, Switch and Merge meanwhile."""
    tf.disable_control_flow_v2()
    try:
        yield
    finally:
        tf.enable_control_flow_v2()


def _start(tf: Any, kind: str) -> Any:
    """Seed the graph, say which kind of variable it has, and count its steps."""
    tf.set_random_seed(7)
    tf.get_variable_scope().set_use_resource(kind == "resource")
    return tf.train.get_or_create_global_step()


def _batch(tf: Any, step: Any, *data: Any) -> list[Any]:
    """What a step sees of the data."""
    first = tf.cast(step % (_EXAMPLES // _BATCH), tf.int32) * _BATCH
    return [tf.convert_to_tensor(array)[first : first + _BATCH] for array in data]


def _drawn(tf: Any, *shape: int, seed: int) -> Any:
    """Examples that need no place in the graph."""
    return tf.random.stateless_normal([_EXAMPLES, *shape], seed=[seed, 0])


def _fifty(tf: Any, loss: Any, train: Any, *ends: Any) -> Steps:
    """Initialise, train, and look at the variables."""
    trained = tf.trainable_variables()
    others = [v for v in tf.global_variables() if v.dtype.is_floating and v not in trained]
    lengths = [tf.norm(variable) for variable in trained]
    if others:  # One of them alone may be a sum in which only rounding is left.
        lengths.append(tf.linalg.global_norm(others))
    init = [tf.global_variables_initializer()]
    return steps(init, *([[loss, train]] * 50), [*lengths, *ends])


def _minimised(tf: Any, loss: Any, optimiser: str, step: Any) -> Any:
    return _OPTIMISERS[optimiser](tf.train, step).minimize(loss, global_step=step)


def _dense(tf: Any, x: Any, units: int, name: str) -> Any:
    """A layer whose weights start as seeded random numbers."""
    with tf.variable_scope(name):
        start = tf.truncated_normal_initializer(stddev=x.shape[-1] ** -0.5, seed=len(name))
        w = tf.get_variable("w", [x.shape[-1], units], initializer=start)
        b = tf.get_variable("b", [units], initializer=tf.zeros_initializer())
        return tf.matmul(x, w) + b


def _entropy(tf: Any, labels: Any, logits: Any) -> Any:
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )


def _labels(tf: Any, x: Any, classes: int) -> Any:
    """Classes that are to be learnt: which of some directions an example points to."""
    flat = tf.reshape(x, [_EXAMPLES, -1])
    directions = tf.random.stateless_normal([flat.shape[1], classes], seed=[5, 0])
    return tf.argmax(tf.matmul(flat, directions), 1, output_type=tf.int32)


def mlp(tf: Any, optimiser: str, kind: str) -> Steps:
    """Dense layers, by every rule."""
    data = _drawn(tf, 8, seed=1)
    step = _start(tf, kind)
    x, y = _batch(tf, step, data, _labels(tf, data, 4))
    hidden = tf.nn.relu(_dense(tf, x, 16, "one"))
    loss = _entropy(tf, y, _dense(tf, tf.tanh(_dense(tf, hidden, 12, "two")), 4, "three"))
    return _fifty(tf, loss, _minimised(tf, loss, optimiser, step))


def cnn(tf: Any, optimiser: str, kind: str) -> Steps:
    """Convolutions, batch normalisation with moving averages, windows, dropout."""
    data = _drawn(tf, 8, 8, 3, seed=2)
    step = _start(tf, kind)
    x, y = _batch(tf, step, data, _labels(tf, data, 4))
    moves: list[Any] = []
    h = tf.nn.relu(_normed(tf, _convolved(tf, x, 8, "one"), moves, "norm"))
    h = tf.nn.max_pool2d(h, 2, 2, "SAME")
    h = tf.nn.relu6(_normed(tf, _convolved(tf, h, 12, "three"), moves, "norms"))
    h = tf.reshape(tf.nn.avg_pool2d(h, 2, 2, "VALID"), [_BATCH, 48])
    h = tf.nn.dropout(h, rate=0.2, seed=3)
    weights = [v for v in tf.trainable_variables() if v.name.endswith("filter:0")]
    decay = tf.add_n([tf.nn.l2_loss(w) for w in weights]) * 1e-3
    loss = _entropy(tf, y, _dense(tf, h, 4, "top")) + decay
    with tf.control_dependencies(moves):
        train = _minimised(tf, loss, optimiser, step)
    return _fifty(tf, loss, train)


def _convolved(tf: Any, x: Any, channels: int, name: str) -> Any:
    with tf.variable_scope(name):
        start = tf.glorot_uniform_initializer(seed=len(name))
        w = tf.get_variable("filter", [3, 3, x.shape[-1], channels], initializer=start)
        return tf.nn.conv2d(x, w, 1, "SAME")


def _normed(tf: Any, x: Any, moves: list[Any], name: str) -> Any:
    """Batch normalisation in training; ``moves`` takes the updates of its averages."""
    with tf.variable_scope(name):
        zeros, ones = tf.zeros_initializer(), tf.ones_initializer()
        shape = [x.shape[-1]]
        scale = tf.get_variable("scale", shape, initializer=ones)
        offset = tf.get_variable("offset", shape, initializer=zeros)
        averages = [
            tf.get_variable("mean", shape, initializer=zeros, trainable=False),
            tf.get_variable("variance", shape, initializer=ones, trainable=False),
        ]
        y, *found = tf.nn.fused_batch_norm(x, scale, offset, is_training=True)
    for average, now in zip(averages, found, strict=True):
        moves.append(tf.assign_sub(average, 0.1 * (average - now)))
    return y


def separable(tf: Any, optimiser: str, kind: str) -> Steps:
    """Depthwise and strided convolutions, normalised by ops of their own, and averages kept."""
    data = _drawn(tf, 6, 6, 4, seed=3)
    step = _start(tf, kind)
    x, y = _batch(tf, step, data, _labels(tf, data, 3))
    start = tf.random_normal_initializer(stddev=0.4, seed=1)
    deep = tf.get_variable("deep", [3, 3, 4, 2], initializer=start)
    point = tf.get_variable("point", [1, 1, 8, 6], initializer=start)
    h = tf.nn.separable_conv2d(x, deep, point, [1, 2, 2, 1], "SAME")
    mean, variance = tf.nn.moments(h, [0, 1, 2])
    h = tf.nn.elu(tf.nn.batch_normalization(h, mean, variance, None, None, 1e-3))
    h = tf.nn.conv2d_transpose(
        h, tf.get_variable("back", [2, 2, 5, 6], initializer=start), [_BATCH, 6, 6, 5], 2
    )
    h = tf.reduce_mean(tf.nn.leaky_relu(h), [1, 2])
    loss = _entropy(tf, y, _dense(tf, h, 3, "top"))
    train = _minimised(tf, loss, optimiser, step)
    average = tf.train.ExponentialMovingAverage(0.9, step)
    with tf.control_dependencies([train]):
        keep = average.apply([deep, point])
    return _fifty(tf, loss, keep)


def lstm(tf: Any, optimiser: str, kind: str) -> Steps:
    """A recurrent network as a loop with arrays, its gradient clipped by its length."""
    data = _drawn(tf, 10, 4, seed=4)
    lengths = integers(_EXAMPLES, low=4, high=11, seed=4)
    step = _start(tf, kind)
    x, y, length = _batch(tf, step, data, tf.cumsum(data[:, :, 0], 1) * 0.3, lengths)
    with _old_loops(tf):
        h = _recurrent(tf, tf.transpose(x, [1, 0, 2]), length)
        said = tf.reshape(_dense(tf, tf.reshape(h, [-1, 12]), 1, "top"), [10, _BATCH])
        mask = tf.sequence_mask(length, 10, tf.float32)
        loss = tf.losses.mean_squared_error(y, tf.transpose(said), mask)
        return _fifty(tf, loss, _clipped(tf, loss, optimiser, step))


def _recurrent(tf: Any, x: Any, length: Any) -> Any:
    """States of all turns; a state stays as it is when its sequence is over."""
    inputs = tf.TensorArray(tf.float32, 10).unstack(x)
    zeros = tf.zeros([_BATCH, 12])

    def turn(t: Any, c: Any, h: Any, out: Any) -> Any:
        gates = _dense(tf, tf.concat([inputs.read(t), h], 1), 48, "gates")
        i, j, f, o = tf.split(gates, 4, 1)
        new_c = tf.sigmoid(f + 1) * c + tf.sigmoid(i) * tf.tanh(j)
        new_h = tf.sigmoid(o) * tf.tanh(new_c)
        lives = tf.tile((t < length)[:, None], [1, 12])
        return t + 1, tf.where(lives, new_c, c), tf.where(lives, new_h, h), out.write(t, new_h)

    start = [0, zeros, zeros, tf.TensorArray(tf.float32, 10)]
    # Variables must be made outside of the loop that reads them.
    with tf.variable_scope("rnn", reuse=tf.AUTO_REUSE):
        _dense(tf, tf.zeros([1, 16]), 48, "gates")
        loop = tf.while_loop(lambda t, *_: t < 10, turn, start, parallel_iterations=4)
    return loop[3].stack()


def _clipped(tf: Any, loss: Any, optimiser: str, step: Any) -> Any:
    rule = _OPTIMISERS[optimiser](tf.train, step)
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)
    return rule.apply_gradients(zip(gradients, variables, strict=True), step)


def decoder(tf: Any, optimiser: str, kind: str) -> Steps:
    """A loop that feeds itself or is taught, by a condition in the loop."""
    data = _drawn(tf, 6, 3, seed=6)
    step = _start(tf, kind)
    (x,) = _batch(tf, step, data)
    taught = tf.constant(uniform(6, seed=6) < 0.5)
    with _old_loops(tf), tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
        cell = lambda v: _dense(tf, v, 3, "cell")  # noqa: E731
        cell(tf.zeros([1, 6]))

        def turn(t: Any, state: Any, said: Any, total: Any) -> Any:
            seen = tf.cond(taught[t], lambda: x[:, t], lambda: tf.sin(said))
            state = tf.tanh(cell(tf.concat([seen, state], 1)))
            now = state * 1.5
            wrong = tf.reduce_mean(tf.square(now - 0.5 * x[:, t + 1]))
            return t + 1, state, now, total + wrong

        zeros = tf.zeros([_BATCH, 3])
        loss = tf.while_loop(lambda t, *_: t < 5, turn, [0, zeros, zeros, 0.0])[3]
        return _fifty(tf, loss, _clipped(tf, loss, optimiser, step))


def embeddings(tf: Any, optimiser: str, kind: str) -> Steps:
    """Bags of words: only the rows that a step has seen are changed."""
    words = integers(_EXAMPLES, 6, high=30, seed=7)
    step = _start(tf, kind)
    x, y = _batch(tf, step, words, i32((words < 12).sum(1) // 3))
    table = tf.get_variable("table", initializer=tf.constant(normal(30, 5, seed=8)))
    loss = _entropy(tf, y, _dense(tf, tf.reduce_mean(tf.nn.embedding_lookup(table, x), 1), 3, "t"))
    return _fifty(tf, loss, _minimised(tf, loss, optimiser, step), table)


def word2vec(tf: Any, optimiser: str, kind: str) -> Steps:
    """Words and their neighbours, told from random words that the graph draws."""
    words = integers(_EXAMPLES, high=20, seed=9)
    step = _start(tf, kind)
    x, y = _batch(tf, step, words, i32((words + 1) % 20)[:, None])
    start = tf.random_uniform_initializer(-0.5, 0.5, seed=2)
    table, out = (tf.get_variable(name, [20, 6], initializer=start) for name in ("in", "out"))
    bias = tf.get_variable("bias", [20], initializer=tf.zeros_initializer())
    drawn = tf.random.log_uniform_candidate_sampler(tf.cast(y, tf.int64), 1, 5, True, 20, seed=4)
    loss = tf.reduce_mean(
        tf.nn.nce_loss(out, bias, y, tf.nn.embedding_lookup(table, x), 5, 20, 1, drawn)
    )
    return _fifty(tf, loss, _minimised(tf, loss, optimiser, step))


def attention(tf: Any, optimiser: str, kind: str) -> Steps:
    """One block of a transformer with a causal mask."""
    words = integers(_EXAMPLES, 7, high=12, seed=10)
    step = _start(tf, kind)
    x, y = _batch(tf, step, words, i32((words[:, ::-1] + words) % 12))
    table = tf.get_variable("table", initializer=tf.constant(normal(12, 8, seed=11)))
    h = tf.gather(table, x) + tf.constant(normal(7, 8, seed=12))
    parts = tf.split(_dense(tf, tf.reshape(_layer_norm(tf, h, "a"), [-1, 8]), 24, "qkv"), 3, 1)
    q, k, v = (tf.transpose(tf.reshape(part, [_BATCH, 7, 2, 4]), [0, 2, 1, 3]) for part in parts)
    mask = tf.linalg.band_part(tf.ones([7, 7]), -1, 0)
    scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.5 - 1e9 * (1 - mask))
    mixed = tf.reshape(tf.transpose(tf.matmul(scores, v), [0, 2, 1, 3]), [-1, 8])
    h = tf.reshape(h, [-1, 8]) + _dense(tf, mixed, 8, "mixed")
    h += _dense(tf, _gelu(tf, _dense(tf, _layer_norm(tf, h, "b"), 16, "up")), 8, "down")
    loss = _entropy(tf, tf.reshape(y, [-1]), tf.matmul(h, table, transpose_b=True))
    return _fifty(tf, loss, _clipped(tf, loss, optimiser, step))


def _gelu(tf: Any, x: Any) -> Any:
    return 0.5 * x * (1 + tf.erf(x * 0.5**0.5))


def _layer_norm(tf: Any, x: Any, name: str) -> Any:
    scale = tf.get_variable(f"scale_{name}", [8], initializer=tf.ones_initializer())
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.rsqrt(variance + 1e-5) * scale


CASES = [
    *(graph(mlp, name, "ref", tol=_TOL) for name in _OPTIMISERS),
    *(graph(mlp, name, "resource", tol=_TOL) for name in ("adam", "descent", "momentum")),
    graph(cnn, "momentum", "ref", tol=_TOL),
    graph(cnn, "descent", "resource", tol=_TOL),
    graph(separable, "rmsprop", "resource", tol=_TOL),
    graph(lstm, "adam", "ref", tol=_TOL),
    graph(lstm, "momentum", "resource", tol=_TOL),
    graph(decoder, "adam", "ref", tol=_TOL),
    *(
        graph(embeddings, name, "ref", tol=_TOL)
        for name in ("adam", "adagrad", "descent", "ftrl", "momentum")
    ),
    *(graph(embeddings, name, "resource", tol=_TOL) for name in ("adam", "descent", "rmsprop")),
    graph(word2vec, "descent", "ref", tol=_TOL),
    graph(word2vec, "adagrad", "resource", tol=_TOL),
    graph(attention, "adam", "resource", tol=_TOL),
]
