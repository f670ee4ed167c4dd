"""Ask TensorFlow what real models answer, for ``tests/models``.

    python tools/fetch_models.py
    python tools/record_real_models.py          # needs TensorFlow, and tf_keras, which is Keras 2

Writes ``tests/models/answers/NAME.npz`` for each case of ``tests/support/real_models.py``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests")]

import numpy as np  # noqa: E402
import tensorflow as tensorflow_2  # noqa: E402

from support.real_models import ANSWERS, CASES, MODELS, Case  # noqa: E402

tf = tensorflow_2.compat.v1


def main(names: list[str]) -> None:
    """Write what each case answers, or those that are named."""
    ANSWERS.mkdir(exist_ok=True)
    # Keras 2 runs eagerly; once that is switched off, it cannot be had again.
    for case in sorted(CASES, key=lambda case: case.kind != "keras"):
        if case.kind == "tfjs" or (names and case.name not in names):
            continue  # run_language_model.mjs asks TensorFlow.js
        found = _ask_keras(case) if case.kind == "keras" else _ask_session(case)
        noted = {str(number): _plain(case.thinned(answer)) for number, answer in enumerate(found)}
        np.savez_compressed(ANSWERS / f"{case.name}.npz", **noted)
        print(case.name, [(a.dtype, a.shape) for a in noted.values()])


def _ask_keras(case: Case) -> list[Any]:
    import tf_keras  # noqa: PLC0415 - importing it takes seconds

    model = tf_keras.models.load_model(MODELS / case.path, compile=False)
    [fed] = case.feeds().values()
    outputs = model(fed, training=False)
    listed = outputs if isinstance(outputs, list) else [outputs]
    by_layer = dict(zip(model.output_names, listed, strict=True))
    return [np.asarray(by_layer[name]) for name in case.fetches]


def _ask_session(case: Case) -> list[Any]:
    tf.disable_eager_execution()
    with tf.Graph().as_default(), tf.Session() as session:
        inputs, outputs = _load(case, session)
        feeds = {inputs.get(name, name): value for name, value in case.feeds().items()}
        fetches = [outputs.get(name, name) for name in case.fetches]
        found: list[Any] = session.run(fetches, feeds)
    return found


def _plain(answer: Any) -> Any:
    """Texts as numpy's own: files with objects are not read."""
    return answer.astype("S") if answer.dtype == object else answer


def _load(case: Case, session: Any) -> tuple[dict[str, str], dict[str, str]]:
    """The names of tensors by those of a signature, where there is one."""
    path = str(MODELS / case.path)
    if case.kind == "graph":
        graph_def = tf.GraphDef.FromString(Path(path).read_bytes())
        tf.import_graph_def(graph_def, name="")
    elif case.kind == "meta_graph":
        meta = tf.MetaGraphDef.FromString(Path(path).read_bytes())
        for node in meta.graph_def.node:
            # TensorFlow refuses what an older one noted of gradients that nobody runs.
            node.attr.pop("_output_shapes", None)
        tf.train.import_meta_graph(meta).restore(session, path.removesuffix(".meta"))
    else:
        loaded = tf.saved_model.load(session, ["serve"], path)
        signature = loaded.signature_def[case.signature]
        return (
            {name: info.name for name, info in signature.inputs.items()},
            {name: info.name for name, info in signature.outputs.items()},
        )
    return {}, {}


if __name__ == "__main__":
    main(sys.argv[1:])
