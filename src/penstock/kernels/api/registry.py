"""Kernels by op, device type and element types.

In:   kernel makers, registered by decorator where they are defined.
Out:  the one ``KernelDef`` that fits a node on a device type, or an error that lists what
      there is.
Not:  knows no graph; makes no kernel before it is asked.

A maker reads its node's attributes once and returns the kernel, a plain function that is
called once per activation.  Three decorators, three shapes of kernel:

    @kernel("Add")              compute(*inputs) -> outputs
    @context_kernel("Assign")   compute(context, *inputs) -> outputs
    @async_kernel("_Recv")      compute(context, done, *inputs) -> None; calls done(outputs)

Outputs are the bare value if the op has one output that is no list, otherwise a tuple of
all of them; an op without outputs returns None.
"""

from __future__ import annotations

import enum
import importlib
import pkgutil
from collections.abc import Callable, Collection, Mapping
from threading import RLock
from typing import Any, Final, TypeAlias, TypeVar

from penstock.catalogue.plugins import load_plugins
from penstock.catalogue.registry import get_op, is_builtin_op
from penstock.core.dtypes import DType
from penstock.core.forks import held_at_forks
from penstock.dataclass import dataclass
from penstock.defs.attrs import Attr
from penstock.errors import AlreadyExistsError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.families import families_of
from penstock.kernels.api.int32_attrs import check_int32
from penstock.kernels.api.traits import UNSAID, KernelTraits

Kernel: TypeAlias = Callable[..., Any]
MakeKernel: TypeAlias = Callable[[Attrs], Kernel]
_Make = TypeVar("_Make", bound=MakeKernel)


class Calling(enum.Enum):
    """How a kernel is called."""

    #: There is one of each, so identity will do, and is faster than a hash of the name.
    __hash__ = object.__hash__

    PLAIN = enum.auto()
    CONTEXT = enum.auto()
    ASYNC = enum.auto()


class Cost(enum.Enum):
    """Whether a kernel may be worth a thread of its own."""

    #: Always run where it becomes ready: bookkeeping that touches no elements.
    CHEAP = enum.auto()
    #: Measured while the graph runs, and handed to a thread if it proves slow.
    MEASURED = enum.auto()


@dataclass(frozen=True, slots=True)
class KernelDef:
    """One registered kernel."""

    op: str
    device_type: str
    make: MakeKernel
    calling: Calling
    cost: Cost
    #: Allowed element types by type attribute; an attribute that is missing is free.
    types: Mapping[str, frozenset[DType]]
    priority: int = 0
    #: What its author says about it.
    traits: KernelTraits = UNSAID
    #: Whether a type error of its outputs is possible: user kernels are checked.
    is_builtin: bool = True

    def fits(self, attrs: Mapping[str, Attr]) -> bool:
        """Whether the node's type attributes are all allowed."""
        for name, types in self.types.items():  # noqa: SIM110  (all() takes twice as long)
            if not _allowed(attrs.get(name), types):
                return False
        return True

    def made(self, attrs: Attrs) -> Kernel:
        """The kernel of a node; raises what its maker does.

        Raises:
            InvalidArgumentError: a number of an attribute is beyond what TensorFlow's kernel holds.

        """
        if self.is_builtin:
            check_int32(attrs.op, attrs.values)
        return self.make(attrs)

    def __str__(self) -> str:
        parts = [f"device='{self.device_type}'"]
        for name, types in sorted(self.types.items()):
            listed = ", ".join(sorted(t.proto_name for t in types))
            parts.append(f"{name} in [{listed}]")
        return "; ".join(parts)


def _allowed(value: Attr, types: frozenset[DType]) -> bool:
    if isinstance(value, tuple):
        return all(item.base in types for item in value)
    return value is None or value.base in types


#: Every registered kernel by op.  Grows under ``_lock``; a list is replaced, never changed.
_kernels: Final[dict[str, tuple[KernelDef, ...]]] = {}
#: Held while a kernel is added.  Nothing is imported under it, and no other lock is taken.
_lock: Final = held_at_forks(RLock())
#: Held while families are imported, so that one that fails leaves nothing behind for another
#: thread to stumble over; taken before Python's import locks, and before ``_lock``.
_loading: Final = held_at_forks(RLock(), order=2)
#: Ops whose families are all imported; only grows.
_loaded_ops: Final[set[str]] = set()
#: Has an element when all families are imported.
_loaded: Final[list[bool]] = []
#: The end of the names of modules that have no kernels, but rules about shapes.
RULES_SUFFIX: Final = "_shapes"


def kernel(
    *ops: str,
    types: Mapping[str, Collection[DType]] | None = None,
    device: str = "CPU",
    priority: int = 0,
    cost: Cost = Cost.MEASURED,
    traits: KernelTraits = UNSAID,
) -> Callable[[_Make], _Make]:
    """Register the maker of a kernel that is a plain function of its inputs.

    Args:
        ops: names of the ops; the same maker serves all of them.
        types: allowed element types by type attribute, such as ``{"T": FLOATS}``.
        device: device type, such as ``CPU``.
        priority: higher ones are preferred; decides before the device type's own.
        cost: ``Cost.CHEAP`` for kernels that never deserve a thread.
        traits: what is known of the kernel; what is left out is taken for the worse.

    Raises:
        NotFoundError: no such op.
        AlreadyExistsError: a kernel with the same constraints is there.

    """
    return _registrar(ops, types, device, priority, cost, Calling.PLAIN, traits)


