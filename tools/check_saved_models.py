"""Have TensorFlow run what Penstock saves, freezes and converts.

    python tools/check_saved_models.py

Every signature of ``tests/saved_models`` that can be frozen is, as a graph and as a SavedModel; and
a session with variables of both kinds is saved.  TensorFlow's answers must be those that it gave
for the models themselves.  Needs TensorFlow; ends with 1 if something differs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

import numpy as np  # noqa: E402
import tensorflow as tensorflow_2  # noqa: E402

import penstock as ps  # noqa: E402
from penstock.errors import OpError  # noqa: E402
from support.saved_models import NAMES, assert_same, recorded  # noqa: E402

tf = tensorflow_2.compat.v1
#: What went wrong.
complaints: list[str] = []


def main() -> None:
    for name in NAMES:
        model = recorded(name)
        for number, call in enumerate(model.calls):
            if call.signature:
                check_frozen(name, model, number)
    check_saved()
    sys.exit("\n".join(complaints))


def check_frozen(name: str, model: Any, number: int) -> None:
    what, call = f"{name} {number}", model.calls[number]
    with ps.saved_model.load(model.path, model.tags) as loaded:
        try:  # with the state that earlier calls had left
            for earlier in model.calls[:number]:
                if earlier.signature:
                    loaded.signatures[earlier.signature](**earlier.kwargs)
            frozen = ps.saved_model.freeze(loaded, call.signature)
            inlined = ps.saved_model.freeze(loaded, call.signature, inline=True)
        except OpError as error:
            print(f"{what}: not frozen: {error.reason}")
            return
    compare(f"{what}, frozen", run_graph(frozen, call.kwargs), call.result)
    compare(f"{what}, inlined", run_graph(inlined, call.kwargs), call.result)
    graph = ps.Graph()
    graph.import_graph_def(frozen.graph_def, name="")
    with tempfile.TemporaryDirectory() as folder:
        signatures = {"s": (frozen.inputs, frozen.outputs)}
        path = ps.saved_model.save(
            f"{folder}/model",
            signatures,
            graph=graph,
            init=frozen.init or None,
            assets=frozen.assets,
        )
        compare(f"{what}, converted", run_signature(path, call.kwargs), call.result)


def run_graph(frozen: Any, given: dict[str, Any]) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        graph_def = tf.GraphDef.FromString(frozen.graph_def.SerializeToString())
        tf.import_graph_def(graph_def, name="")
        if frozen.init:
            session.run(frozen.init)
        feeds = {frozen.inputs[name]: value for name, value in given.items()}
        return session.run(dict(frozen.outputs), feeds)


def run_signature(path: str, given: dict[str, Any]) -> Any:
    loaded = tensorflow_2.saved_model.load(path)
    outputs = loaded.signatures["s"](**{k: tensorflow_2.constant(v) for k, v in given.items()})
    return {name: value.numpy() for name, value in outputs.items()}


def compare(what: str, given: Any, wanted: Any) -> None:
    try:
        assert_same(given, wanted)
        print(f"{what}: the same")
    except AssertionError as error:
        complaints.append(f"{what}: {error}")


def check_saved() -> None:
    graph = ps.Graph()
    start = np.array([[1, 2], [3, 4]], np.float32)
    with graph.as_default():
        x = ps.placeholder("float32", [None, 2], name="x")
        w, v = ps.Variable(start, name="w"), ps.ops.variable_v2([2], "float32", name="v")
        y = ps.ops.mat_mul(x, w.value()) + v
        init = ps.group(ps.global_variables_initializer(), ps.ops.assign(v, [10.0, 20.0]))
    with ps.Session(graph) as session, tempfile.TemporaryDirectory() as folder:
        session.run(init)
        path = ps.saved_model.save(f"{folder}/m", {"s": ({"x": x}, {"y": y})}, session=session)
        given = {"x": np.ones((1, 2), np.float32)}
        compare("a session", run_signature(path, given), {"y": np.array([[14, 26]], np.float32)})


if __name__ == "__main__":
    main()
