"""``load``: a checkpoint as a mapping, of which nothing is read before it is asked for.

In:   a prefix, one of its files, or a folder with a ``checkpoint`` file.
Out:  ``Checkpoint``: names → arrays; types, shapes, the objects that were saved.
Not:  knows no graph: it restores nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from penstock.checkpoint.object_graph import OBJECT_GRAPH_KEY, ObjectGraph
from penstock.checkpoint.state_file import latest
from penstock.checkpoint.stores import Store, TensorSpec, open_store
from penstock.core.dtypes import DType
from penstock.core.files import FileSystem
from penstock.core.similar import similar
from penstock.core.values import Value
from penstock.defs.tensor_bundle import index_path
from penstock.defs.tensor_slices import TensorSlice, all_of
from penstock.errors import DataLossError, InvalidArgumentError, NotFoundError

_FILES: Final = FileSystem()
#: What the names of files have behind a prefix.
_ENDING: Final = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")


class NoSuchTensorError(NotFoundError, KeyError):
    """A checkpoint has no tensor of a name."""


class Checkpoint(Mapping[str, Value]):
    """The tensors of a checkpoint by their names; see ``load``.

    Whatever of an array lies in a data file as it would in memory is a view of the file, which is
    mapped: processes share its pages, and the array keeps the mapping alive.  May be used by
    several threads at once.
    """

    def __init__(self, prefix: str, store: Store) -> None:
        #: What the names of its files begin with.
        self.prefix: Final = prefix
        #: 2, or 1 for the format of the first years.
        self.version: Final = store.version
        self._store: Final = store
        #: Keys as the files have them, by names.  Bytes that are no UTF-8 become surrogates.
        self._keys: Final = {key.decode("utf-8", "surrogateescape"): key for key in store.keys()}  # noqa: SIM118

    def __getitem__(self, name: str) -> Value:
        """A tensor, read-only: an array, at rank 0 a numpy scalar or ``bytes``.

        Raises:
            NotFoundError: there is none of this name; it is a KeyError as well.
            DataLossError: what is stored is damaged.
            InvalidArgumentError: it was saved in parts, of which some are not there.

        """
        return self.read(name)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __repr__(self) -> str:
        return f"<Checkpoint {self.prefix!r}: {len(self)} tensors>"

    def read(
        self, name: str, part: tuple[slice, ...] | None = None, *, verify: bool = True
    ) -> Value:
        """A tensor or a part of it, read-only.

        Args:
            name: the tensor's name.
            part: one slice per dimension, without steps; None for all of it.
            verify: whether the stored checksum is compared, for which all bytes are read, once.
                Without, a tensor of any size takes no time, and damage goes unnoticed.

        Raises:
            OpError: like ``checkpoint[name]``; InvalidArgumentError also if the part is none.

        """
        key = self._key(name)
        box = None if part is None else _box(part, self._store.spec(key).shape)
        return self._store.read(key, box, verify=verify)

    def spec(self, name: str) -> TensorSpec:
        """What is known of a tensor: type, shape, size in the files, parts.  Reads no elements."""
        return self._store.spec(self._key(name))

    def dtype(self, name: str) -> DType:
        """The element type of a tensor."""
        return self.spec(name).dtype

    def shape(self, name: str) -> tuple[int, ...]:
        """The sizes of a tensor."""
        return self.spec(name).shape

    def object_graph(self) -> ObjectGraph | None:
        """The objects that were saved; None if they were variables with names.

        Raises:
            DataLossError: they are damaged.

        """
        if OBJECT_GRAPH_KEY not in self:
            return None
        content = self[OBJECT_GRAPH_KEY]
        if not isinstance(content, bytes):
            raise DataLossError(f"{self.prefix}: {OBJECT_GRAPH_KEY} is no single string")
        try:
            return ObjectGraph.parse(content)
        except DataLossError as error:
            raise DataLossError(f"{self.prefix}: {error.reason}") from None

    def _key(self, name: str) -> bytes:
        key = self._keys.get(name)
        if key is None:
            near = similar(name, self._keys)
            raise NoSuchTensorError(
                f"Key {name} not found in checkpoint {self.prefix}",
                next_step=f"did you mean {' or '.join(near)}?" if near else "",
            )
        return key


def load(prefix: str | os.PathLike[str]) -> Checkpoint:
    """Open a checkpoint of either version; its tensors are read when they are asked for.

    Args:
        prefix: what the names of its files begin with, such as ``model.ckpt-7``; one of the
            files; or a folder, for the latest checkpoint in it.

    Raises:
        NotFoundError: there is no checkpoint.
        DataLossError: the index is damaged; the error names the file.

    """
    path = os.fsdecode(prefix)
    # What was saved as "model/" is in model/.index: the folder is a prefix as well.
    if _FILES.is_folder(path) and not _FILES.exists(index_path(path)):
        found = latest(path)
        if found is None:
            raise NotFoundError(
                f"{path} is a folder in which no file says which checkpoint is the latest",
                next_step=_advice(path, ""),
            )
        path = found
    for candidate in dict.fromkeys((_ENDING.sub("", path), path)):
        store = open_store(candidate, _FILES)
        if store is not None:
            return Checkpoint(candidate, store)
    raise NotFoundError(
        f"There is no checkpoint {path}: neither {path}.index nor a file of this name",
        next_step=_advice(*os.path.split(path)),
    )


def _advice(folder: str, name: str) -> str:
    """Which prefixes there are in a folder."""
    if not _FILES.is_folder(folder or "."):
        return ""
    names = _FILES.names(folder or ".")
    prefixes = [one.removesuffix(".index") for one in names if one.endswith(".index")]
    near = similar(name, prefixes, cutoff=0) if name else prefixes[:3]
    paths = [os.path.join(folder, one) for one in near]
    return f"did you mean {' or '.join(paths)}?" if paths else ""


def _box(part: Any, shape: tuple[int, ...]) -> TensorSlice:
    """Slices of Python as a part of a tensor of these sizes."""
    parts = part if isinstance(part, tuple) else (part,)
    is_fitting = len(parts) == len(shape) and all(isinstance(one, slice) for one in parts)
    ranges = (
        [range(size)[one] for one, size in zip(parts, shape, strict=True)] if is_fitting else []
    )
    if not is_fitting or any(one.step != 1 for one in ranges):
        raise InvalidArgumentError(
            f"{part!r} is no part of a tensor of shape {shape}: one slice per dimension, each "
            "without a step, is wanted"
        )
    if ranges == [range(size) for size in shape]:
        return all_of(shape)
    return TensorSlice(tuple(one.start for one in ranges), tuple(map(len, ranges)))
