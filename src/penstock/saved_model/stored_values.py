"""The checkpoint of a SavedModel: values by the objects that have them.

In:   the folder of a model, and its objects.
Out:  keys and values of objects; values are read when they are asked for.
Not:  keeps no variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.core.values import Value
from penstock.defs.bundle_reader import BundleReader
from penstock.saved_model.checkpoint_keys import VALUE, keys_of_objects
from penstock.saved_model.folder import ModelFolder
from penstock.saved_model.object_graph import SavedObjects


class StoredValues:
    """What the checkpoint of a model holds; nothing if there is no checkpoint."""

    def __init__(self, folder: ModelFolder, objects: SavedObjects) -> None:
        """Read the index.

        Raises:
            DataLossError: it is damaged, or the checkpoint's graph of objects is.

        """
        self._reader = (
            BundleReader(folder.checkpoint_prefix, folder.files) if folder.has_checkpoint else None
        )
        self._keys: Final[Mapping[int, Mapping[str, str]]] = (
            keys_of_objects(objects, self._reader) if self._reader is not None else {}
        )

    def keys(self, number: int) -> Mapping[str, str]:
        """Keys of the checkpoint by attribute of an object."""
        return self._keys.get(number, {})

    def has_value(self, number: int) -> bool:
        """Whether a variable has a value."""
        return VALUE in self.keys(number)

    def value(self, number: int) -> Value:
        """The value of a variable that has one; raises DataLossError if it is damaged."""
        return self.read(self.keys(number)[VALUE])

    def read(self, key: str) -> Value:
        """What stands under a key; raises NotFoundError or DataLossError."""
        assert self._reader is not None  # there are no keys without it
        return self._reader.read(key.encode("utf-8", "surrogateescape"))
