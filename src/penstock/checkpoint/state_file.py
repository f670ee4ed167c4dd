"""The file ``checkpoint``: which checkpoints a folder has, and which is the latest.

In:   a folder; or prefixes, to be written down.
Out:  ``State``; prefixes that can be opened.
Not:  opens no checkpoint.

It is a CheckpointState in protobuf's text format.  Prefixes in it are relative to the folder, or
absolute.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from penstock.core.files import FileSystem
from penstock.core.forks import importing
from penstock.defs.schema import CheckpointState
from penstock.defs.tensor_bundle import index_path
from penstock.errors import DataLossError, NotFoundError

_FILES: Final = FileSystem()
_NAME: Final = "checkpoint"


@dataclass(frozen=True, slots=True)
class State:
    """What the file says; prefixes are paths that can be opened from here."""

    #: The prefix of the latest checkpoint; "" if there is none.
    latest: str
    #: The prefixes of all that are kept, oldest first, the latest included.
    all: tuple[str, ...] = ()
    #: When each was written, in seconds since 1970; as many as prefixes, or none.
    timestamps: tuple[float, ...] = ()
    #: When the last one was written that is kept for good; 0 if none was.
    last_preserved: float = 0.0


def read_state(folder: str | os.PathLike[str], name: str = _NAME) -> State:
    """What the file in ``folder`` says.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: it is damaged.

    """
    place = os.fsdecode(folder)
    path = os.path.join(place, name)
    proto = _parsed(_FILES.read(path), path)
    paths = [os.path.join(place, one) for one in proto.all_model_checkpoint_paths]
    recent = proto.model_checkpoint_path and os.path.join(place, proto.model_checkpoint_path)
    return State(
        recent,
        tuple(paths) if recent in (*paths, "") else (*paths, recent),
        tuple(proto.all_model_checkpoint_timestamps),
        proto.last_preserved_timestamp,
    )


def _parsed(content: bytes, path: str) -> CheckpointState:
    with importing:
        text_format = importlib.import_module("google.protobuf.text_format")  # few need it
    proto = CheckpointState()
    try:
        text_format.Parse(content.decode("utf-8"), proto)
    except (UnicodeDecodeError, text_format.ParseError, RecursionError, ValueError) as cause:
        raise DataLossError(f"{path}: is no CheckpointState: {cause}") from None
    return proto


def write_state(
    folder: str | os.PathLike[str],
    latest: str | os.PathLike[str],
    all: Iterable[str | os.PathLike[str]] = (),
    *,
    timestamps: Iterable[float] = (),
    last_preserved: float = 0.0,
    name: str = _NAME,
    files: FileSystem = _FILES,
) -> None:
    """Write the file, in place of the one that is there, which stays whole until then.

    Args:
        folder: where the file goes; it is made if it is not there.
        latest: the prefix of the latest checkpoint.
        all: the prefixes of all that are kept, oldest first; the latest is added if missing.
        timestamps: when each of them was written, in seconds since 1970.
        last_preserved: when the last one was written that is kept for good.
        name: what the file is called.
        files: where it goes; ``DurableFiles`` also outlive a loss of power.

    """
    place = os.fsdecode(folder)
    recent = _within(os.fsdecode(latest), place)
    paths = [_within(os.fsdecode(path), place) for path in all]
    proto = CheckpointState(
        model_checkpoint_path=recent,
        all_model_checkpoint_paths=paths if recent in paths else [*paths, recent],
        all_model_checkpoint_timestamps=timestamps,
    )
    if last_preserved:
        proto.last_preserved_timestamp = last_preserved
    with importing:
        text_format = importlib.import_module("google.protobuf.text_format")
    files.make_folders(place)
    with files.create(os.path.join(place, name)) as file:
        file.write(text_format.MessageToString(proto).encode())


def latest(folder: str | os.PathLike[str], name: str = _NAME) -> str | None:
    """The prefix of the latest checkpoint of a folder; None if there is none.

    TensorFlow notes whole paths.  In a folder that was moved or copied since, that is the
    checkpoint of the same name.

    Raises:
        DataLossError: the file that says which it is is damaged.

    """
    try:
        state = read_state(folder, name)
    except NotFoundError:
        return None
    place = os.fsdecode(folder)
    for prefix in (state.latest, os.path.join(place, os.path.basename(state.latest or ""))):
        if prefix and (_FILES.exists(index_path(prefix)) or _is_file(prefix)):
            return prefix
    return None


def _is_file(prefix: str) -> bool:
    """Whether a checkpoint of the first version, which is one file or several, is there."""
    return any(not _FILES.is_folder(path) for path in _FILES.matching(prefix))


def _within(path: str, folder: str) -> str:
    """A prefix as it is written down: relative to the folder, if it lies in it."""
    own = os.path.normpath(path)
    place = os.path.normpath(folder)
    if not os.path.isabs(own) and place == ".":
        return own
    inside = own.startswith(os.path.join(place, ""))
    return own[len(os.path.join(place, "")) :] if inside else own
