"""The code of one region under construction: its names, what they stand for, and its functions.

In:   variables, kernels and other objects that the text refers to.
Out:  names; and in the end a ``Source``.
Not:  writes no statements.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from penstock.core.limits import Limits
from penstock.graph.graph import Node
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.try_kernel import WOULD_BLOCK
from penstock.kernels.parallel.beside import prepared_beside
from penstock.runtime.compiler.blockwise import blockwise
from penstock.runtime.compiler.element_programs import in_c, in_c_if_short, in_c_in_parts
from penstock.runtime.compiler.expressions import as_pred
from penstock.runtime.compiler.frameless import frameless_context
from penstock.runtime.compiler.in_batches import in_batches
from penstock.runtime.compiler.names import Names
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.program import Constant, Program, Var
from penstock.runtime.compiler.source import Source, SourceLine, make_source
from penstock.runtime.compiler.suspended import leave
from penstock.runtime.compiler.unary_chains import apply_all
from penstock.runtime.compiler.vet import ATTRIBUTES, LOCALS
from penstock.runtime.frame_names import FrameTag
from penstock.runtime.references import initialized, read
from penstock.state.interrupt import end_loop

#: What stands for a kernel in the text: itself, or a function that checks what it returns.
Checked = Callable[[Node, BoundKernel], Callable[..., Any]]


#: What all code may refer to; it has no other builtins.
_OBJECTS: Final[Mapping[str, Any]] = {
    "apply_all": apply_all,
    "as_pred": as_pred,
    "context_of": OpKernelContext,
    "count": itertools.count,
    "end_loop": end_loop,
    "false": np.False_,
    "frame_tag": FrameTag,
    "frameless_of": frameless_context,
    "in_batches": in_batches,
    "in_c": in_c,
    "in_c_if_short": in_c_if_short,
    "in_c_in_parts": in_c_in_parts,
    "initialized": initialized,
    "leave": leave,
    "ndarray": np.ndarray,
    "read": read,
    "root_frame": FrameTag(None, 0, ""),
    "true": np.True_,
    "type": type,
    "would_block": WOULD_BLOCK,
}


class CodeBuffer:
    """One text under construction."""

    def __init__(
        self, program: Program, checked: Checked, profile: Profile | None, limits: Limits
    ) -> None:
        self.checked = checked
        self.profile = profile
        #: What the text refers to, by name; and the names of kernels, by identity.
        self._objects: dict[str, Any] = dict(_OBJECTS)
        self._objects["in_blocks"] = blockwise(limits.piece, limits.long_array)
        self._names_of_objects: dict[int, str] = {}
        if profile is not None:
            self._objects |= {"probe": profile.probe, "start": profile.start}
        self.names = Names([*self._objects, *LOCALS, *ATTRIBUTES])
        #: The names that variables have got, and those of strings.
        self._name_of: dict[Var, str] = {}
        self._name_of_string: dict[str, str] = {}
        #: The variables for dynamic frames that some kernel asks for.
        self.tags: set[str] = set()
        #: Finished functions.
        self.functions: list[list[SourceLine]] = []
        #: Whether some kernel is called with a context.
        self.needs_context = False
        #: Whether all kernels do nothing but compute.
        self.is_pure = True
        #: Whether all kernels do nothing but compute, and look at variables.
        self.only_reads = True
        #: Whether some kernel may have to wait.
        self.may_wait = False
        #: The step, and the iteration of a loop that the region as a whole stands in.
        self.step, self.around = (
            ("run", "root_frame, 0")
            if program.is_whole
            else ("run.step", "run.frame, run.iteration")
        )

    def name(self, var: Var) -> str:
        """The name of a variable; a constant's object is made known under it."""
        name = self._name_of.get(var)
        if name is None:
            name = self._name_of[var] = self.names.new(var.hint)
            if isinstance(var, Constant):
                self._objects[name] = var.value
        return name

    def object(self, value: Any, hint: str) -> str:
        """A name for an object; the same for the same object."""
        name = self._names_of_objects.get(id(value))
        if name is None:
            name = self._names_of_objects[id(value)] = self.names.new(hint, "k_")
            self._objects[name] = value
        return name

    def string(self, text: str) -> str:
        """A name for a string of the graph, which is never part of the code itself."""
        name = self._name_of_string.get(text)
        if name is None:
            name = self._name_of_string[text] = self.names.new(text, "s_")
            self._objects[name] = text
        return name

    def compiled(self, title: str, function: str) -> Source:
        """The code as a source whose function is called ``function``."""
        lines = [SourceLine("", label=title)]
        for written in self.functions:
            lines += [SourceLine(""), *written]
        make = partial(
            make_source,
            lines,
            function,
            self.names.taken,
            self._objects,
            needs_context=self.needs_context,
            is_pure=self.is_pure,
            only_reads=self.only_reads,
            name_of=self._name_of if self.may_wait else None,
        )
        # Python takes seconds for a long text, and cannot be told to stop.
        return prepared_beside(make)
