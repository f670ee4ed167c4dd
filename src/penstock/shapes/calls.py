"""Go into functions: what is known of what they return, given what is known of what they take.

In:   a node that calls functions: a call, If, While, Case, For.
Out:  what is known of its outputs.
Not:  goes into functions that are under way already; nothing is known of what recursion returns.

A function is looked at once per distinct shapes of its arguments.  ``For`` and ``While`` go around
until nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from penstock.core.shapes import SCALAR, UNKNOWN, TensorShape
from penstock.defs.attrs import FuncAttr
from penstock.errors import OpError
from penstock.graph.functions import FunctionLibrary
from penstock.graph.graph import Node
from penstock.graph.instantiate import instantiate
from penstock.graph.roles import Role
from penstock.kernels.api.partial_shapes import join
from penstock.kernels.api.shape_context import Held

if TYPE_CHECKING:
    from penstock.shapes.infer import Facts

#: More functions than this are not looked into for one graph.
_MAX_CALLS: Final = 2000
#: Loops whose variables change their shapes more often than this have unknown ones.
_MAX_ROUNDS: Final = 16
#: What is known of one tensor.
_Fact = tuple[TensorShape, Held | None]
_NOTHING: Final[_Fact] = (UNKNOWN, None)


class Calls:
    """What functions of one library return."""

    def __init__(self, library: FunctionLibrary) -> None:
        self.library = library

    def is_call(self, node: Node) -> bool:
        return False

    def facts(self, node: Node, shapes: Any) -> Facts:
        raise NotImplementedError
