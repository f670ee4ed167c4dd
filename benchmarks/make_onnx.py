"""Write the whole networks among the benchmark graphs as models of ONNX, for ONNX Runtime.

    python -m benchmarks.make_onnx [NAME ...]

Needs TensorFlow and tf2onnx; an environment of its own will do, once.  ONNX has no Erfc, which
tf2onnx writes all the same: 1 - Erf, as exporters of other frameworks have it, stands for it.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import onnx
import tensorflow as tf
import tf2onnx

from benchmarks.cases import Case, all_cases


def convert(case: Case) -> int:
    """Write one, whose inputs and outputs are called as in the graph; how many bytes it has."""
    case.onnx_path.parent.mkdir(parents=True, exist_ok=True)
    model, _ = tf2onnx.convert.from_graph_def(
        tf.compat.v1.GraphDef.FromString(case.graph_bytes),
        input_names=list(case.feeds),
        output_names=case.fetches,
    )
    _write_erfc_out(model.graph)
    onnx.save(model, str(case.onnx_path))
    return case.onnx_path.stat().st_size


def _write_erfc_out(graph: Any) -> None:
    """Put ``1 - Erf`` in place of each Erfc."""
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        if node.op_type != "Erfc":
            graph.node.append(node)
            continue
        result, erf = node.output[0], f"{node.output[0]}/Erf"
        graph.node.append(onnx.helper.make_node("Erf", list(node.input), [erf]))
        graph.node.append(onnx.helper.make_node("Sub", ["one_for_erfc", erf], [result]))
    if len(graph.node) > len(nodes):
        one = np.ones((), np.float32)
        graph.initializer.append(onnx.numpy_helper.from_array(one, "one_for_erfc"))


def main() -> None:
    """Write all, or those of some names; what cannot be written is said."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="graphs to write; whole networks, if none")
    args = parser.parse_args()
    for case in all_cases(args.names):
        if args.names or case.group == "models":
            try:
                print(case.name, convert(case), "bytes", flush=True)
            except Exception as error:  # noqa: BLE001  (the others go on)
                print(case.name, "cannot be written:", error, flush=True)


if __name__ == "__main__":
    main()
