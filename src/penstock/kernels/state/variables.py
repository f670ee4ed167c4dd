"""Variables: where they are kept, and how a handle leads to one.

In:   a context, and the handle of a resource variable.
Out:  the ``Ref`` that holds the value; or an error that names the variable.
Not:  registers no kernel.

A resource variable is a ``Ref`` among the resources of its handle's device, and is there if and
only if it has a value: its first assignment makes it.  A reference variable is there before; what
it may be assigned first is in its ``ReferenceVariable``.
"""

from __future__ import annotations

import re
from typing import Final

from penstock.advice import InitializeIt
from penstock.core import trees
from penstock.core.dtypes import DType
from penstock.core.trees import Tree
from penstock.core.values import Ref, ResourceHandle, Value, as_value
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.signatures import type_text

#: Kinds of resources; the two kinds of variables share no names.
RESOURCE_VARIABLE: Final = "Var"
REFERENCE_VARIABLE: Final = "LegacyVar"

_CONTAINER: Final = re.compile(r"[A-Za-z0-9._][A-Za-z0-9_.\-/>]*", re.ASCII)


class ReferenceVariable(Ref):
    """A variable of the TF1 years, with the shape that its first value is to have."""

    __slots__ = ("shape",)

    def __init__(self, name: str, dtype: DType, shape: tuple[int, ...]) -> None:
        super().__init__(name, dtype)
        self.shape: Final = shape

    def state(self) -> Tree:
        """Its type, value and shape."""
        return *super().state(), self.shape

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> ReferenceVariable:
        """The variable that had a state."""
        kind, value, shape = trees.parts(state, 3)
        plain = Ref.of_state(name, (kind, value), there)
        found = cls(name, plain.dtype, tuple(map(trees.number, trees.listed(shape))))
        found.value = plain.value
        return found


def resource_name(attrs: Attrs) -> tuple[str, str]:
    """Container and name under which a node keeps its resource; its own name by default."""
    container, shared_name = attrs.str("container"), attrs.str("shared_name")
    if container and not _CONTAINER.fullmatch(container):
        raise InvalidArgumentError(f"container contains invalid characters: {container}")
    if shared_name.startswith("_"):
        raise InvalidArgumentError(f"shared_name cannot start with '_':{shared_name}")
    return container, shared_name or attrs.node_name


def single_handle(value: Value) -> ResourceHandle:
    """A handle, also out of an array of rank 0."""
    handle = as_value(value)
    if not isinstance(handle, ResourceHandle):
        raise InvalidArgumentError(f"a resource handle is wanted, got {type(handle).__name__}")
    return handle


def find_variable(context: OpKernelContext, handle: Value) -> Ref | None:
    """The variable, if it has a value."""
    if type(handle) is not ResourceHandle:
        handle = single_handle(handle)
    found = context.step.resources.find_of(handle)
    if found is None or isinstance(found, Ref):
        return found
    raise InvalidArgumentError(f"{handle.name} is a {handle.type_name} and no variable")


def lookup_variable(context: OpKernelContext, handle: Value) -> Ref:
    """The variable; raises NotFoundError if it has no value."""
    found = find_variable(context, handle)
    if found is None:
        raise _no_variable(handle)
    return found


def lookup_typed(context: OpKernelContext, handle: Value, dtype: DType) -> Ref:
    """The variable; also raises InvalidArgumentError if it holds another type."""
    found = find_variable(context, handle)
    if found is None:
        raise _no_variable(handle)
    if found.dtype is not dtype:
        raise InvalidArgumentError(
            "DType of variable handle and value does not match: "
            f"{type_text(found.dtype)} and {type_text(dtype)}"
        )
    return found


def _no_variable(handle: Value) -> NotFoundError:
    handle = single_handle(handle)
    return NotFoundError(
        f"Resource {handle.container}/{handle.name}/{handle.type_name} does not exist.",
        next_step=InitializeIt("variable", handle.name),
    )
