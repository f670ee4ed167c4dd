"""Write tests/saved_model/hub_module, a module of TensorFlow 1 Hub.  Needs TensorFlow.

    pip download --no-deps tensorflow_hub==0.12.0 && unzip tensorflow_hub-*.whl -d hub
    : > hub/tensorflow_hub/__init__.py    # which imports what newer versions of TensorFlow lack
    PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python PYTHONPATH=hub python tools/make_hub_module.py

Two graphs, without tags and with ``train``: variables of both kinds, one of them in parts, and a
table from an asset.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1
# The library looks for what newer versions of TensorFlow have no more.
sys.modules["tensorflow._api.v2.compat.v1"].__dict__["estimator"] = types.SimpleNamespace(
    Exporter=object, Estimator=object
)

from tensorflow_hub.module import Module  # noqa: E402
from tensorflow_hub.native_module import add_signature, create_module_spec  # noqa: E402

FOLDER = Path(__file__).parents[1] / "tests" / "saved_model" / "hub_module"


def make_module(vocabulary: str, *, is_training: bool) -> None:
    x = v1.placeholder(tf.float32, [None, 2])
    w = v1.get_variable("w", initializer=tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    parts = v1.get_variable(
        "p", shape=[4], initializer=v1.ones_initializer(),
        partitioner=v1.fixed_size_partitioner(2),
    )  # fmt: skip
    r = v1.get_variable("r", initializer=tf.constant([10.0]), use_resource=True)
    y = tf.matmul(x, w) + tf.reduce_sum(tf.convert_to_tensor(parts)) + r
    words = v1.placeholder(tf.string, [None])
    index = tf.lookup.TextFileIndex
    lines = tf.lookup.TextFileInitializer(
        vocabulary, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    add_signature(inputs=x, outputs=y * 2 if is_training else y)
    add_signature(
        "tokens", inputs=words, outputs=tf.lookup.StaticHashTable(lines, -1).lookup(words)
    )


def main() -> None:
    v1.disable_eager_execution()
    v1.disable_v2_behavior()
    shutil.rmtree(FOLDER, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        vocabulary = Path(scratch) / "vocab.txt"
        vocabulary.write_text("a\nb\n")

        def module(is_training: bool) -> Any:  # noqa: FBT001  (hub calls it so)
            return make_module(str(vocabulary), is_training=is_training)

        kinds = [(set(), {"is_training": False}), ({"train"}, {"is_training": True})]
        spec = create_module_spec(module, kinds)
        with tf.Graph().as_default(), v1.Session() as session:
            made = Module(spec)
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            session.run([variable.assign(variable * 2) for variable in made.variables])
            print(session.run(made([[1.0, 1.0]])))
            made.export(str(FOLDER), session)


if __name__ == "__main__":
    main()
