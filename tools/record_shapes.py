"""Ask TensorFlow which shapes it infers for the graphs of the tests.

In:   the graphs of ``tests/corpus`` and ``tests/op_cases``.
Out:  ``tests/shapes/recorded.json.gz``: by the digest of a graph, the shapes of its nodes' outputs.
Not:  needs nothing of Penstock but the readers of its tests; needs TensorFlow.

    python tools/record_shapes.py

TensorFlow infers shapes when it imports a graph.  A graph that it refuses to import has no entry.
The shapes of one graph are one string: nodes in the order of the definition, joined by ``;``,
their outputs by ``|``, sizes by ``,``.  ``?`` is an unknown size, ``*`` an unknown rank, and a
scalar is the empty word ``-``.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

import tensorflow as tensorflow_2  # noqa: E402

from support import op_cases  # noqa: E402

tf = tensorflow_2.compat.v1


def graphs() -> Iterator[bytes]:
    """Every graph that the tests have, as it is stored."""
    for path in sorted((ROOT / "tests" / "corpus").glob("*/*/graph.pb")):
        yield path.read_bytes()
    for case in op_cases.all_op_cases():
        yield case.graph_bytes


def shapes_of(data: bytes) -> str | None:
    """What TensorFlow infers for a graph; None if it refuses the graph."""
    definition = tf.GraphDef()
    try:
        definition.ParseFromString(data)
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(definition, name="")
            return ";".join(line(graph.get_operation_by_name(n.name)) for n in definition.node)
    except Exception:  # noqa: BLE001  (a case of an error, which is judged elsewhere)
        return None


def line(operation: Any) -> str:
    return "|".join(text(output.shape) for output in operation.outputs)


def text(shape: Any) -> str:
    if shape.rank is None:
        return "*"
    return ",".join("?" if size is None else str(size) for size in shape.as_list()) or "-"


def main() -> None:
    found = {hashlib.sha256(data).hexdigest()[:16]: shapes_of(data) for data in graphs()}
    known = {key: value for key, value in sorted(found.items()) if value is not None}
    body = json.dumps({"tensorflow": tf.__version__, "shapes": known}, indent=0).encode()
    target = ROOT / "tests" / "shapes" / "recorded.json.gz"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(gzip.compress(body, 9, mtime=0))
    print(f"{len(known)} graphs, {len(found) - len(known)} refused, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
