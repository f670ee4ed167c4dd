"""The variables of a model, restored when they are first needed.

In:   objects, the checkpoint's values, the resources of a device.
Out:  the names of resources that hold values; values by object paths.
Not:  runs no graph.

A model may hold more than anybody uses: Keras saves every weight twice, and the slots of an
optimizer.  So a variable comes to be when a function that captures it is prepared, or when
somebody asks for its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Final

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Ref, Value, copied, dtype_of, shape_of
from penstock.defs.tensors import shape_from_proto
from penstock.errors import DataLossError, FailedPreconditionError, NotFoundError
from penstock.kernels.state.variables import RESOURCE_VARIABLE
from penstock.saved_model.object_graph import VARIABLE, SavedObjects
from penstock.saved_model.stored_values import StoredValues
from penstock.state.resources import DEFAULT_CONTAINER, ResourceManager


class Variables(Mapping[str, Value]):
    """Values by the paths of variables, as they are now; an array that is given is a copy."""

    def __init__(
        self, objects: SavedObjects, stored: StoredValues, resources: ResourceManager
    ) -> None:
        self._objects: Final = objects
        self._stored: Final = stored
        self._resources: Final = resources
        #: Held while a variable is restored.  Of the other locks, only that of the resources is
        #: taken under it.
        self._lock: Final = Lock()
        #: The numbers of variables that were restored.  Grows under the lock.
        self._restored: Final[set[int]] = set()

    def name(self, number: int) -> str:
        """What the resource of a variable is called: like its path, which no other one has."""
        return self._objects.shown(number)

    def dtype(self, number: int) -> DType:
        """The element type of a variable."""
        return dtypes.of_number(self._objects.facts(number).dtype)

    def restore(self, numbers: Iterable[int]) -> None:
        """Give variables the values of the checkpoint, unless they have been given them.

        One that the checkpoint lacks stays without a value, as it was saved.

        Raises:
            DataLossError: a value is damaged, or of another type or shape than the variable.

        """
        with self._lock:
            for number in numbers:
                if number not in self._restored:
                    if self._stored.has_value(number):
                        self._make(number, self._stored.value(number))
                    self._restored.add(number)

    def _make(self, number: int, value: Value) -> None:
        dtype = self.dtype(number)
        shape = shape_from_proto(self._objects.facts(number).shape)
        if not shape.accepts(shape_of(value)) or dtype_of(value) is not dtype:
            raise DataLossError(
                f"the variable {self.name(number)} is {dtype} of shape {shape}, and the checkpoint "
                f"has {dtype_of(value)} of shape {list(shape_of(value))} for it"
            )
        ref = Ref(self.name(number), dtype)
        ref.assign(value)
        self._resources.create(DEFAULT_CONTAINER, self.name(number), RESOURCE_VARIABLE, ref)

    # -- as a mapping ------------------------------------------------------------------

    def __getitem__(self, path: str) -> Value:
        """The value of the variable at the end of a path.

        Raises:
            NotFoundError: there is no such variable; it is a KeyError as well.
            FailedPreconditionError: it has no value.

        """
        number = self._find(path)
        self.restore([number])
        name = self.name(number)
        ref = self._resources.find(DEFAULT_CONTAINER, name, RESOURCE_VARIABLE)
        if ref is None:
            raise FailedPreconditionError(f"The variable {path} was saved without a value")
        return copied(ref.value)

    def _find(self, path: str) -> int:
        try:
            number = self._objects.find(path)
        except NotFoundError as error:
            raise NoSuchVariableError(error.reason) from None
        if self._objects.kind(number) != VARIABLE:
            kind = self._objects.kind(number) or "an object of no kind"
            raise NoSuchVariableError(f"{path} is no variable, but {kind}")
        return number

    def __iter__(self) -> Iterator[str]:
        return iter(self._objects.reached(VARIABLE))

    def __len__(self) -> int:
        return len(self._objects.reached(VARIABLE))

    def __contains__(self, path: object) -> bool:
        try:
            return isinstance(path, str) and self._find(path) >= 0
        except NoSuchVariableError:
            return False

    def __repr__(self) -> str:
        return f"<{len(self)} variables: {', '.join(list(self)[:5])}{', …' * (len(self) > 5)}>"


class NoSuchVariableError(NotFoundError, KeyError):
    """A model has no variable of a path."""
