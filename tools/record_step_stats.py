"""Ask TensorFlow which step statistics it fills for the graph of ``tests/tracing/traced_graph.py``.

    python tools/record_step_stats.py

Writes ``tests/tracing/recorded.json``: what does not depend on the clock, by device.  Needs
TensorFlow.  Graph rewriting is off, so that both run the same nodes.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

import tensorflow as tensorflow_2  # noqa: E402
from tensorflow.core.protobuf import rewriter_config_pb2  # noqa: E402

from tracing.traced_graph import FEEDS, FETCHES, traced_graph  # noqa: E402

tf = tensorflow_2.compat.v1


def main() -> None:
    proto = tf.GraphDef.FromString(traced_graph().SerializeToString())
    # The operators of today, as loaded graphs of today have them.
    config = tf.ConfigProto(device_count={"CPU": 2}, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.CopyFrom(
        rewriter_config_pb2.RewriterConfig(disable_meta_optimizer=True)
    )
    config.graph_options.optimizer_options.opt_level = -1
    metadata = tf.RunMetadata()
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(proto, name="")
        with tf.Session(graph=graph, config=config) as session:
            session.run("init")
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            session.run(list(FETCHES), FEEDS, options=options, run_metadata=metadata)
    found = {stats.device: [_node(n) for n in stats.node_stats] for stats in _devices(metadata)}
    path = ROOT / "tests" / "tracing" / "recorded.json"
    rows = {d: sorted(nodes, key=json.dumps) for d, nodes in found.items()}
    line = ",\n"  # one for each record
    parts = [f"{json.dumps(d)}: [\n{line.join(map(json.dumps, n))}\n]" for d, n in rows.items()]
    path.write_text("{\n" + line.join(parts) + "\n}\n", "utf-8")


def _devices(metadata: Any) -> Any:
    return sorted(metadata.step_stats.dev_stats, key=lambda d: d.device)


def _node(node: Any) -> dict[str, Any]:
    outputs = []
    for output in node.output:
        described = output.tensor_description
        allocation = described.allocation_description
        sizes = [dim.size for dim in described.shape.dim]
        row = [output.slot, described.dtype, sizes, allocation.requested_bytes]
        outputs.append([*row, bool(allocation.allocated_bytes)])
    return {
        "name": node.node_name,
        "label": node.timeline_label,
        "outputs": outputs,
        "memory": [[m.total_bytes, m.peak_bytes, m.live_bytes] for m in node.memory],
        "persistent": node.memory_stats.persistent_memory_size,
    }


main()
