"""``load_model``, and what it returns.

In:   the path of a model, and tags.
Out:  ``LoadedModel``: signatures, functions, variables; a session; its ``Recipe``, which travels.
Not:  knows no format of files, which ``formats`` does, and nothing of how either generation of
      models works; see ``object_model`` and ``graph_model``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

from penstock.checkpoint import load as open_checkpoint
from penstock.config import Config
from penstock.core.collector import collector_paused
from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from penstock.formats.model_files import Fingerprint, ModelFiles, check_files, checkpoint_files
from penstock.formats.read_model import read_model
from penstock.formats.stored_model import DEFAULT_SIGNATURE, StoredModel, tags_of
from penstock.saved_model.function_graph import FunctionGraph
from penstock.saved_model.functions import Functions
from penstock.saved_model.graph_model import GraphVariables, offers_of_graph, open_graph
from penstock.saved_model.model_html import model_html
from penstock.saved_model.object_model import offers_of, open_objects
from penstock.saved_model.signatures import Signatures
from penstock.session import Session


@dataclass(frozen=True, slots=True)
class Recipe:
    """A model as it travels: where it is, and which it must be."""

    #: Absolute, and the same wherever it is opened.
    path: str
    fingerprint: Fingerprint
    tags: tuple[str, ...]
    #: The prefix of a checkpoint that was given beside the model; empty for the model's own.
    checkpoint: str
    config: Config

    def open(self, config: Config | None = None) -> LoadedModel:
        """Load the model, after a look at its files.

        Args:
            config: the session's, in place of the model's.

        Raises:
            NotFoundError: it is not there.
            FailedPreconditionError: files of it hold something else; the error names them.
            OpError: like ``load_model``.

        """
        check_files(self.fingerprint, self.path)
        config = config or self.config
        stored = read_model(self.path)
        return LoadedModel(stored, self.tags, checkpoint=self.checkpoint, config=config)


class LoadedModel:
    """A model, ready to be called; see ``load_model``.  ``close`` it, or use it in a ``with``.

    May be called from any number of threads at once.  It pickles as path and fingerprint, and
    opens itself again where it is unpickled; what was assigned to variables does not travel.
    """

    #: What it is, with its article, such as ``a SavedModel``.
    what: str
    #: The absolute path of its folder, or of its file.
    path: str
    #: The tags of the graph that was loaded, in alphabetical order.
    tags: tuple[str, ...]
    #: What it offers: callables of tensors by name.
    signatures: Signatures
    #: The functions of its objects by their paths, such as ``encoder.call``; only models of
    #: TensorFlow 2 have some.
    functions: Mapping[str, Any]
    #: Its variables' values by their paths, as they are now; of a graph, by name.
    variables: Mapping[str, Value]
    #: The session that all calls run in; of a graph, any of its tensors can be fetched.
    session: Session

    def __init__(
        self, stored: StoredModel, tags: Any = None, *, checkpoint: str = "", config: Any = None
    ) -> None:
        """Open what was read; ``load_model`` reads it as well."""
        self._stored: Final = stored
        self._config: Final = Config.of(config)
        self._checkpoint: Final = open_checkpoint(checkpoint).prefix if checkpoint else ""
        self.what, self.path = stored.what, stored.path
        self._files: Final = _files_of(stored, self._checkpoint)
        meta_graph = stored.graph_of(tags)
        self.tags = tags_of(meta_graph)
        # For ``freeze``: what was loaded, and its functions if it has objects.
        self.meta_graph: Final = meta_graph
        self.fills_by_collection: Final = stored.fills_by_collection
        self.function_graph: FunctionGraph | None = None
        if meta_graph.object_graph_def.nodes:
            self._open_objects(meta_graph)
        else:
            self._open_graph(meta_graph)

    def _open_graph(self, meta_graph: Any) -> None:
        checkpoint = self._checkpoint or self._stored.companions.checkpoint
        self.session, graph = open_graph(meta_graph, self._stored, checkpoint, self._config)
        self.variables = GraphVariables(self.session, graph)
        self.functions = {}
        with self._closed_by_errors():
            offers = offers_of_graph(meta_graph, self.session)
        self.signatures = Signatures(offers, self._what_else)

    def _open_objects(self, meta_graph: Any) -> None:
        if self._checkpoint:
            raise InvalidArgumentError(
                f"{self.path} has objects, which have their values from its own checkpoint",
                next_step="load it without a checkpoint",
            )
        graph = open_objects(meta_graph, self._stored.companions, self._config)
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
        if self.functions:
            return f"functions that can be called: {', '.join(self.functions)}"
        if self.function_graph is None:
            return (
                "session.run fetches any tensor of the graph; penstock show lists the likely ones"
            )
        return ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model's own ``__call__``, as ``functions["__call__"]`` does.

        A model without one computes its signature ``serving_default``, or its only one: inputs by
        name in, a dictionary of outputs out.

        Raises:
            NotFoundError: there is nothing to call.

        """
        if "__call__" in self.functions:
            return self.functions["__call__"](*args, **kwargs)
        only = next(iter(self.signatures)) if len(self.signatures) == 1 else DEFAULT_SIGNATURE
        if only in self.signatures and not args:
            return self.signatures[only](**kwargs)
        raise NotFoundError(
            f"The model {self.path} cannot be called itself{' without names' * bool(args)}",
            next_step=f"it has the signatures {', '.join(self.signatures) or 'none'}; "
            f"{self._what_else()}",
        )

    def close(self) -> None:
        """Give up the session, variables and tables.  May be called twice."""
        self.session.close()

    def recipe(self) -> Recipe:
        """What opens the same model elsewhere, or says that it is not there; small.

        Raises:
            FailedPreconditionError: the model was loaded from bytes, or its files were changed
                since it was loaded.

        """
        if self._files is None:
            raise FailedPreconditionError(
                f"{self.path} was loaded from bytes, and other processes could not find it",
                next_step="write it into a file, and load that one",
            )
        fingerprint = self._files.fingerprint()
        return Recipe(self.path, fingerprint, self.tags, self._checkpoint, self._config)

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
        return _reopen, (self.recipe(),)

    def _repr_html_(self) -> str:
        title = f"{self.what.partition(' ')[2]} {self.path} [{','.join(self.tags)}]"
        return model_html(title, self.signatures, self.functions, self.variables)

    def __repr__(self) -> str:
        signatures = ", ".join(self.signatures) or "none"
        functions = f"; {len(self.functions)} functions" if self.functions else ""
        return (
            f"<{self.what.partition(' ')[2]} {self.path} [{','.join(self.tags)}]: "
            f"signatures {signatures}{functions}>"
        )


