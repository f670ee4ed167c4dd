"""The graph that is meant, of those that a SavedModel has.

In:   a SavedModel message; tags.
Out:  one MetaGraphDef.
Not:  reads no file, and nothing of the graph.

Tags are a set: their order and repetitions mean nothing, and all must be there, no others.  The
empty set is one like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError, NotFoundError

#: A signature that is none: what it names initializes tables and the like.
INIT_SIGNATURE: Final = "__saved_model_init_op"
#: Another one, of what trains.
TRAIN_SIGNATURE: Final = "__saved_model_train_op"


def tag_sets(saved_model: Message) -> list[tuple[str, ...]]:
    """The sets of tags that there are, each in alphabetical order."""
    return [tags_of(meta_graph) for meta_graph in saved_model.meta_graphs]


def tags_of(meta_graph: Message) -> tuple[str, ...]:
    """The tags of one graph, in alphabetical order."""
    return tuple(sorted(set(meta_graph.meta_info_def.tags)))


def choose(saved_model: Message, tags: str | Iterable[str] | None, path: str) -> Any:
    """The MetaGraphDef with exactly these tags.

    Args:
        saved_model: the message; it has at least one graph.
        tags: tags, or one text with commas between them; None for the only graph there is.
        path: what to call the model in errors.

    Raises:
        InvalidArgumentError: no tags were given, and there are several graphs.
        NotFoundError: no graph has these tags.

    """
    graphs = saved_model.meta_graphs
    if tags is None:
        if len(graphs) == 1:
            return graphs[0]
        raise InvalidArgumentError(
            f"{path} has {len(graphs)} graphs, so tags must say which one is meant",
            next_step=f"give the tags of one: {_listed(saved_model)}",
        )
    wanted = parse_tags(tags)
    for meta_graph in graphs:
        if tags_of(meta_graph) == wanted:
            return meta_graph
    raise NotFoundError(
        f"MetaGraphDef associated with tags {_shown(wanted)} could not be found in {path}",
        next_step=f"it has {_listed(saved_model)}",
    )


def parse_tags(tags: str | Iterable[str]) -> tuple[str, ...]:
    """Tags in alphabetical order, of a collection or of a text with commas."""
    texts = tags.split(",") if isinstance(tags, str) else tags
    return tuple(sorted({tag.strip() for tag in texts} - {""}))


def _listed(saved_model: Message) -> str:
    return ", ".join(map(_shown, tag_sets(saved_model)))


def _shown(tags: tuple[str, ...]) -> str:
    return repr(list(tags))
