"""Write the checkpoints in tests/checkpoint/files.  Needs TensorFlow.

    python tools/make_checkpoints.py

``tests/support/checkpoint_values.py`` says what is in them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.checkpoint_values import ROWS, mixed, objects, table  # noqa: E402

FILES = ROOT / "tests" / "checkpoint" / "files"


def save_v2(prefix: str, tensors: dict[str, Any], slices: list[str] | None = None) -> None:
    names = list(tensors)
    values = [tf.constant(value) for value in tensors.values()]
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=names,
        shape_and_slices=slices or [""] * len(names),
        tensors=values,
    )


def sharded() -> None:
    """Two files of data, merged from two temporary folders, as a Saver does it."""
    items = list(mixed(newer=True).items())
    parts = [str(FILES / f"sharded_temp/part-{at:05d}-of-00002") for at in range(2)]
    (FILES / "sharded_temp").mkdir()
    for at, prefix in enumerate(parts):
        save_v2(prefix, dict(items[at::2]))
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=parts, destination_prefix=str(FILES / "sharded"), delete_old_dirs=True
    )


def partitioned(version: int) -> None:
    ends = np.cumsum(ROWS)
    starts = ends - ROWS
    slices = [f"10 3 {start},{rows}:-" for start, rows in zip(starts, ROWS, strict=True)]
    values = [tf.constant(table()[start:end]) for start, end in zip(starts, ends, strict=True)]
    names = ["table"] * len(ROWS)
    if version == 2:
        tf.raw_ops.SaveV2(
            prefix=str(FILES / "parts"), tensor_names=names, shape_and_slices=slices, tensors=values
        )
        return
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        values = [tf.constant(table()[start:end]) for start, end in zip(starts, ends, strict=True)]
        save = tf.raw_ops.SaveSlices(
            filename=str(FILES / "v1_parts"),
            tensor_names=names,
            shapes_and_slices=slices,
            data=values,
        )
        session.run(save)


def version_1() -> None:
    tensors = mixed(newer=False)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        values = [tf.constant(value) for value in tensors.values()]
        save = tf.raw_ops.Save(filename=str(FILES / "v1"), tensor_names=list(tensors), data=values)
        session.run(save)


def object_based() -> None:
    values = objects()
    net = tf.Module()
    net.layer = tf.Module()
    net.layer.kernel = tf.Variable(values["net/layer/kernel"], name="kernel")
    net.layers = [tf.Module(), tf.Module()]
    for number, layer in enumerate(net.layers):
        layer.bias = tf.Variable(values[f"net/layers/{number}/bias"], name="bias")
    net.odd = {"a/b.c": tf.Variable(5, name="odd")}
    net.again = net.layer  # a second way to the same object
    checkpoint = tf.train.Checkpoint(net=net, step=tf.Variable(values["step"]))
    folder = FILES / "objects"
    manager = tf.train.CheckpointManager(checkpoint, str(folder), max_to_keep=2)
    for _ in range(3):
        manager.save()


def meta_graph() -> None:
    """A graph of TensorFlow 1 as a Saver leaves it: a partitioned variable, a table, a condition."""
    v1 = tf.compat.v1
    (FILES / "meta").mkdir()
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 10], name="x")
        words = v1.placeholder(tf.string, [None], name="words")
        with v1.variable_scope("", partitioner=v1.fixed_size_partitioner(3)):
            weights = v1.get_variable("w", initializer=tf.zeros_initializer(), shape=[10, 3])
        bias = v1.get_variable("b", initializer=np.float32([1, 2, 3]), use_resource=True)
        y = tf.matmul(x, tf.convert_to_tensor(weights)) + bias
        v1.cond(tf.reduce_sum(y) > 0, lambda: y, lambda: -y)
        tf.identity(y, name="y")
        keys = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
        tf.identity(tf.lookup.StaticHashTable(keys, -1).lookup(words), name="ids")
        session.run(v1.global_variables_initializer())
        session.run(bias.assign([0, 0, 1]))
        ends = np.cumsum(ROWS)
        for part, rows, end in zip(weights, ROWS, ends, strict=True):
            session.run(part.assign(table()[end - rows : end]))
        v1.train.Saver(sharded=True, save_relative_paths=True).save(
            session, str(FILES / "meta" / "model.ckpt"), global_step=7
        )


def main() -> None:
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir(parents=True)
    save_v2(str(FILES / "names"), mixed(newer=True))
    sharded()
    partitioned(1)
    partitioned(2)
    version_1()
    object_based()
    meta_graph()


if __name__ == "__main__":
    main()