@collector_paused
def load_model(
    path: str | os.PathLike[str] | bytes,
    tags: str | Iterable[str] | None = None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    config: Any = None,
) -> LoadedModel:
    """Open a model, of whichever format: it is told by what is there, not by its name.

    A SavedModel of either generation, a model of Keras (``.keras``, ``.h5``), a graph model of
    TensorFlow.js, a ``.meta`` file with its checkpoint, a module of TensorFlow 1 Hub, a GraphDef.

    Variables are restored when a function first needs them; those of a graph of TensorFlow 1, which
    has none, at once.

    Args:
        path: the model's folder, or its file; the prefix of a checkpoint that has a ``.meta`` file;
            or the content of a file.
        tags: which of a SavedModel's graphs is meant: its tags, in any order, or one text with
            commas between them.  None means the only graph that there is.
        checkpoint: the values of the variables of a graph, instead of those beside it: a prefix, or
            a folder, for the latest checkpoint in it.
        config: a ``Config``, or a ConfigProto as message or bytes.

    Raises:
        NotFoundError: there is no model, or no checkpoint; or none of its graphs has these tags:
            the error lists those that there are.
        InvalidArgumentError: what is there is no model; or it has several graphs, and no tags were
            given.
        DataLossError: it is damaged.
        UnimplementedError: it has parts that cannot be read; or what fills its tables needs ops
            that have no kernels: all are listed.

    """
    given = "" if checkpoint is None else os.fsdecode(checkpoint)
    return LoadedModel(read_model(path), tags, checkpoint=given, config=config)


def _files_of(stored: StoredModel, checkpoint: str) -> ModelFiles | None:
    """The files of a model, with those of a checkpoint beside its own; None if it has no file."""
    if not stored.companions.files:
        return None
    beside = checkpoint_files(checkpoint) if checkpoint else ()
    return ModelFiles([*stored.companions.all_files(), *beside])


def _reopen(recipe: Recipe) -> LoadedModel:
    return recipe.open()
