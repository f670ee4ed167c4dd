"""The model that a command is about: a path, or stdin.

In:   what stands for a model on the command line; the options that say which part of it is meant.
Out:  a ``StoredModel``; tags; the signature that is meant.
Not:  runs nothing, and judges no content; ``formats`` does.

The options are those of TensorFlow's ``saved_model_cli``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from penstock.cli.advice import in_options
from penstock.core.collector import collector_paused
from penstock.errors import NotFoundError, OpError
from penstock.formats.place import Place
from penstock.formats.read_model import is_known, read_place
from penstock.formats.stored_model import DEFAULT_SIGNATURE, StoredModel, parse_tags
from penstock.printable import printable

#: What stands for stdin.
STDIN: Final = "-"
#: A path, or stdin; what is there, is looked at when it is read.
MODEL_PATH: Final = click.Path(allow_dash=True)
_Signature = TypeVar("_Signature")


def model_argument(command: Any) -> Any:
    """Add GRAPH and ``--dir``, which mean the same."""
    option = click.option(
        "--dir",
        "model_dir",
        type=MODEL_PATH,
        metavar="MODEL",
        help="The same as GRAPH, as saved_model_cli has it.",
    )
    return click.argument("graph", type=MODEL_PATH, required=False)(option(command))


def tag_set_option(command: Any) -> Any:
    """Add ``--tag_set``."""
    return click.option(
        "--tag_set", "--tag-set", metavar="TAGS", help="Of a SavedModel: its graph with these tags."
    )(command)


def signature_option(command: Any) -> Any:
    """Add ``--signature_def``."""
    return click.option(
        "--signature_def", "--signature-def", metavar="NAME", help="Of a model: a signature."
    )(command)


def checkpoint_option(command: Any) -> Any:
    """Add ``--checkpoint``."""
    return click.option(
        "--checkpoint", metavar="PREFIX", help="Of a graph: restore its variables from there."
    )(command)


def path_given(graph: str | None, model_dir: str | None) -> str:
    """What a command is about; raises click.UsageError if that is nothing, or two things."""
    path = model_dir if graph is None else graph
    if path is None or (graph is not None and model_dir is not None):
        raise click.UsageError("give either GRAPH or --dir MODEL")
    return path


@collector_paused
def read_stored(path: str) -> StoredModel:
    """What is at a path, or on stdin.

    Raises:
        click.UsageError: nothing is there, or a folder without a model.
        OpError: what is there is no model, or cannot be read.

    """
    if path == STDIN:
        return read_place(Place.of_bytes(sys.stdin.buffer.read(), title_of(path)))
    place = Place.at(path)
    if place.content is not None or is_known(place):
        return read_place(place)
    try:
        return read_place(Place(path))  # which will fail, in the words that it was given
    except OpError as error:
        raise click.UsageError(error.worded(in_options(error.advice))) from None


def title_of(path: str) -> str:
    """What to call the model."""
    return "stdin" if path == STDIN else path


def parsed_tags(tag_set: str | None) -> Sequence[str] | None:
    """The tags of ``--tag_set``; "" is the empty set, and None no choice."""
    return None if tag_set is None else parse_tags(tag_set)


def signature_in(signatures: Mapping[str, _Signature], name: str | None) -> tuple[str, _Signature]:
    """The signature that is meant: the one that is named, the usual one, or the only one.

    Raises:
        NotFoundError: there is none of the name.
        click.UsageError: one must be named.

    """
    if name is None and (DEFAULT_SIGNATURE in signatures or len(signatures) == 1):
        name = DEFAULT_SIGNATURE if DEFAULT_SIGNATURE in signatures else next(iter(signatures))
    listed = ", ".join(signatures) or "none"
    if name is None:
        raise click.UsageError(f"--signature_def must say which is meant, of {printable(listed)}")
    if name not in signatures:
        raise NotFoundError(f"The model has no signature {name!r}; it has {listed}")
    return name, signatures[name]


def refuse(kind: str, **given: Any) -> None:
    """Raise click.UsageError for options that do not go with the kind of model there is."""
    plural = {"fetches": "fetch", "targets": "target", "inits": "init", "every": "all"}
    for name, value in given.items():
        if value:
            raise click.UsageError(f"--{plural.get(name, name)} does not go with {kind}")
