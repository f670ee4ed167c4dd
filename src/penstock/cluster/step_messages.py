"""A step's feeds and results, as its client writes and reads them.

In:   what the caller feeds; the master's answer.
Out:  messages by endpoint; values by endpoint, and what the run recorded.
Not:  calls nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.config import RunMetadata
from penstock.core.values import KEPT_TENSOR, Value, dtype_of
from penstock.defs.schema import Message
from penstock.defs.tensors import from_proto, to_proto
from penstock.errors import InternalError
from penstock.session.feeds import Feeds
from penstock.session.handles import handle_in


def feed_messages(feeds: Feeds, feed_dict: Mapping[Any, Any]) -> dict[str, Message]:
    """Feeds by endpoint; the handle of a tensor that the server keeps stands for that.

    Raises:
        InvalidArgumentError: like ``Feeds.values``.

    """
    handles = {key: handle_in(value) for key, value in feed_dict.items()}
    kept = {
        key: handle
        for key, handle in handles.items()
        if handle is not None and handle.container == KEPT_TENSOR
    }
    plain = {key: value for key, value in feed_dict.items() if key not in kept}
    fed = {name: to_proto(value, dtype_of(value)) for name, value in feeds.values(plain).items()}
    return {**fed, **{feeds.endpoint(key): to_proto(handle) for key, handle in kept.items()}}


def fetched_values(answer: Any, wanted: Sequence[str]) -> dict[str, Value]:
    """Fetched values by endpoint; raises InternalError if one is missing."""
    values = {item.name: from_proto(item.tensor) for item in answer.tensor}
    missing = [name for name in wanted if name not in values]
    if missing:
        raise InternalError(f"The server's answer has no value for {missing[0]}")
    return values


def fill(metadata: RunMetadata | None, answer: Any) -> None:
    """Put what a run recorded where the caller wants it."""
    if metadata is not None and answer.HasField("metadata"):
        metadata.step_stats = answer.metadata.step_stats
        metadata.cost_graph = answer.metadata.cost_graph
        metadata.partition_graphs = list(answer.metadata.partition_graphs)
