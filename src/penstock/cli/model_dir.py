"""SavedModels on the command line: the options that name one, and one of its signatures.

In:   paths and options.
Out:  whether a path is that of a SavedModel; tags; the signature that is meant.
Not:  runs nothing.

The options are those of TensorFlow's ``saved_model_cli``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import click

from penstock.defs.file_kinds import SAVED_MODEL, kind_of_folder
from penstock.errors import NotFoundError
from penstock.printable import printable
from penstock.saved_model.meta_graph import parse_tags

_Signature = TypeVar("_Signature")
_DEFAULT = "serving_default"


def dir_option(command: Any) -> Any:
    """Add ``--dir``."""
    return click.option(
        "--dir",
        "model_dir",
        type=click.Path(exists=True),
        metavar="FOLDER",
        help="A SavedModel, instead of GRAPH.",
    )(command)


def tag_set_option(command: Any) -> Any:
    """Add ``--tag_set``."""
    return click.option(
        "--tag_set", "--tag-set", metavar="TAGS", help="Of a SavedModel: its graph with these tags."
    )(command)


def signature_option(command: Any) -> Any:
    """Add ``--signature_def``."""
    return click.option(
        "--signature_def", "--signature-def", metavar="NAME", help="Of a SavedModel: a signature."
    )(command)


def model_given(graph: str | None, model_dir: str | None) -> str | None:
    """The SavedModel that a command is about; None if it is about a graph.

    Raises:
        click.UsageError: both or neither were given, or ``--dir`` is no SavedModel's folder.

    """
    if (graph is None) == (model_dir is None):
        raise click.UsageError("give either GRAPH or --dir FOLDER")
    if model_dir is not None and not is_saved_model(model_dir):
        raise click.UsageError(f"--dir {model_dir}: there is no saved_model.pb")
    path = model_dir or graph
    return path if path is not None and is_saved_model(path) else None


def is_saved_model(path: str) -> bool:
    """Whether a path is that of a SavedModel: of its folder, or of the file in it."""
    if os.path.basename(path) in ("saved_model.pb", "saved_model.pbtxt"):
        return os.path.isfile(path)
    return os.path.isdir(path) and kind_of_folder(os.listdir(path)) is SAVED_MODEL


def parsed_tags(tag_set: str | None) -> Sequence[str] | None:
    """The tags of ``--tag_set``; "" is the empty set, and None no choice."""
    return None if tag_set is None else parse_tags(tag_set)


def signature_in(signatures: Mapping[str, _Signature], name: str | None) -> tuple[str, _Signature]:
    """The signature that is meant: the one that is named, the usual one, or the only one.

    Raises:
        NotFoundError: there is none of the name.
        click.UsageError: one must be named.

    """
    if name is None and (_DEFAULT in signatures or len(signatures) == 1):
        name = _DEFAULT if _DEFAULT in signatures else next(iter(signatures))
    listed = ", ".join(signatures) or "none"
    if name is None:
        raise click.UsageError(f"--signature_def must say which is meant, of {printable(listed)}")
    if name not in signatures:
        raise NotFoundError(f"The model has no signature {name!r}; it has {listed}")
    return name, signatures[name]
