"""Ask a server what ``steps.json`` says; as TensorFlow's client, if this is run as a program.

python client.py TARGET
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def ask(session: Any, errors: Any) -> None:
    """Ask all, whatever comes of it."""
    for step in json.loads((HERE / "steps.json").read_text()):
        feeds = {"x:0": float(step["feed"])} if "feed" in step else {}
        try:
            session.run([*step.get("fetch", ()), *step.get("run", ())], feeds)
        except errors as error:
            print(type(error).__name__, file=sys.stderr)


def main() -> None:
    """Ask with TensorFlow."""
    import tensorflow as tf

    tf1 = tf.compat.v1
    tf1.disable_eager_execution()
    graph = tf1.GraphDef.FromString((HERE / "graph.pb").read_bytes())
    tf.import_graph_def(graph, name="")
    session = tf1.Session(sys.argv[1])
    ask(session, tf.errors.OpError)
    session.close()


if __name__ == "__main__":
    main()
