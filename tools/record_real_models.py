"""Ask TensorFlow what real models answer, for ``tests/models``.

    python tools/fetch_models.py
    python tools/record_real_models.py          # needs TensorFlow

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


def main() -> None:
    """Write what each case answers."""
    tf.disable_eager_execution()
    ANSWERS.mkdir(exist_ok=True)
    for case in CASES:
        if case.kind == "tfjs":
            continue  # run_language_model.mjs asks TensorFlow.js
        with tf.Graph().as_default(), tf.Session() as session:
            inputs, outputs = _load(case, session)
            feeds = {inputs.get(name, name): value for name, value in case.feeds().items()}
            fetches = [outputs.get(name, name) for name in case.fetches]
            found = session.run(fetches, feeds)
        noted = {str(number): _plain(case.thinned(answer)) for number, answer in enumerate(found)}
        np.savez_compressed(ANSWERS / f"{case.name}.npz", **noted)
        print(case.name, [(a.dtype, a.shape) for a in noted.values()])


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
    main()
