"""Ask TensorFlow which shapes it infers for the graphs of the tests.

In:   the graphs of ``tests/corpus`` and ``tests/op_cases``, and variants of the latter.
Out:  ``tests/shapes/recorded.json.gz``: by the digest of a graph, the shapes of its nodes' outputs;
      by the name of a case, the same for its variants: "!" for one that is refused, "x" for one
      that brings TensorFlow down.
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
from support.shape_variants import variants  # noqa: E402

tf = tensorflow_2.compat.v1


def graphs() -> Iterator[bytes]:
    """Every graph that the tests have, as it is stored."""
    for path in sorted((ROOT / "tests" / "corpus").glob("*/*/graph.pb")):
        yield path.read_bytes()
    for case in op_cases.all_op_cases():
        yield case.graph_bytes


def shapes_of(data: bytes) -> str | None:
    """What TensorFlow infers for a graph; None if it refuses the graph."""
    try:
        return imported(tf.GraphDef.FromString(data))
    except Exception:  # noqa: BLE001  (a case of an error, which is judged elsewhere)
        return None


def imported(definition: Any) -> str | None:
    try:
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(definition, name="")
            return ";".join(line(graph.get_operation_by_name(n.name)) for n in definition.node)
    except Exception:  # noqa: BLE001  (shapes that do not fit are ValueErrors, and so on)
        return None


def of_variants(case: Any) -> list[str]:
    """What TensorFlow infers for the variants of a case."""
    original = tf.GraphDef.FromString(case.graph_bytes)
    definitions = []
    for promises in variants(case, original.node):
        definition = tf.GraphDef.FromString(case.graph_bytes)
        for node in definition.node:
            if node.name in promises:
                shape = tf.TensorShape(promises[node.name])
                node.attr["shape"].shape.CopyFrom(shape.as_proto())
        definitions.append(definition)
    if len(found := apart(definitions)) == len(definitions):
        return found
    return [(apart([one]) or ["x"])[0] for one in definitions]


def apart(definitions: list[Any]) -> list[str]:
    """What is inferred in a process of its own, since some shape functions bring it down."""
    if not definitions:
        return []
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, json.dumps([imported(one) or "!" for one in definitions]).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answers:
        answer = answers.read().decode()
    os.waitpid(child, 0)
    return json.loads(answer) if answer else []


def line(operation: Any) -> str:
    return "|".join(text(output.shape) for output in operation.outputs)


def text(shape: Any) -> str:
    if shape.rank is None:
        return "*"
    return ",".join("?" if size is None else str(size) for size in shape.as_list()) or "-"


def main() -> None:
    found = {hashlib.sha256(data).hexdigest()[:16]: shapes_of(data) for data in graphs()}
    known = {key: value for key, value in sorted(found.items()) if value is not None}
    asked = {str(case): of_variants(case) for case in op_cases.all_op_cases()}
    varied = {name: found for name, found in asked.items() if found}
    everything = {"tensorflow": tf.__version__, "shapes": known, "variants": varied}
    body = json.dumps(everything, indent=0).encode()
    target = ROOT / "tests" / "shapes" / "recorded.json.gz"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(gzip.compress(body, 9, mtime=0))
    print(f"{len(known)} graphs, {len(found) - len(known)} refused, {target.stat().st_size} bytes")
    every = [one for found in varied.values() for one in found]
    print(f"{len(every)} variants of {len(varied)} cases, {every.count('!')} refused")


if __name__ == "__main__":
    main()
