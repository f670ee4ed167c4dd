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


def main() -> None:
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir(parents=True)
    save_v2(str(FILES / "names"), mixed(newer=True))
    sharded()
    partitioned(1)
    partitioned(2)
    version_1()
    object_based()


if __name__ == "__main__":
    main()
