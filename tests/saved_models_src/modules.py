"""Models of ``tf.Module``: functions, tables, structured and composite arguments, state."""

from __future__ import annotations

import collections
import os
import tempfile
from typing import Any

import numpy as np

from saved_models_src.recipe import Call, Ragged, Recipe, Sparse


def _repeated_names(folder: str) -> None:
    """Submodels whose variables repeat names: only the object graph tells them apart."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(3)

    def tower(units: int) -> Any:
        return keras.Sequential(
            [keras.Input((4,)), keras.layers.Dense(units, "tanh", name="d1")], name="tower"
        )

    class Pair(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = tower(3), tower(3)
            self.bias = tf.Variable([1.0, 2.0, 3.0], name="d1/kernel")
            self.scale = tf.Variable([[10.0, 20.0, 30.0]], name="d1/kernel")

        @tf.function(input_signature=[tf.TensorSpec([None, 4])])
        def __call__(self, x: Any) -> Any:
            return (self.encoder(x) - 2.0 * self.decoder(x) + self.bias) * self.scale

    tf.saved_model.save(Pair(), folder)


def _several_signatures(folder: str) -> None:
    import tensorflow as tf

    class Scaler(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = tf.Variable(3.0)
            self.calls = tf.Variable(0, dtype=tf.int64, trainable=False)

        @tf.function(input_signature=[tf.TensorSpec([None], name="x")])
        def scale(self, x: Any) -> Any:
            return {"scaled": x * self.factor, "factor": self.factor}

        @tf.function(input_signature=[tf.TensorSpec([None], name="a"), tf.TensorSpec([], name="b")])
        def combine(self, a: Any, b: Any) -> Any:
            self.calls.assign_add(1)
            return a + b, self.calls.read_value()

        @tf.function(input_signature=[tf.TensorSpec([], name="value")])
        def set_factor(self, value: Any) -> Any:
            self.factor.assign(value)
            return {"factor": self.factor.read_value()}

    module = Scaler()
    signatures = {name: getattr(module, name) for name in ("scale", "combine", "set_factor")}
    tf.saved_model.save(module, folder, {"serving_default": module.scale, **signatures})


_Point = collections.namedtuple("_Point", ["x", "y"])


def _polymorphic(folder: str) -> None:
    """One function traced for several types, shapes and Python values; and a submodule."""
    import tensorflow as tf

    class Inner(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

        @tf.function
        def call(self, x: Any, *, transpose: bool = False) -> Any:
            return tf.matmul(x, self.w, transpose_b=transpose)

    class Outer(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()
            self.layers = [Inner(), Inner()]

        @tf.function
        def double(self, x: Any, times: int = 2) -> Any:
            return x + x if times == 2 else x * tf.cast(times, x.dtype)

        @tf.function
        def nested(self, pair: Any, rest: Any = None) -> Any:
            total = pair["a"] + pair["b"][0]
            if rest is None:
                return {"total": total, "point": _Point(total, [pair["a"]])}
            return {"total": total + rest, "point": _Point(total, [pair["a"]])}

    module = Outer()
    module.double(tf.constant([1.0]))
    module.double(tf.zeros([2, 2], tf.int32))
    module.double(tf.TensorSpec([None], tf.float32) and tf.constant([1.0, 2.0]), times=3)
    module.double.get_concrete_function(tf.TensorSpec([None, 3], tf.float64))
    for layer in (module.inner, module.layers[1]):
        layer.call(tf.ones([1, 2]))
        layer.call(tf.ones([1, 2]), transpose=True)
    pair = {"a": tf.constant(1.0), "b": (tf.constant(2.0),)}
    module.nested(pair)
    module.nested(pair, rest=tf.constant(5.0))
    module.layers[1].w.assign([[5.0, 6.0], [7.0, 8.0]])
    tf.saved_model.save(module, folder)


def _table_from_asset(folder: str) -> None:
    import tensorflow as tf

    class Lookup(tf.Module):
        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = tf.saved_model.Asset(path)
            self.table = tf.lookup.StaticHashTable(
                tf.lookup.TextFileInitializer(
                    path,
                    tf.string,
                    tf.lookup.TextFileIndex.WHOLE_LINE,
                    tf.int64,
                    tf.lookup.TextFileIndex.LINE_NUMBER,
                ),
                default_value=-1,
            )

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def ids(self, words: Any) -> Any:
            return self.table.lookup(words)

        @tf.function(input_signature=[])
        def lines(self) -> Any:
            return tf.io.read_file(self.path)

    with tempfile.TemporaryDirectory() as temporary:
        path = os.path.join(temporary, "vocabulary.txt")
        with open(path, "w") as file:
            file.write("sun\nmoon\nstar\n")
        module = Lookup(path)
        tf.saved_model.save(module, folder, {"serving_default": module.ids})


def _tables(folder: str) -> None:
    """A table of constants, a table that the checkpoint fills, and one in another."""
    import tensorflow as tf

    class Tables(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            keys, values = tf.constant([b"a", b"b"]), tf.constant([1.5, 2.5])
            self.fixed = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(keys, values), 0.0
            )
            self.learnt = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
            self.learnt.insert(tf.constant(["x", "y"]), tf.constant([10, 20], tf.int64))
            self.vocabulary = tf.lookup.StaticVocabularyTable(
                tf.lookup.KeyValueTensorInitializer(["p", "q"], tf.constant([0, 1], tf.int64)), 3
            )

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def find(self, keys: Any) -> Any:
            found = self.learnt.lookup(keys)
            return {"fixed": self.fixed.lookup(keys), "learnt": found,
                    "vocabulary": self.vocabulary.lookup(keys)}  # fmt: skip

        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int64)]
        )
        def insert(self, keys: Any, values: Any) -> Any:
            self.learnt.insert(keys, values)
            return self.learnt.size()

    module = Tables()
    tf.saved_model.save(module, folder, {"serving_default": module.find, "insert": module.insert})


def _strings(folder: str) -> None:
    import tensorflow as tf

    class Hasher(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = tf.Variable(tf.reshape(tf.range(10.0), [10, 1]))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
        def score(self, text: Any) -> Any:
            words = tf.strings.split(tf.strings.lower(text))
            ids = tf.strings.to_hash_bucket_fast(words.flat_values, 10)
            scores = tf.gather(self.weights, ids)[:, 0]
            return {
                "score": tf.math.segment_sum(scores, words.value_rowids()),
                "words": words.row_lengths(),
                "joined": tf.strings.reduce_join(words, axis=1, separator="+"),
            }

    module = Hasher()
    tf.saved_model.save(module, folder, {"serving_default": module.score})


def _composites(folder: str) -> None:
    """Ragged and sparse tensors as arguments and results, and optional ones."""
    import tensorflow as tf

    class Composites(tf.Module):
        @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
        def lengths(self, rows: Any) -> Any:
            return {"lengths": rows.row_lengths(), "doubled": rows * 2.0}

        @tf.function(input_signature=[tf.RaggedTensorSpec([None, None, None], tf.int32)])
        def deep(self, rows: Any) -> Any:
            return tf.reduce_sum(rows, axis=2)

        @tf.function(input_signature=[tf.SparseTensorSpec([None, 3], tf.float32)])
        def dense(self, sparse: Any) -> Any:
            return tf.sparse.to_dense(sparse), tf.sparse.transpose(sparse)

        @tf.function
        def either(self, x: Any, mask: Any = None) -> Any:
            return x if mask is None else tf.boolean_mask(x, mask)

    module = Composites()
    module.either(tf.constant([1.0, 2.0]))
    module.either(tf.constant([1.0, 2.0]), tf.constant([True, False]))
    tf.saved_model.save(module, folder, {"serving_default": module.lengths})


def _while_loop(folder: str) -> None:
    import tensorflow as tf

    class Loop(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.step = tf.Variable(2, dtype=tf.int32)

        @tf.function(input_signature=[tf.TensorSpec([], tf.int32, "n")])
        def collatz(self, n: Any) -> Any:
            steps = tf.constant(0)
            while n > 1:
                if n % self.step == 0:  # noqa: SIM108  (a branch of the graph)
                    n = n // self.step
                else:
                    n = 3 * n + 1
                steps += 1
            return {"steps": steps}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
        def running(self, x: Any) -> Any:
            sums = tf.TensorArray(tf.float32, size=tf.shape(x)[0])
            total = tf.constant(0.0)
            for i in tf.range(tf.shape(x)[0]):
                total += x[i]
                sums = sums.write(i, total)
            return {"sums": sums.stack()}

    module = Loop()
    signatures = {"serving_default": module.collatz, "running": module.running}
    tf.saved_model.save(module, folder, signatures)


def _custom_gradient(folder: str) -> None:
    """A function with a gradient of its own, and one that takes that gradient."""
    import tensorflow as tf

    @tf.custom_gradient
    def clipped(x: Any) -> Any:
        def grad(upstream: Any) -> Any:
            return tf.clip_by_value(upstream, -0.5, 0.5)

        return x * x, grad

    class Custom(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
        def value(self, x: Any) -> Any:
            return clipped(x)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
        def slope(self, x: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = clipped(x) * 3.0
            return tape.gradient(y, x)

    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    module = Custom()
    signatures = {"serving_default": module.value, "slope": module.slope}
    tf.saved_model.save(module, folder, signatures, options)


def _constants(folder: str) -> None:
    """Captured constants, variables of odd types, and one that is not in the checkpoint."""
    import tensorflow as tf

    class Constants(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = tf.constant([[1, 2], [3, 4]], tf.int64)
            self.words = tf.Variable(["sun", "moon"])
            self.half = tf.Variable(tf.constant([0.5, 1.25], tf.bfloat16))
            self.flag = tf.Variable(True)
            self.empty = tf.Variable(tf.zeros([0, 3]))

        @tf.function(input_signature=[tf.TensorSpec([], tf.int64, "row")])
        def row(self, row: Any) -> Any:
            return {
                "row": self.table[row],
                "word": self.words[row],
                "half": tf.cast(self.half, tf.float32),
                "flag": self.flag,
                "empty": self.empty,
            }

    module = Constants()
    tf.saved_model.save(module, folder, {"serving_default": module.row})


def _random(*shape: int) -> Any:
    return np.random.default_rng(4).normal(size=shape).astype(np.float32)


def _text(*words: bytes) -> Any:
    return np.array(words, object)


_F = np.float32
_RAGGED = Ragged(np.array([1, 2, 3], _F), (np.array([0, 2, 2, 3]),))
_DEEP = Ragged(np.array([1, 2, 3, 4], np.int32), (np.array([0, 2, 3]), np.array([0, 1, 3, 4])))
_SPARSE = Sparse(np.array([[0, 1], [1, 2]]), np.array([5, 6], _F), np.array([2, 3]))
_PAIR = {"a": _F(1), "b": (_F(2),)}

RECIPES = [
    Recipe("repeated_names", _repeated_names, [Call(path="__call__", args=(_random(2, 4),))]),
    Recipe(
        "several_signatures",
        _several_signatures,
        [
            Call("serving_default", kwargs={"x": np.array([1, 2], _F)}),
            Call("combine", kwargs={"a": np.array([1, 2], _F), "b": _F(0.5)}),
            Call("set_factor", kwargs={"value": _F(-1)}),
            Call("scale", kwargs={"x": np.array([4], _F)}),
            Call("combine", kwargs={"a": np.array([0], _F), "b": _F(0)}),
            Call(path="combine", args=(np.array([0], _F),), kwargs={"b": _F(3)}),
        ],
    ),
    Recipe(
        "polymorphic",
        _polymorphic,
        [
            Call(path="double", args=(np.array([4.0], _F),)),
            Call(path="double", args=(np.full((2, 2), 3, np.int32),)),
            Call(path="double", args=(np.array([1.0, 2.0], _F), 3)),
            Call(path="double", args=(np.ones((4, 3)),)),
            Call(path="inner.call", args=(np.array([[1, -1]], _F),)),
            Call(path="inner.call", args=(np.array([[1, -1]], _F),), kwargs={"transpose": True}),
            Call(path="layers.1.call", args=(np.array([[1, -1]], _F),)),
            Call(path="nested", args=(_PAIR,)),
            Call(path="nested", args=(_PAIR,), kwargs={"rest": _F(7)}),
            Call(path="nested", args=(_PAIR, _F(8))),
        ],
    ),
    Recipe(
        "table_from_asset",
        _table_from_asset,
        [
            Call("serving_default", kwargs={"words": _text(b"moon", b"mars", b"star")}),
            Call(path="lines"),
        ],
    ),
    Recipe(
        "tables",
        _tables,
        [
            Call("serving_default", kwargs={"keys": _text(b"a", b"y", b"q", b"zz")}),
            Call("insert", kwargs={"keys": _text(b"a"), "values": np.array([7])}),
            Call("serving_default", kwargs={"keys": _text(b"a", b"y")}),
        ],
    ),
    Recipe(
        "strings",
        _strings,
        [Call("serving_default", kwargs={"text": _text(b"The sun", b"", b"A B a")})],
    ),
    Recipe(
        "composites",
        _composites,
        [
            Call(path="lengths", args=(_RAGGED,)),
            Call(path="deep", args=(_DEEP,)),
            Call(path="dense", args=(_SPARSE,)),
            Call(path="either", args=(np.array([1.0, 2.0], _F),)),
            Call(path="either", args=(np.array([1.0, 2.0], _F), np.array([False, True]))),
            Call(path="either", args=(np.array([3.0, 4.0], _F),), kwargs={"mask": None}),
        ],
    ),
    Recipe(
        "while_loop",
        _while_loop,
        [
            Call("serving_default", kwargs={"n": np.int32(27)}),
            Call("running", kwargs={"x": np.array([1, 2, 3], _F)}),
        ],
    ),
    Recipe(
        "custom_gradient",
        _custom_gradient,
        [
            Call("serving_default", kwargs={"x": np.array([1, -2], _F)}),
            Call("slope", kwargs={"x": np.array([1, -2], _F)}),
        ],
    ),
    Recipe("constants", _constants, [Call("serving_default", kwargs={"row": np.int64(1)})]),
]
