"""Ask TensorFlow where the nodes of functions lie, on three CPUs.

    python tools/record_placements.py

Graphs come from ``tests/support/random_functions.py``, the answers go to
``tests/runtime/placements.json``.  Each graph is asked about twice: with all functions opened in
the graph, where the partition graphs tell, and with all of them called, where the step's
statistics do.  Needs TensorFlow.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

import tensorflow as tensorflow_2  # noqa: E402

from support.random_functions import CALLS, RandomFunctions  # noqa: E402

tf = tensorflow_2.compat.v1
COUNT = 40
#: A graph counts if so many nodes of its functions are seen.
LEAST = 8
FEEDS = {"p:0": True, "i:0": 1, "x:0": 2.0, "y:0": 3.0}
OFF, ON = 2, 1


def main() -> None:
    good = filter(tells_enough, map(record, itertools.count()))
    lines = [json.dumps(found) for found in itertools.islice(good, COUNT)]
    path = ROOT / "tests" / "runtime" / "placements.json"
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")
    print(f"{len(lines)} graphs, {path.stat().st_size // 1024} KiB")


def tells_enough(found: dict[str, Any]) -> bool:
    """Whether nodes lie on both CPUs, in the graph and in calls."""
    answers = [found["opened"], found["called"]]
    texts = ["" if isinstance(answer, str) else answer["places"] for answer in answers]
    return all(text.count(":") >= LEAST and ":0" in text and ":1" in text for text in texts)


def record(seed: int) -> dict[str, Any]:
    """One graph with both answers; an error is the name of its class."""
    made = RandomFunctions(seed).graph_def().SerializeToString(deterministic=True)
    graph_def = tf.GraphDef.FromString(made)
    graph = base64.b64encode(zlib.compress(made, 9)).decode()
    answers = {"opened": ask(graph_def, config(opens=True))}
    for nodes in (graph_def.node, *(f.node_def for f in graph_def.library.function)):
        for node in nodes:
            node.attr.pop("_lower_using_switch_merge", None)
    answers["called"] = ask(graph_def, config(opens=False))
    return {"seed": seed, "graph": graph} | answers


def config(*, opens: bool) -> Any:
    """Three CPUs, and nothing but functions is optimised, if at all."""
    made = tf.ConfigProto(device_count={"CPU": 3}, allow_soft_placement=True)
    options = made.graph_options
    options.optimizer_options.opt_level = -1
    rewrites = options.rewrite_options
    rewrites.disable_meta_optimizer = not opens
    for field in rewrites.DESCRIPTOR.fields:
        if field.enum_type is not None and field.enum_type.name == "Toggle":
            setattr(rewrites, field.name, OFF)
    rewrites.function_optimization = ON
    rewrites.memory_optimization = rewrites.NO_MEM_OPT
    rewrites.meta_optimizer_iterations = rewrites.ONE
    rewrites.min_graph_nodes = -1
    return made


def ask(graph_def: Any, config: Any) -> Any:
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    metadata = tf.RunMetadata()
    options = tf.RunOptions(output_partition_graphs=True, trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session(graph=graph, config=config) as session:
        try:
            session.run("init")
            value = session.run("out:0", FEEDS, options, metadata)
        except tf.errors.OpError as error:
            return type(error).__name__
    if config.graph_options.rewrite_options.disable_meta_optimizer:
        stats = metadata.step_stats.dev_stats
        found = ((node.node_name, d.device) for d in stats for node in d.node_stats)
    else:
        parts = metadata.partition_graphs
        found = ((node.name, node.device) for part in parts for node in part.node)
    names = {node.name for function in graph_def.library.function for node in function.node_def}
    # Some calls are opened in any case, and where the shape of an argument is taken depends on who
    # opened the call.
    sure = {name for name in names if not name.startswith((*CALLS, "shape"))}
    return {"value": float(value), "places": places(found, sure)}


def places(found: Iterable[tuple[str, str]], names: set[str]) -> str:
    """``name:number`` of each node of a body, with the number of its CPU."""
    known = {name.rpartition("/")[2]: device[-1] for name, device in found}
    return " ".join(f"{name}:{known[name]}" for name in sorted(names & known.keys()))


main()
