"""``dump_all``: every value of a step, on disk.

In:   a session or a graph, fetches and feeds, and a path.
Out:  a checkpoint, whose variables are the values by key: TensorFlow reads it as well.
Not:  keeps no dead values, handles and references.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from penstock import checkpoint
from penstock.comparison.collected import MAX_BYTES, alive, collect


def dump_all(
    graph: Any,
    fetches: Any,
    path: str | os.PathLike[str],
    feed_dict: Mapping[Any, Any] | None = None,
    *,
    max_bytes: int = MAX_BYTES,
) -> int:
    """Run a step node by node, and write what each node gives.

    Args:
        graph: a ``Session``, which has its own options and variables; or a graph in any form that
            one takes, which is run as it was written.
        fetches: like ``Session.run``'s.
        path: the prefix of the checkpoint; ``ps.checkpoint.load`` reads it, ``penstock checkpoint
            list`` lists it, ``compare`` compares with it.
        feed_dict: like ``Session.run``'s.
        max_bytes: of all values together.

    Returns:
        How many values were written: outputs of nodes, called ``node:slot``, and
        ``node:slot@loop[iteration]`` inside of loops.

    Raises:
        ResourceExhaustedError: there are more bytes.
        OpError: the step fails, or the file system refuses.

    """
    values = alive(collect(graph, fetches, feed_dict, max_bytes=max_bytes))
    checkpoint.save(os.fspath(path), {key: one.value for key, one in values.items()})
    return len(values)
