"""What to do next, as facts that every interface can put into its own words.

In:   names of nodes, ops and options.
Out:  frozen records; ``str`` of one is what a Python program would write.
Not:  knows no command line, which says the same with its own options (``cli/advice.py``);
      imports nothing of Penstock.

An error whose advice is the same everywhere, such as ``pip install …``, needs none of these:
its ``next_step`` is plain text.
"""

from __future__ import annotations

from typing import Final

from penstock.dataclass import dataclass


class Advice:
    """What to do next; ``str`` says it to a Python program."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class FeedIt(Advice):
    """A placeholder was not fed."""

    #: Such as ``x:0``.
    endpoint: str

    def __str__(self) -> str:
        return f"add it to the feeds of this run: feed_dict={{{self.endpoint!r}: value}}"


@dataclass(frozen=True, slots=True)
class MoreTime(Advice):
    """A timeout ran out."""

    #: The option that set it.
    option: str
    #: What else could help; may be empty.
    instead: str = ""

    def __str__(self) -> str:
        return f"{or_else(self.instead)}allow more time by {self.option}"


@dataclass(frozen=True, slots=True)
class MoreMemory(Advice):
    """Tensors took more memory than they may."""

    def __str__(self) -> str:
        return "feed less at once, or allow more by Config(max_memory_in_bytes=…)"


def or_else(instead: str) -> str:
    """The beginning of a sentence that offers something else first."""
    return f"{instead}, or " if instead else ""


@dataclass(frozen=True, slots=True)
class InitializeIt(Advice):
    """A variable, a table or an iterator has no value yet."""

    #: ``variable``, ``table`` or ``iterator``.
    kind: str = "variable"
    #: The variable's name.
    name: str = ""

    def __str__(self) -> str:
        instead = ", or restore it" if self.kind == "variable" else ""
        return f"run the {self.kind}'s initializer{instead}, first"


@dataclass(frozen=True, slots=True)
class RunInitializer(Advice):
    """The same, when it is known which nodes of the graph give it a value."""

    #: The node that initializes it; empty if there is none.
    initializer: str = ""
    #: The node that restores it from a checkpoint, and the tensor that names the checkpoint's
    #: files; empty if there is none.
    restorer: str = ""
    prefix: str = ""

    def __str__(self) -> str:
        ways = []
        if self.restorer:
            feeds = f"{{{self.prefix!r}: 'PREFIX'}}"
            ways.append(f"restore a checkpoint: session.run({self.restorer!r}, {feeds})")
        if self.initializer:
            ways.append(f"initialize it: session.run({self.initializer!r})")
        return ", or ".join(ways) or NO_INITIALIZER


#: What is left if a graph has no node that gives a variable its value.
NO_INITIALIZER: Final = (
    "no node of the graph gives it a value: load the SavedModel or the checkpoint that the graph "
    "was saved with; docs/models.md has the lines"
)


@dataclass(frozen=True, slots=True)
class RunIt(Advice):
    """An operation without results was fetched like a tensor."""

    node: str

    def __str__(self) -> str:
        return f"to run the node without fetching, leave out the number: {self.node!r}"


@dataclass(frozen=True, slots=True)
class LookUpName(Advice):
    """The graph has no node of a name."""

    #: Names that resemble it.
    near: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{did_you_mean(self.near)}session.graph.names() lists the graph's nodes"


def did_you_mean(near: tuple[str, ...]) -> str:
    """A question, with a space behind it; empty if nothing is near."""
    return f"did you mean {' or '.join(near)}? " if near else ""


@dataclass(frozen=True, slots=True)
class RegisterOp(Advice):
    """An op is not known."""

    near: tuple[str, ...] = ()

    def __str__(self) -> str:
        ask = did_you_mean(self.near)
        return f"{ask}register a custom op with ps.register_op, and a kernel for it"


@dataclass(frozen=True, slots=True)
class RegisterPyFunc(Advice):
    """A node calls a Python function of the program that made the graph."""

    token: str

    def __str__(self) -> str:
        return f"penstock.register_py_func({{{self.token!r}: function}}) says what to call"


@dataclass(frozen=True, slots=True)
class AllowFiles(Advice):
    """A graph may not use files here, nor call Python functions."""

    #: What it would do then.
    does: str

    def __str__(self) -> str:
        return f"Config(allow_files=True) lets graphs {self.does}"


@dataclass(frozen=True, slots=True)
class RefuseSoftPlacement(Advice):
    """A node runs on another device than it asks for."""

    def __str__(self) -> str:
        return "Config(allow_soft_placement=False) refuses instead"


@dataclass(frozen=True, slots=True)
class RunUncompiled(Advice):
    """The compiler made a mistake."""

    def __str__(self) -> str:
        return (
            "please report it, with the graph; Config(tier=Tier.DATAFLOW) runs it without "
            "compiled code"
        )
