"""Ask a cluster what ``steps.json`` says, and print the answers; with TensorFlow or Penstock.

    python client.py tf|ps TARGET

One line of JSON per step: the values, or the error's code and node.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


def session_of(kind: str, target: str) -> tuple[Any, Any, Any]:
    """A session, the class of errors, and the class of run options."""
    if kind == "tf":
        import tensorflow as tf

        tf1 = tf.compat.v1
        tf1.disable_eager_execution()
        graph_def = tf1.GraphDef.FromString((HERE / "graph.pb").read_bytes())
        tf.import_graph_def(graph_def, name="")
        return tf1.Session(target), tf.errors.OpError, tf1.RunOptions
    import penstock as ps

    session = ps.Session(str(HERE / "graph.pb"), target=target)
    return session, ps.errors.OpError, ps.RunOptions


def shown(value: Any) -> Any:
    """A value that JSON can hold, type and shape included."""
    array = np.asarray(value)
    if array.dtype == object:
        content = [base64.b64encode(item).decode() for item in array.flat]
    else:
        content = [base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()]
    return [str(array.dtype), list(array.shape), content]


def code_of(error: Any) -> tuple[int, str | None]:
    """The canonical code of an error of either library, and the node that it names."""
    if hasattr(error, "node_name"):
        return int(error.code), error.node_name
    return error.error_code, error.op.name if error.op is not None else None


def main() -> None:
    """Ask, and print."""
    kind, target = sys.argv[1:3]
    session, error_class, options_class = session_of(kind, target)
    for step in json.loads((HERE / "steps.json").read_text()):
        feeds = {"x:0": np.float32(step["feed"])} if "feed" in step else {}
        options = options_class(timeout_in_ms=step["timeout"]) if "timeout" in step else None
        fetches = [*step.get("fetch", ()), *step.get("run", ())]
        try:
            values = session.run(fetches, feeds, options)
        except error_class as error:
            print(json.dumps({"error": code_of(error)}), flush=True)
            print(error, file=sys.stderr)
        except (ValueError, KeyError):  # TensorFlow's client knows what the graph has not
            print(json.dumps({"error": [5, None]}), flush=True)
        else:
            print(json.dumps([shown(v) for v in values if v is not None]), flush=True)
    session.close()


if __name__ == "__main__":
    main()
