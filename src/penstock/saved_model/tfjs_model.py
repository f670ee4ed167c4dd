"""``load_tfjs``: a graph model of TensorFlow.js, ready to be called.

In:   the path of ``model.json``, or of its folder.
Out:  ``TfjsModel``: signatures and a session, with tables filled.
Not:  reads no file itself, ``formats.tfjs`` does.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Final

from penstock.config import Config
from penstock.core.collector import collector_paused
from penstock.formats import tfjs
from penstock.graph.import_graph_def import graph_from_def
from penstock.saved_model.graph_model import init_op, offers_of_graph
from penstock.saved_model.signatures import Signatures
from penstock.session import Session
from penstock.session.missing import check_nodes


class TfjsModel:
    """A graph model of TensorFlow.js; see ``load_tfjs``.  ``close`` it, or use it in a ``with``.

    May be called from any number of threads at once.
    """

    def __init__(self, path: str, meta_graph: Any, config: Config) -> None:
        #: Where it was read from.
        self.path: Final = path
        #: The session that all calls run in.
        self.session: Final = Session(graph_from_def(meta_graph.graph_def), config=config)
        #: What it offers: ``serving_default``, a callable of tensors by name.
        self.signatures: Final = Signatures(
            offers_of_graph(meta_graph, self.session), lambda: "nothing else"
        )

    def __call__(self, /, **given: Any) -> dict[str, Any]:
        """Call its signature: arrays by the names of inputs in, and of outputs out."""
        return self.signatures[tfjs.SIGNATURE](**given)

    def close(self) -> None:
        """Give up the session and its tables.  May be called twice."""
        self.session.close()

    def __enter__(self) -> TfjsModel:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        (signature,) = self.signatures.values()
        return f"<TfjsModel {self.path}: {signature}>"


@collector_paused
def load_tfjs(path: str | os.PathLike[str], *, config: Any = None) -> TfjsModel:
    """Open a graph model of TensorFlow.js.

    Args:
        path: ``model.json``, by whatever name, or the folder that it is in.
        config: a ``Config``, or a ConfigProto as message or bytes.

    Raises:
        NotFoundError: a file is missing.
        InvalidArgumentError: it is no graph model, or names a file outside of its folder.
        UnimplementedError: it is a layers model; or what fills its tables needs ops that have no
            kernels, all of which are listed.
        DataLossError: a weight file is too short.

    """
    meta_graph = tfjs.read(path)
    init = init_op(meta_graph)
    check_nodes(meta_graph.graph_def, [init] if init else [])
    model = TfjsModel(os.fsdecode(path), meta_graph, Config.of(config))
    try:
        if init:
            model.session.run(init)
    except BaseException:
        model.close()
        raise
    return model