def context_kernel(
    *ops: str,
    types: Mapping[str, Collection[DType]] | None = None,
    device: str = "CPU",
    priority: int = 0,
    cost: Cost = Cost.MEASURED,
    traits: KernelTraits = UNSAID,
) -> Callable[[_Make], _Make]:
    """Like ``kernel``, for kernels that take an OpKernelContext before their inputs."""
    return _registrar(ops, types, device, priority, cost, Calling.CONTEXT, traits)


def async_kernel(
    *ops: str,
    types: Mapping[str, Collection[DType]] | None = None,
    device: str = "CPU",
    priority: int = 0,
    traits: KernelTraits = UNSAID,
) -> Callable[[_Make], _Make]:
    """Like ``kernel``, for kernels that may have to wait.

    They take an OpKernelContext and ``done`` before their inputs, return at once, and
    call ``done`` exactly once, with the outputs or with an exception.
    """
    return _registrar(ops, types, device, priority, Cost.CHEAP, Calling.ASYNC, traits)


def _registrar(
    ops: tuple[str, ...],
    types: Mapping[str, Collection[DType]] | None,
    device: str,
    priority: int,
    cost: Cost,
    calling: Calling,
    traits: KernelTraits,
) -> Callable[[_Make], _Make]:
    frozen = {name: frozenset(allowed) for name, allowed in (types or {}).items()}

    def register(make: _Make) -> _Make:
        is_builtin = (make.__module__ or "").startswith("penstock.kernels.")
        for name in ops:
            if not is_builtin_op(name):
                get_op(name)  # Refuses strangers.
            if not is_builtin:
                _load(name)  # Else a kernel of ours would clash with this one, later on.
            _add(KernelDef(name, device, make, calling, cost, frozen, priority, traits, is_builtin))
        return make

    return register


def _add(new: KernelDef) -> None:
    with _lock:
        known = _kernels.get(new.op, ())
        for other in known:
            same_place = (other.device_type, other.priority) == (new.device_type, new.priority)
            if same_place and _overlap(other.types, new.types):
                raise AlreadyExistsError(
                    f"Op {new.op} has two kernels for {new}: {other.make.__qualname__} in "
                    f"{other.make.__module__} and {new.make.__qualname__} in "
                    f"{new.make.__module__}",
                    next_step="give one of them other types, or a priority",
                )
        _kernels[new.op] = tuple(sorted((*known, new), key=_family))


def _family(kernel: KernelDef) -> str:
    """Sorts our kernels by where they are defined, in whichever order that is imported."""
    return kernel.make.__module__ if kernel.is_builtin else "~"


def _overlap(a: Mapping[str, frozenset[DType]], b: Mapping[str, frozenset[DType]]) -> bool:
    """Whether some node fits both constraints."""
    return all(a[name] & b[name] for name in a.keys() & b.keys())


def load_families() -> None:
    """Import every kernel family, once; they register themselves."""
    if _loaded:
        return
    with _loading:
        if _loaded:
            return
        package = importlib.import_module("penstock.kernels")
        for module in pkgutil.walk_packages(package.__path__, "penstock.kernels."):
            if not module.name.endswith(RULES_SUFFIX):
                _load_family(module.name)
        _loaded.append(True)


def _load(op: str) -> None:
    """Import the families that have kernels for ``op``; and packages, if none has."""
    families = families_of(op)
    if not families and is_builtin_op(op):
        load_families()  # A kernel that is newer than the table is found all the same.
        if op not in _kernels:
            load_plugins()
    with _loading:
        for name in families if not _loaded else ():
            _load_family(name)
    _loaded_ops.add(op)


def _load_family(name: str) -> None:
    """Import one module; if that fails, forget its kernels, so that it can be tried again."""
    try:
        importlib.import_module(name)
    except BaseException:
        with _lock:
            for op, known in list(_kernels.items()):
                _kernels[op] = tuple(k for k in known if k.make.__module__ != name)
        raise


def kernels_of(op: str) -> tuple[KernelDef, ...]:
    """All kernels of an op, on any device type: ours family by family, then users' own."""
    if op not in _loaded_ops:
        _load(op)
    return _kernels.get(op, ())


def ops_with_kernels() -> list[str]:
    """The names of all ops that have a kernel, in alphabetical order."""
    load_families()
    load_plugins()
    return sorted(_kernels)


def find_kernel(op: str, device_type: str, attrs: Mapping[str, Attr]) -> KernelDef | None:
    """The kernel for a node on a device type, the one of highest priority; or None."""
    found = None
    for known in kernels_of(op):
        is_better = found is None or known.priority > found.priority
        if is_better and known.device_type == device_type and known.fits(attrs):
            found = known
    return found


def get_kernel(op: str, device_type: str, attrs: Mapping[str, Attr]) -> KernelDef:
    """Like ``find_kernel``; raises InvalidArgumentError with a list of what there is."""
    found = find_kernel(op, device_type, attrs)
    if found is None:
        raise no_kernel_error(op, attrs)
    return found


def no_kernel_error(op: str, attrs: Mapping[str, Attr]) -> InvalidArgumentError:
    """The error that says that no kernel fits, and which ones there are."""
    types = ", ".join(f"{k}={v}" for k, v in attrs.items() if isinstance(v, DType))
    lines = [f"    {k}" for k in kernels_of(op)] or ["    <no registered kernels>"]
    return InvalidArgumentError(
        f"No OpKernel was registered to support Op '{op}' with these attrs: [{types}]",
        details=["  Registered kernels:", *lines],
        next_step="penstock ops lists the ops that have kernels; docs/add-an-op.md adds one",
    )
