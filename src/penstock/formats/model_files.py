"""The files of a model, and what tells one state of them from another.

In:   paths.
Out:  ``ModelFiles``; a ``Fingerprint``, which ``check_files`` compares with what is there.
Not:  knows no format.

A fingerprint is of the files' whole content: a hash of each.  Files are read for it once, when
somebody first asks; until then they are watched by what the file system says of them, so that the
fingerprint is that of the model that was loaded, or an error.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from penstock.core.files import FileSystem
from penstock.errors import FailedPreconditionError, NotFoundError, OpError

#: Paths and hashes of files; the hash of what is not there is empty.
Fingerprint: TypeAlias = tuple[tuple[str, str], ...]
_FILES: Final = FileSystem()
#: What the names of a checkpoint's files end with, of either version.
_ENDINGS: Final = re.compile(r"(\.index|(\.data)?-\d{5}-of-\d{5})?", re.ASCII)


class ModelFiles:
    """The files that say which model it is; those that are not there count as well."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Watch files from now on.

        Args:
            paths: absolute; a file may be named twice.

        """
        self._paths: Final = tuple(dict.fromkeys(paths))
        #: What the file system said of each when the model was loaded.
        self._marks: Final = [_FILES.mark(path) for path in self._paths]
        #: The hashes, once somebody asked; of two threads that ask at once, either's will do.
        self._found: Fingerprint | None = None

    def fingerprint(self) -> Fingerprint:
        """What the files held when this was made.

        Raises:
            FailedPreconditionError: it can no longer be told, since one of them was changed.
            OpError: a file cannot be read.

        """
        if self._found is None:
            hashes = [_hash(path) for path in self._paths]
            for path, mark in zip(self._paths, self._marks, strict=True):
                if _FILES.mark(path) != mark:
                    raise FailedPreconditionError(
                        f"{path} was changed after the model was loaded, so that nobody else could "
                        "load the same one",
                        next_step="load it anew: penstock.load_model",
                    )
            self._found = tuple(zip(self._paths, hashes, strict=True))
        return self._found


def check_files(fingerprint: Fingerprint, model: str) -> None:
    """Raise unless the files are those of a fingerprint.

    Args:
        fingerprint: the files, the one with the graph first, and what they held.
        model: the path of the model that they are of, for errors.

    Raises:
        NotFoundError: the model is not there.
        FailedPreconditionError: files hold something else; the error names them.
        OpError: a file cannot be read.

    """
    first, expected = fingerprint[0]
    if expected and not _FILES.exists(first):
        raise NotFoundError(
            f"{first}; the model {model} was pickled as its path, and this file of it is not there",
            next_step="put the model where every process finds it under the same path, such as a "
            "shared file system, and load it from there",
        )
    found = [(path, expected, _hash(path)) for path, expected in fingerprint]
    changed = [
        f"{path} {'changed' if now else 'is gone'}" for path, then, now in found if now != then
    ]
    if changed:
        raise FailedPreconditionError(
            f"{model} holds another model than it did when it was pickled: {', '.join(changed)}",
            next_step="load it anew: penstock.load_model",
        )


def checkpoint_files(prefix: str) -> Sequence[str]:
    """The files of the checkpoint with a prefix, of either version, in alphabetical order."""
    folder, name = os.path.split(prefix)
    try:
        names = _FILES.names(folder)
    except OpError:
        return ()
    return [
        os.path.join(folder, one)
        for one in names
        if one.startswith(name) and _ENDINGS.fullmatch(one[len(name) :])
    ]


def _hash(path: str) -> str:
    if not _FILES.exists(path):
        return ""
    with _FILES.open(path) as file:
        content: Any = file  # typeshed asks for a method that the type of open files does not list
        return hashlib.file_digest(content, "sha256").hexdigest()
