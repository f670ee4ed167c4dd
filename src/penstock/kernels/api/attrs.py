"""What a kernel maker may know of its node: attributes, types, name, device and host.

In:   a node's attributes as Python values, defaults filled in.
Out:  typed access, one method per kind.
Not:  no graph, no inputs, no session.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any

from penstock.catalogue.op_def import OpDef
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.defs.attrs import Attr, FuncAttr
from penstock.kernels.api.host import CLOSED, Host
from penstock.state.chance import Chance, unknown_chance
from penstock.state.node_states import Keeper, Keeping


@dataclass(frozen=True, slots=True)
class Attrs:
    """The static facts of one node, as its kernel's maker sees them."""

    op: OpDef
    values: Mapping[builtins.str, Attr]
    input_types: tuple[DType, ...]
    output_types: tuple[DType, ...]
    node_name: builtins.str = ""
    device: builtins.str = ""
    #: Whether another library than numpy may compute the node if that is faster.
    accelerate: builtins.bool = False
    #: Whether trials may tell what is faster, though the last bits differ from call to call.
    by_trial: builtins.bool = False
    #: The only way to files, and to functions of Python.
    host: Host = CLOSED
    #: What the names of resources begin with that are their session's own, where others live in the
    #: same place; empty where there are none.
    session: builtins.str = ""
    #: Where the session notes what its kernels keep from step to step; None without a session.
    keeper: Keeper | None = None

    @property
    def own_name(self) -> builtins.str:
        """What a node's resource is called: its ``shared_name``, or a name in its session."""
        return self.str("shared_name") or f"{self.session}{self.node_name}"

    def keep(self, what: builtins.str, kept: Keeping) -> None:
        """Note what the kernel keeps from step to step, so that it can be copied and restored."""
        if self.keeper is not None:
            self.keeper.keep(self.node_name, what, kept)

    def chance(self) -> Chance:
        """Where the node draws from if nobody has given it a seed."""
        return unknown_chance() if self.keeper is None else self.keeper.chance(self.node_name)

    def dtype(self, name: builtins.str) -> DType:
        """A ``type`` attribute."""
        value: DType = self.values[name]
        return value

    def int(self, name: builtins.str) -> builtins.int:
        """An ``int`` attribute."""
        value: builtins.int = self.values[name]
        return value

    def float(self, name: builtins.str) -> builtins.float:
        """A ``float`` attribute."""
        value: builtins.float = self.values[name]
        return value

    def bool(self, name: builtins.str) -> builtins.bool:
        """A ``bool`` attribute."""
        value: builtins.bool = self.values[name]
        return value

    def bytes(self, name: builtins.str) -> builtins.bytes:
        """A ``string`` attribute as it is."""
        value: builtins.bytes = self.values[name]
        return value

    def str(self, name: builtins.str) -> builtins.str:
        """A ``string`` attribute as text."""
        return self.bytes(name).decode("utf-8", "replace")

    def shape(self, name: builtins.str) -> TensorShape:
        """A ``shape`` attribute."""
        value: TensorShape = self.values[name]
        return value

    def tensor(self, name: builtins.str) -> Value:
        """A ``tensor`` attribute's value, read-only."""
        value: Value = self.values[name].value
        return value

    def func(self, name: builtins.str) -> FuncAttr:
        """A ``func`` attribute."""
        value: FuncAttr = self.values[name]
        return value

    def list(self, name: builtins.str) -> tuple[Any, ...]:
        """A ``list(kind)`` attribute: a tuple of what the kind's own method would give."""
        value: tuple[Any, ...] = self.values[name]
        return value

    def has(self, name: builtins.str) -> builtins.bool:
        """Whether an attribute that the op does not declare is there (such as ``_class``)."""
        return name in self.values
