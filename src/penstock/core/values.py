"""What travels on an edge.

A value is a numpy array; or, at rank 0, a numpy scalar (ten times cheaper than a 0-d
array), ``bytes`` for a string, and the bare object for a resource or a variant.  A 0-d
array is legal too, but never preferred: ``as_value`` unwraps it.

Arrays that outlive the kernel that made them (constants, variables, feeds) are read-only;
no kernel ever writes into an input.
"""

from __future__ import annotations

import enum
from threading import RLock
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.dataclass import dataclass

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
#: An array, a numpy scalar, bytes, a resource handle, or a variant's object.
Value: TypeAlias = Any


class _Dead(enum.Enum):
    """The type of ``DEAD``."""

    DEAD = "dead"

    def __repr__(self) -> str:
        return "DEAD"

    def __bool__(self) -> bool:
        return False


#: Stands on a data edge instead of a value when the branch was not taken.
DEAD: Final = _Dead.DEAD


@dataclass(frozen=True, slots=True)
class ResourceHandle:
    """Names a resource: what it is, and where it is kept.

    ``type_name`` is the kind of resource (``Var``, ``FIFOQueue`` …), ``unique`` tells apart
    resources that share no name; two equal handles mean the same resource.
    """

    device: str
    container: str
    name: str
    type_name: str
    unique: int = 0
    dtype: DType | None = None


class KeptTensor(bytes):
    """The handle of a tensor that a session keeps: the text ``node;number;device``.

    Fed to a tensor of strings it is that text, which GetSessionTensor reads; fed to any other
    one it stands for the tensor that is kept.
    """

    __slots__ = ()

    @property
    def handle(self) -> str:
        """The text."""
        return self.decode()


#: The container and the kind of a ``ResourceHandle`` that means a tensor that a session keeps.
KEPT_TENSOR: Final = "TensorHandle"


@dataclass(frozen=True, slots=True)
class EncodedVariant:
    """A variant's object as messages hold it; whoever uses the object has it decoded first.

    ``tensors`` are the values that the object holds, each with its type; ``metadata`` is what
    else its class wants to know.  No name stands for no object.
    """

    type_name: str = ""
    metadata: bytes = b""
    tensors: tuple[tuple[DType, Value], ...] = ()


class Unwritable:
    """Marks a buffer as memory into which nobody writes, such as a file that is mapped to read."""


class Ref:
    """A place that a reference edge points to: a variable of the TF1 years.

    Readers take ``value`` without a lock, since arrays are replaced and never written
    into; writers that depend on the old value hold ``lock`` while they replace it.
    """

    __slots__ = ("dtype", "lock", "name", "value")

    def __init__(self, name: str, dtype: DType, value: Value = None) -> None:
        self.name = name
        self.dtype = dtype
        #: Held while ``value`` is replaced.  Innermost lock: nothing is called under it.
        self.lock = RLock()
        #: The current value, read-only; None before the first assignment.
        self.value = value

    def assign(self, value: Value) -> None:
        """Replace the value, by one that is computed for it or that comes from anywhere."""
        self.value = keep(value)

    def state(self) -> tuple[str, Value]:
        """Its type, and its value; see ``state/restorable.py``."""
        return self.dtype.name, self.value

    @classmethod
    def of_state(cls, name: str, state: Any, there: object) -> Ref:  # noqa: ARG003
        """The variable that had a state."""
        kind, value = state
        dtype = dtypes.as_dtype(kind)
        if value is not None and not has_dtype(value, dtype):
            raise ValueError(f"there is a value that is no {dtype}")
        return Ref(name, dtype, value)


def as_value(array: Any) -> Value:
    """The canonical form: rank 0 unwrapped, anything else as it is."""
    if isinstance(array, np.ndarray) and array.ndim == 0:
        return array[()]
    return array


def freeze(value: Value) -> Value:
    """Make an array read-only, in place; returns it."""
    if isinstance(value, np.ndarray):
        # By name it takes twice as long, and ``flags.writeable`` four times.
        value.setflags(False)  # type: ignore[call-arg]  # noqa: FBT003
    return value


def copied(value: Value) -> Value:
    """A value in memory that nobody else knows; only arrays can change."""
    return value.copy() if isinstance(value, np.ndarray) else value


def keep(value: Value) -> Value:
    """A value that may outlive its step: read-only, in memory into which nobody writes.

    Only what lies in someone else's writable memory is copied, such as a view of an array
    that the user fed.
    """
    if type(value) is np.ndarray and value.base is None:  # the usual case
        value.setflags(False)  # type: ignore[call-arg]  # noqa: FBT003
        return value
    if isinstance(value, np.ndarray) and value.base is not None:
        owner: Any = value.base
        while isinstance(owner, np.ndarray) and owner.base is not None:
            owner = owner.base
        is_safe = not owner.flags.writeable if isinstance(owner, np.ndarray) else _is_fixed(owner)
        if not is_safe:
            value = value.copy()
    return freeze(value)


def _is_fixed(buffer: object) -> bool:
    """Whether nobody writes into a buffer, however an array looks at it."""
    if isinstance(buffer, memoryview):
        buffer = buffer.obj
    return isinstance(buffer, (bytes, Unwritable))


def dtype_of(value: Value) -> DType:
    """The element type of a value; resources and variants by their class."""
    if isinstance(value, (np.ndarray, np.generic)):
        found = dtypes.of_numpy(value.dtype)
        if found is dtypes.string and value.size:
            return _dtype_of_object(value.flat[0])
        return found
    return _dtype_of_object(value)


def _dtype_of_object(value: object) -> DType:
    if isinstance(value, (bytes, str)):
        return dtypes.string
    if isinstance(value, ResourceHandle):
        return dtypes.resource
    if isinstance(value, Ref):
        return value.dtype.ref
    return dtypes.variant


def has_dtype(value: Value, dtype: DType) -> bool:
    """Whether a value is what an output of ``dtype`` may carry."""
    if dtype.is_ref:
        return isinstance(value, Ref) and value.dtype is dtype.base
    if dtype.is_object:
        array = isinstance(value, np.ndarray)
        return (array and value.dtype.hasobject) or (not array and _dtype_of_object(value) is dtype)
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype == dtype.numpy


def shape_of(value: Value) -> tuple[int, ...]:
    """The sizes of a value; () for everything that is no array."""
    return value.shape if isinstance(value, np.ndarray) else ()


def size_in_bytes(value: Value) -> int:
    """Bytes that a value's elements take; of strings, their text."""
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return sum(len(item) for item in value.flat if isinstance(item, bytes))
        return int(value.nbytes)
    return len(value) if isinstance(value, bytes) else int(getattr(value, "nbytes", 0))


def describe(value: Value) -> str:
    """A short text for error messages: ``float32[2,3]`` or ``int32 7``."""
    if value is DEAD:
        return "dead"
    dtype, shape = dtype_of(value), shape_of(value)
    if shape == () and not dtype.is_object:
        return f"{dtype} {value}"
    return f"{dtype}[{','.join(map(str, shape))}]"
