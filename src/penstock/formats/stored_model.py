"""What every reader of a format ends in: a model as it is stored.

In:   graphs with signatures, and the files beside them.
Out:  ``StoredModel``; of its graphs, the one that is meant.
Not:  opens nothing; what is done with it, ``saved_model`` knows.

The common form is TensorFlow's own: a MetaGraphDef has a graph, signatures, and the names of what
restores and initializes.  Tags are a set: their order and repetitions mean nothing, and all must be
there, no others.  The empty set is one like any other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.core.files import FileSystem
from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.formats.model_files import checkpoint_files

#: The signature that is meant where none is named.
DEFAULT_SIGNATURE: Final = "serving_default"
#: TensorFlow Serving's name of what a signature is usually for.
PREDICT: Final = "tensorflow/serving/predict"
#: A signature that is none: what it names initializes tables and the like.
INIT_SIGNATURE: Final = "__saved_model_init_op"
#: Another one, of what trains.
TRAIN_SIGNATURE: Final = "__saved_model_train_op"
#: The tag of a graph that answers.
SERVE: Final = "serve"
#: In a path of the model's own: the folder around, the root of a file system, a drive, an address,
#: and what no file can be called.
_OUTSIDE: Final = re.compile(
    r"(^|[/\\])\.\.([/\\]|$)|^[/\\]|^[A-Za-z]:|^[A-Za-z][A-Za-z0-9+.-]*://|\0"
)
_FILES: Final = FileSystem()


@dataclass(frozen=True, slots=True, kw_only=True)
class Companions:
    """The files of a model, beside its graphs; all paths are absolute."""

    #: The files that say which model it is; those that are not there count as well.
    files: tuple[str, ...] = ()
    #: What the names of the checkpoint's files begin with; empty if there is no checkpoint.
    checkpoint: str = ""
    #: The folder with files that the graphs read; empty if there is none.
    assets: str = ""

    def asset(self, filename: str) -> str:
        """The absolute path of an asset.

        A link that lies there may lead elsewhere: whoever put the model there has put it, too.

        Raises:
            InvalidArgumentError: the name, which is the model's text, leads out of the folder.

        """
        if not self.assets or not is_inside(filename):
            raise InvalidArgumentError(
                f"the asset {filename!r} is not in the model's folder {self.assets}",
                next_step="such a path may lead to any file of the machine: do not trust the model",
            )
        return os.path.join(self.assets, filename)

    def all_files(self) -> list[str]:
        """The files that say which model it is, those of its checkpoint, and its assets."""
        found = [*self.files]
        if self.checkpoint:
            found += checkpoint_files(self.checkpoint)
        return [*found, *_FILES.files_below(self.assets)] if self.assets else found


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    """A model as it is stored."""

    #: What it is, with its article, such as ``a SavedModel``.
    what: str
    #: The absolute path of its file or folder; what to call it if it has none.
    path: str
    #: At least one.
    meta_graphs: Sequence[Any]
    companions: Companions
    #: Whether tables are filled by the nodes of the collection ``table_initializer``, where no
    #: node initializes all.
    fills_by_collection: bool = False

    def graph_of(self, tags: str | Iterable[str] | None) -> Any:
        """The MetaGraphDef with exactly these tags.

        Args:
            tags: tags, or one text with commas between them; None for the only graph there is.

        Raises:
            InvalidArgumentError: no tags were given, and there are several graphs.
            NotFoundError: no graph has these tags.

        """
        if tags is None:
            if len(self.meta_graphs) == 1:
                return self.meta_graphs[0]
            raise InvalidArgumentError(
                f"{self.path} has {len(self.meta_graphs)} graphs, so tags must say which one is "
                "meant",
                next_step=f"give the tags of one: {self._listed()}",
            )
        wanted = parse_tags(tags)
        for meta_graph in self.meta_graphs:
            if tags_of(meta_graph) == wanted:
                return meta_graph
        raise NotFoundError(
            f"MetaGraphDef associated with tags {_shown(wanted)} could not be found in {self.path}",
            next_step=f"it has {self._listed()}",
        )

    @property
    def is_bare(self) -> bool:
        """Whether it is one graph, and nothing says what it takes and gives."""
        (first, *others) = self.meta_graphs
        return not (others or signature_names(first) or first.object_graph_def.nodes)

    def _listed(self) -> str:
        return ", ".join(_shown(tags_of(meta_graph)) for meta_graph in self.meta_graphs)


def is_inside(path: str) -> bool:
    """Whether a path of a model's own, which is a stranger's text, stays in its folder."""
    return bool(path) and not _OUTSIDE.search(path)


def signature_names(meta_graph: Any) -> list[str]:
    """The signatures of a graph that are meant for callers, in alphabetical order."""
    inner = (INIT_SIGNATURE, TRAIN_SIGNATURE)
    return sorted(name for name in meta_graph.signature_def if name not in inner)


def tags_of(meta_graph: Message) -> tuple[str, ...]:
    """The tags of one graph, in alphabetical order."""
    return tuple(sorted(set(meta_graph.meta_info_def.tags)))


def parse_tags(tags: str | Iterable[str]) -> tuple[str, ...]:
    """Tags in alphabetical order, of a collection or of a text with commas."""
    texts = tags.split(",") if isinstance(tags, str) else tags
    return tuple(sorted({tag.strip() for tag in texts} - {""}))


def _shown(tags: tuple[str, ...]) -> str:
    return repr(list(tags))
