"""The checkpoint of a SavedModel: values by the objects that have them.

In:   where a model's checkpoint is, and its objects.
Out:  keys and values of objects; values are read when they are asked for.
Not:  keeps no variable; never asks what a variable is called.

The model's objects and those of its checkpoint are walked in step, by the names of edges.  Names of
variables repeat (Keras calls many ``kernel``); the way to an object is what both agree on.

Values are views of the data files, which are mapped: processes that load a model share its pages,
and what no function needs is never read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.checkpoint import OBJECT_GRAPH_KEY, VARIABLE_VALUE, ObjectGraph
from penstock.checkpoint import load as open_checkpoint
from penstock.core.values import Value
from penstock.errors import DataLossError
from penstock.formats.stored_model import Companions
from penstock.saved_model.object_graph import SavedObjects


class StoredValues:
    """What the checkpoint of a model holds; nothing if there is no checkpoint."""

    def __init__(self, companions: Companions, objects: SavedObjects) -> None:
        """Read the index.

        Raises:
            DataLossError: it is damaged, or the checkpoint's graph of objects is.

        """
        self._checkpoint = open_checkpoint(companions.checkpoint) if companions.checkpoint else None
        self._keys: Final[Mapping[int, Mapping[str, str]]] = self._matched(objects)

    def _matched(self, objects: SavedObjects) -> dict[int, Mapping[str, str]]:
        """Keys by attribute, by the number of the object in the model."""
        if self._checkpoint is None:
            return {}
        saved = self._checkpoint.object_graph()
        if saved is None:
            raise DataLossError(f"{self._checkpoint.prefix}: there is no {OBJECT_GRAPH_KEY}")
        matched = saved.beside(objects.children)
        matched.update(_slots(objects, saved, matched))
        return {number: saved[other].keys for number, other in matched.items()}

    def keys(self, number: int) -> Mapping[str, str]:
        """Keys of the checkpoint by attribute of an object."""
        return self._keys.get(number, {})

    def has_value(self, number: int) -> bool:
        """Whether a variable has a value."""
        return VARIABLE_VALUE in self.keys(number)

    def value(self, number: int) -> Value:
        """The value of a variable that has one; raises DataLossError if it is damaged."""
        return self.read(self.keys(number)[VARIABLE_VALUE])

    def read(self, key: str) -> Value:
        """What stands under a key; raises NotFoundError or DataLossError."""
        assert self._checkpoint is not None  # there are no keys without it
        return self._checkpoint[key]


def _slots(objects: SavedObjects, saved: ObjectGraph, matched: Mapping[int, int]) -> dict[int, int]:
    """An optimizer's variables, which hang on pairs: the variable that they are for, and a name."""
    found = {}
    for number, other in matched.items():
        theirs = {(slot.original, slot.name): slot.node for slot in saved[other].slot_variables}
        for slot in objects.nodes[number].slot_variables if theirs else ():
            key = matched.get(slot.original_variable_node_id, -1), slot.slot_name
            if key in theirs:
                found[slot.slot_variable_node_id] = theirs[key]
    return found
