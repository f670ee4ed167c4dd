"""Write the whole networks among the benchmark graphs as models of ONNX, for ONNX Runtime.

    python -m benchmarks.make_onnx [NAME ...]

Needs TensorFlow and tf2onnx; an environment of its own will do, once.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
import tf2onnx

from benchmarks.cases import Case, all_cases


def convert(case: Case) -> int:
    """Write one, whose inputs and outputs are called as in the graph; how many bytes it has."""
    case.onnx_path.parent.mkdir(parents=True, exist_ok=True)
    tf2onnx.convert.from_graph_def(
        tf.compat.v1.GraphDef.FromString(case.graph_bytes),
        input_names=list(case.feeds),
        output_names=case.fetches,
        output_path=str(case.onnx_path),
    )
    return case.onnx_path.stat().st_size


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
