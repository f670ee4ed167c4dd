"""Models of TensorFlow 1: graphs with signatures, restored and initialized by their own nodes."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np

from saved_models_src.recipe import Call, Recipe


def _v1() -> Any:
    import tensorflow as tf

    return tf.compat.v1


def _simple_save(folder: str) -> None:
    tf = _v1()
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], "x")
        w = tf.get_variable(
            "w", initializer=tf.constant([[1.0, 2.0], [3.0, 4.0]]), use_resource=False
        )
        b = tf.get_variable("b", initializer=tf.constant([0.5, -0.5]), use_resource=True)
        y = tf.add(tf.matmul(x, w), b, name="y")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, folder, {"x": x}, {"y": y})


def _estimator(folder: str) -> None:
    """As an Estimator exports: one graph that parses examples, and three signatures."""
    tf = _v1()
    with tf.Graph().as_default(), tf.Session() as session:
        examples = tf.placeholder(tf.string, [None], "input_example_tensor")
        parsed = tf.io.parse_example(
            examples, {"x": tf.io.FixedLenFeature([2], tf.float32),
                       "word": tf.io.FixedLenFeature([], tf.string, b"?")}
        )  # fmt: skip
        known = tf.lookup.KeyValueTensorInitializer(["sun", "moon"], tf.range(2, dtype=tf.int64))
        table = tf.lookup.StaticVocabularyTable(known, num_oov_buckets=1)
        w = tf.get_variable("w", initializer=tf.constant([[1.0, -1.0, 0.5], [0.0, 2.0, 1.0]]))
        bias = tf.get_variable("bias", initializer=tf.constant([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]))
        logits = tf.matmul(parsed["x"], w) + tf.gather(bias, table.lookup(parsed["word"]))
        scores = tf.nn.softmax(logits)
        names = tf.tile(tf.constant([["a", "b", "c"]]), [tf.shape(scores)[0], 1])
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        sd = tf.saved_model.signature_def_utils
        info = tf.saved_model.build_tensor_info
        signatures = {
            "serving_default": sd.classification_signature_def(examples, names, scores),
            "regression": sd.regression_signature_def(examples, scores[:, 0]),
            "predict": sd.build_signature_def(
                {"examples": info(examples)},
                {"logits": info(logits), "word": info(parsed["word"])},
                tf.saved_model.signature_constants.PREDICT_METHOD_NAME,
            ),
        }
        builder = tf.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(
            session,
            [tf.saved_model.tag_constants.SERVING],
            signatures,
            main_op=tf.tables_initializer(),
            strip_default_attrs=True,
        )
        builder.save()


def _partitioned(folder: str) -> None:
    tf = _v1()
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int64, [None], "ids")
        table = tf.get_variable(
            "table",
            [8, 3],
            initializer=tf.random_normal_initializer(seed=5),
            partitioner=tf.fixed_size_partitioner(3),
            use_resource=False,
        )
        rows = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, folder, {"ids": ids}, {"rows": rows})


def _tags_and_assets(folder: str) -> None:
    """Several metagraphs, one without a tag; an asset; the older kind of initializing."""
    tf = _v1()
    with tempfile.TemporaryDirectory() as temporary:
        path = os.path.join(temporary, "words.txt")
        with open(path, "w") as file:
            file.write("red\ngreen\n")
        builder = tf.saved_model.Builder(folder)
        for number, tags in enumerate(([], ["serve"], ["serve", "gpu"])):
            with tf.Graph().as_default(), tf.Session() as session:
                name = tf.constant(path, name="filename")
                tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, name)
                lines = tf.lookup.TextFileInitializer(
                    name,
                    tf.string,
                    tf.lookup.TextFileIndex.WHOLE_LINE,
                    tf.int64,
                    tf.lookup.TextFileIndex.LINE_NUMBER,
                )
                table = tf.lookup.StaticHashTable(lines, default_value=-1)
                w = tf.get_variable("w", initializer=tf.constant(2.0))
                words = tf.placeholder(tf.string, [None], "words")
                y = tf.cast(table.lookup(words), tf.float32) * w + float(number)
                signature = tf.saved_model.signature_def_utils.predict_signature_def(
                    {"words": words}, {"y": y}
                )
                session.run([tf.global_variables_initializer(), tf.tables_initializer()])
                options = {
                    "signature_def_map": {"serving_default": signature},
                    "assets_collection": tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
                    "legacy_init_op": tf.group(tf.tables_initializer(), name="legacy_init_op"),
                }
                if number == 0:
                    builder.add_meta_graph_and_variables(session, tags, **options)
                else:
                    builder.add_meta_graph(tags, **options)
        builder.save()


def _examples() -> Any:
    import tensorflow as tf

    def example(x: list[float], word: bytes) -> bytes:
        features = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=x))}
        if word:
            features["word"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[word]))
        return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    return np.array([example([1, 2], b"moon"), example([-1, 0.5], b"")], object)


def recipes() -> list[Recipe]:
    """All of them; the examples are TensorFlow's own."""
    examples, words = _examples(), np.array([b"green", b"blue"], object)
    tags = ((), ("serve",), ("serve", "gpu"))
    return [
        Recipe(
            "simple_save",
            _simple_save,
            [Call("serving_default", kwargs={"x": np.array([[1, 2], [3, 4]], np.float32)})],
        ),
        Recipe(
            "estimator",
            _estimator,
            [
                Call("serving_default", kwargs={"inputs": examples}),
                Call("regression", kwargs={"inputs": examples}),
                Call("predict", kwargs={"examples": examples}),
            ],
        ),
        Recipe(
            "partitioned",
            _partitioned,
            [Call("serving_default", kwargs={"ids": np.array([7, 0, 3, 3])})],
        ),
        *[
            Recipe(
                "tags_and_assets" + "".join(f"_{tag}" for tag in tag_set),
                _tags_and_assets,
                [Call("serving_default", kwargs={"words": words})],
                tags=tag_set,
            )
            for tag_set in tags
        ],
    ]
