"""``load``, and what it returns.

In:   the path of a SavedModel, and tags.
Out:  ``LoadedModel``: signatures, functions, variables; a session.
Not:  knows nothing of how either generation of models works; see ``object_model`` and
      ``graph_model``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

from penstock.config import Config
from penstock.core.collector import collector_paused
from penstock.core.values import Value
from penstock.errors import NotFoundError
from penstock.saved_model.folder import ModelFolder
from penstock.saved_model.function_graph import FunctionGraph
from penstock.saved_model.functions import Functions
from penstock.saved_model.graph_model import GraphVariables, offers_of_graph, open_graph
from penstock.saved_model.meta_graph import choose, tags_of
from penstock.saved_model.object_model import offers_of, open_objects
from penstock.saved_model.signatures import Signatures
from penstock.session import Session


class LoadedModel:
    """A SavedModel, ready to be called; see ``load``.  ``close`` it, or use it in a ``with``.

    May be called from any number of threads at once.  It pickles as path and fingerprint, and
    opens itself again where it is unpickled; what was assigned to variables does not travel.
    """

    #: The absolute path of its folder.
    path: str
    #: The tags of the graph that was loaded, in alphabetical order.
    tags: tuple[str, ...]
    #: What it offers: callables of tensors by name.
    signatures: Signatures
    #: The functions of its objects by their paths, such as ``encoder.call``; none of a model of
    #: TensorFlow 1.
    functions: Mapping[str, Any]
    #: Its variables' values by their paths, as they are now; of TensorFlow 1, by name.
    variables: Mapping[str, Value]
    #: The session that all calls run in.
    session: Session

    def __init__(self, path: str | os.PathLike[str], tags: Any, config: Any) -> None:
        self._config: Final = Config.of(config)
        self._folder: Final = ModelFolder(path)
        self.path = self._folder.path
        meta_graph = choose(self._folder.read(), tags, self.path)
        self.tags = tags_of(meta_graph)
        #: What was loaded, and its functions if it has objects; for ``freeze``.
        self.meta_graph: Final = meta_graph
        self.function_graph: FunctionGraph | None = None
        if meta_graph.object_graph_def.nodes:
            self._open_objects(meta_graph)
        else:
            self._open_graph(meta_graph)

    def _open_graph(self, meta_graph: Any) -> None:
        self.session, graph = open_graph(meta_graph, self._folder, self._config)
        self.variables = GraphVariables(self.session, graph)
        self.functions = {}
        with self._closed_by_errors():
            offers = offers_of_graph(meta_graph, self.session)
        self.signatures = Signatures(offers, self._what_else)

    def _open_objects(self, meta_graph: Any) -> None:
        graph = open_objects(meta_graph, self._folder, self._config)
        self.function_graph = graph
        self.session = graph.session
        self.variables = graph.variables
        self.functions = Functions(graph)
        with self._closed_by_errors():
            offers = offers_of(graph, meta_graph)
        self.signatures = Signatures(offers, self._what_else)

    @contextmanager
    def _closed_by_errors(self) -> Iterator[None]:
        """Let nothing stay open of a model that cannot be loaded."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _what_else(self) -> str:
        paths = list(self.functions)
        return f"functions that can be called: {', '.join(paths)}" if paths else ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model's own ``__call__``, as ``functions["__call__"]`` does."""
        if "__call__" not in self.functions:
            raise NotFoundError(
                f"The model {self.path} cannot be called itself",
                next_step=f"it has the signatures {', '.join(self.signatures) or 'none'}; "
                f"{self._what_else()}",
            )
        return self.functions["__call__"](*args, **kwargs)

    def close(self) -> None:
        """Give up the session, variables and tables.  May be called twice."""
        self.session.close()

    def __enter__(self) -> LoadedModel:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path, self.tags, self._folder.fingerprint(), self._config)

    def __repr__(self) -> str:
        return (
            f"<SavedModel {self.path} [{','.join(self.tags)}]: "
            f"signatures {', '.join(self.signatures) or 'none'}; {len(self.functions)} functions>"
        )


@collector_paused
def load(
    path: str | os.PathLike[str], tags: str | Iterable[str] | None = None, *, config: Any = None
) -> LoadedModel:
    """Open a SavedModel of either generation.

    Variables are restored when a function first needs them.

    Args:
        path: the folder with ``saved_model.pb`` in it, or that file.
        tags: which of the model's graphs is meant: its tags, in any order, or one text with commas
            between them.  None means the only graph that there is.
        config: a ``Config``, or a ConfigProto as message or bytes.

    Raises:
        NotFoundError: there is no SavedModel, or none of its graphs has these tags; the error
            lists those that there are.
        InvalidArgumentError: the model has several graphs, and no tags were given.
        DataLossError: it is damaged.
        UnimplementedError: what fills its tables needs ops that have no kernels; all are listed.

    """
    return LoadedModel(path, tags, config)


def _reopen(path: str, tags: tuple[str, ...], fingerprint: str, config: Config) -> LoadedModel:
    ModelFolder(path).check(fingerprint)
    return LoadedModel(path, tags, config)
