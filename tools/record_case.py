"""Ask TensorFlow for the answers of the cases in ``tests/cases_src``.

    python tools/record_case.py            all families
    python tools/record_case.py math nn    some

Each family becomes one file, ``tests/op_cases/<family>.json``, with one line per case.
Needs TensorFlow.  Graph rewriting and oneDNN are off, so that kernels are asked as they are.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import re
import sys
import zlib
from pathlib import Path
from typing import Any

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

import numpy as np  # noqa: E402
import tensorflow as tensorflow_2  # noqa: E402

from cases_src.casebook import Case, Steps, dtype_name, numbered, q  # noqa: E402

tf = tensorflow_2.compat.v1
#: TensorFlow's names of error codes.
_CODES = {
    value: name
    for name, value in vars(tf.errors).items()
    if name.isupper() and isinstance(value, int)
}
#: What the sources expect, and TensorFlow does otherwise.
complaints: list[str] = []


def main(families: list[str]) -> None:
    sources = ROOT / "tests" / "cases_src"
    known = sorted(p.stem for p in sources.glob("*.py") if p.stem not in ("__init__", "casebook"))
    for family in families or known:
        cases = importlib.import_module(f"cases_src.{family}").CASES
        lines = [json.dumps(record(case, name)) for name, case in numbered(cases).items()]
        text = "[\n" + ",\n".join(lines) + "\n]\n"
        (ROOT / "tests" / "op_cases" / f"{family}.json").write_text(text, "utf-8")
        print(f"{family}: {len(lines)} cases, {len(text) // 1024} KiB")
    sys.exit("\n".join(complaints))


def record(case: Case, name: str) -> dict[str, Any]:
    """Build a case's graph, run its steps in TensorFlow, and write everything down."""
    with tf.Graph().as_default() as graph:
        if case.producer:
            start_version(case.producer)
        try:
            made = case.build(tf, case)
        except Exception as error:  # noqa: BLE001  (reported at the end)
            complaints.append(f"{name} cannot be built: {error}")
            return {"name": name}
    steps = made if isinstance(made, Steps) else Steps((({}, made),) * case.runs)
    graph_def = graph.as_graph_def()
    with tf.Session(graph=graph, config=config(case.cpus)) as session:
        recorded = [run(session, case, feeds, flat(fetches)) for feeds, fetches in steps.runs]
    if not case.says and "error" in recorded[0]:
        complaints.append(f"{name} gives an error, and should say nothing")
    if case.says and not any("error" in step for step in recorded):
        complaints.append(f"{name} gives values, and should say {case.says!r}")
    result: dict[str, Any] = {"name": name}
    if case.tol != (1e-5, 1e-6):
        result["tol"] = case.tol
    if case.cpus != 1:
        result["cpus"] = case.cpus
    result["ops"] = sorted(ops_of(graph_def))
    result["steps"] = recorded
    result["graph"] = packed(graph_def.SerializeToString(deterministic=True))
    return result


def start_version(producer: int) -> None:
    """Make the graph one of an old version: it takes over that of the first it imports."""
    old = tf.GraphDef()
    old.versions.producer = producer
    old.node.add(name="version", op="NoOp")
    tf.import_graph_def(old, name="")


def config(cpus: int) -> Any:
    proto = tf.ConfigProto(intra_op_parallelism_threads=1, device_count={"CPU": cpus})
    proto.graph_options.rewrite_options.disable_meta_optimizer = True
    proto.graph_options.optimizer_options.opt_level = -1
    return proto


def options(cpus: int) -> Any:
    """With several devices, those that let them exchange values, whatever ops the graph has."""
    made = tf.RunOptions()
    made.experimental.collective_graph_key = int(cpus > 1)
    return made


def flat(fetches: Any) -> list[Any]:
    """Tensors and operations in a nesting of lists, tuples and structures."""
    return [item for item in tensorflow_2.nest.flatten(fetches) if item is not None]


def run(session: Any, case: Case, feeds: Any, fetches: list[Any]) -> dict[str, Any]:
    tensors = [item for item in fetches if isinstance(item, tf.Tensor)]
    fetched = [t for t in tensors if t.dtype.base_dtype not in (tf.resource, tf.variant)]
    targets = [item for item in fetches if not any(item is tensor for tensor in fetched)]
    step: dict[str, Any] = {
        "feeds": {tensor.name: stored(value) for tensor, value in feeds.items()},
        "fetches": [tensor.name for tensor in fetched],
        "targets": sorted({getattr(item, "op", item).name for item in targets}),
    }
    try:
        operations = targets and [getattr(item, "op", item) for item in targets]
        values = session.run([fetched, operations], feeds, options=options(case.cpus))[0]
    except tf.errors.OpError as error:
        said = re.split(r"\nNode: '.*'\n", error.message)[-1].partition("\n\t [[")[0]
        if case.says.lower() not in said.lower():
            complaints.append(f"{case.name} says {said!r}, not {case.says!r}")
        step["error"] = _CODES[error.error_code]
        step |= {"also": case.also} if case.also else {}
        return step | ({"says": case.says} if case.says else {})
    step["values"] = [stored(v, t.dtype) for v, t in zip(values, fetched, strict=True)]
    return step


def stored(value: Any, dtype: Any = None) -> dict[str, Any]:
    """An array as JSON: type, shape, and its bytes or texts."""
    if dtype is not None and dtype.base_dtype == tf.string:
        value = np.asarray(value, object)
    if dtype is not None and dtype.base_dtype.is_quantized:
        value = q(dtype.base_dtype.name, value)
    array = np.asarray(value)
    if array.dtype.kind == "S":
        array = array.astype(object)
    name = dtype_name(array)
    if name == "string":
        data: Any = [base64.b64encode(item).decode() for item in array.flat]
    else:
        data = packed(np.ascontiguousarray(array).tobytes())
    return {"dtype": name, "shape": list(array.shape), "data": data}


def packed(data: bytes) -> str:
    """Bytes as text: ``z`` and compressed if that is shorter, else ``b``."""
    short = zlib.compress(data, 9)
    kind, chosen = ("z", short) if len(short) < len(data) else ("b", data)
    return kind + base64.b64encode(chosen).decode()


def ops_of(graph_def: Any) -> set[str]:
    ops = {node.op for node in graph_def.node}
    for function in graph_def.library.function:
        ops |= {node.op for node in function.node_def}
    return ops


if __name__ == "__main__":
    main(sys.argv[1:])
