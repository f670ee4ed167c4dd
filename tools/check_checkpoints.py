"""Ask TensorFlow whether it reads the checkpoints that Penstock writes.  Needs TensorFlow.

    python tools/check_checkpoints.py

Writes checkpoints of all kinds into a temporary folder, loads them with TensorFlow, and compares
bit for bit.  Prints nothing but the last line if all is well.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

import penstock as ps  # noqa: E402
from support.checkpoint_values import mixed, objects  # noqa: E402


def same(one: object, other: object) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    if other.dtype.hasobject:
        return one.tolist() == other.tolist()
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def check_names(folder: Path) -> None:
    """Twice under one prefix: the second has two data files."""
    for _ in range(2):
        tensors = mixed(newer=True)
        prefix = ps.checkpoint.save(folder / "names", tensors)
        reader = tf.train.load_checkpoint(prefix)
        assert set(reader.get_variable_to_shape_map()) == set(tensors)
        for name, value in tensors.items():
            assert same(reader.get_tensor(name), value), name


def check_objects(folder: Path) -> None:
    values = objects()
    prefix = ps.checkpoint.save_objects(folder / "objects", values)
    net = tf.Module()
    net.layer = tf.Module()
    net.layer.kernel = tf.Variable(tf.zeros([2, 3]))
    net.layers = [tf.Module(), tf.Module()]
    for layer in net.layers:
        layer.bias = tf.Variable(tf.zeros([2]))
    step = tf.Variable(0, dtype=tf.int64)
    status = tf.train.Checkpoint(net=net, step=step).read(prefix)
    status.assert_consumed()
    assert same(net.layer.kernel.numpy(), values["net/layer/kernel"])
    assert same(net.layers[1].bias.numpy(), values["net/layers/1/bias"])
    assert step.numpy() == values["step"]


def check_state(folder: Path) -> None:
    ps.checkpoint.save(folder / "ck-1", {"a": 1})
    ps.checkpoint.write_state(folder, folder / "ck-1", timestamps=[1.5])
    assert tf.train.latest_checkpoint(str(folder)) == str(folder / "ck-1")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        for check in (check_names, check_objects, check_state):
            check(Path(name))
    print("TensorFlow", tf.__version__, "reads what Penstock writes")


if __name__ == "__main__":
    main()
