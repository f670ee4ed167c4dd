"""Python code as a function that tracebacks can show.

In:   lines of code, each with what stands beside it, and the objects that the code refers to.
Out:  ``Source``: the function, its listing, and where in the graph an error in it arose.
Not:  writes no code.

The law: **no text of a graph is part of the code.**  What a graph calls a node, a frame or a
function stands beside the lines, in ``Line.node`` and ``Line.label``, and is an object where the
code needs it as a value.  Only the listing, which nobody compiles, puts the two side by side.
``vet`` looks at all code once more before it is compiled, and it runs without Python's builtins.
"""

from __future__ import annotations

import itertools
import linecache
import sys
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, NamedTuple, cast, overload

from penstock.core.collector import collector_paused
from penstock.dataclass import dataclass
from penstock.errors import InternalError
from penstock.graph.graph import Node
from penstock.printable import printable
from penstock.runtime.compiler.one_by_one import node_in
from penstock.runtime.compiler.program import Var
from penstock.runtime.compiler.vet import vet

#: The op of a node that is a program in C.
_PROGRAM: Final = "_NativeRegion"
#: Tells apart the file names of texts; ``next`` on it is atomic enough, since a lost number
#: would only repeat a name that a lock below guards.
_numbers: Final = itertools.count(1)


#: All texts that are alive, by file name; each access is one operation of the dictionary.
_sources: Final[weakref.WeakValueDictionary[str, Source]] = weakref.WeakValueDictionary()


class Iterations(NamedTuple):
    """A loop that a line stands in."""

    #: The frame's name, as the graph has it.
    frame: str
    #: The variable that counts its iterations.
    counter: str
    #: The variable for the dynamic frame; the code has it if a kernel asks.
    tag: str = ""


class SourceLine(NamedTuple):
    """One line of code, and what stands beside it."""

    code: str
    #: The node that it is for; None for what holds the others together.
    node: Node | None = None
    #: The loops around it, outermost first.
    loops: tuple[Iterations, ...] = ()
    #: What the graph calls it, if it is for no node.
    label: str = ""

    @property
    def listed(self) -> str:
        """The line as people read it."""
        node = self.node
        label = self.label if node is None else f"{node.name} ({node.op.name})"
        if not label:
            return self.code
        comment = f"# {printable(label)}"
        return f"{self.code}  {comment}" if self.code else comment


class SourcePlace(NamedTuple):
    """Where in a graph something happened."""

    node: Node
    #: The dynamic frame, as errors show it; empty outside of loops.
    frame: str
    iteration: int

    def within(self, frame: str, iteration: int) -> SourcePlace:
        """The same place, if the text itself runs in an iteration of a loop."""
        if not frame:
            return self
        if not self.frame:
            return SourcePlace(self.node, frame, iteration)
        return SourcePlace(self.node, f"{frame}[{iteration}]/{self.frame}", self.iteration)


class Listing(Sequence[str]):
    """Lines as people read them, each made when somebody does."""

    def __init__(self, lines: Sequence[SourceLine]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return list(Listing(self._lines[index]))
        return f"{self._lines[index].listed}\n"


def _may_loop(node: Node | None) -> bool:
    """Whether a node stands for loops."""
    return node is not None and node.op.name == _PROGRAM


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Source:
    """The code of one region, and the function that it defines."""

    lines: Sequence[SourceLine]
    function: Callable[..., Any]
    filename: str
    #: Whether the function asks its first argument for more than ``interrupt``.
    needs_context: bool
    #: Whether it does nothing but compute.
    is_pure: bool
    #: Whether it does nothing but compute, check, and look at variables.
    only_reads: bool = False
    #: The names of variables in the code, if it may have to wait: then it is left, and somebody
    #: else goes on with their values.
    names: Mapping[Var, str] = field(default_factory=dict)

    @property
    def is_straight(self) -> bool:
        """Whether each line runs once at most, and nothing in them has effects or waits."""
        return (
            self.only_reads
            and not self.names
            and not any(line.loops or _may_loop(line.node) for line in self.lines)
        )

    def give_up(self) -> None:
        """Let go of all that the function refers to, itself among it; it cannot run any more."""
        self.function.__globals__.clear()

    @property
    def listing(self) -> str:
        """Code and labels side by side, as ``penstock show --python`` prints them."""
        return "".join(Listing(self.lines))

    def place_of(self, traceback: TracebackType | None) -> SourcePlace | None:
        """The node in whose line an exception arose, or None if it was in none."""
        frames: list[tuple[FrameType, int]] = []
        while traceback is not None:
            frames.append((traceback.tb_frame, traceback.tb_lineno))
            traceback = traceback.tb_next
        return self.place_in(frames)

    def place_now(self, thread: int) -> SourcePlace | None:
        """The node that a thread is at, or None if it is elsewhere.

        Without the GIL the thread goes on meanwhile, and nobody else may look at its frames:
        then it is None as well.
        """
        if not _has_gil():
            return None
        frames: list[tuple[FrameType, int]] = []
        frame = _frame_of(thread)
        while frame is not None:
            frames.insert(0, (frame, frame.f_lineno))
            frame = frame.f_back
        return self.place_in(frames)

    def thread_with(self, is_meant: Callable[[Any], bool]) -> int | None:
        """The thread that runs the function for a step that is meant; None if none does."""
        frames = sys._current_frames() if _has_gil() else {}  # noqa: SLF001  (documented)
        for thread, frame in frames.items():
            inner: FrameType | None = frame
            while inner is not None:
                is_own = inner.f_code.co_filename == self.filename
                if is_own and is_meant(inner.f_locals.get("run")):
                    return thread
                inner = inner.f_back
        return None

    def place_in(self, frames: Sequence[tuple[FrameType, int]]) -> SourcePlace | None:
        """The innermost line of a node, among the frames of a stack, outermost first."""
        found: SourcePlace | None = None
        counters: dict[str, int] = {}
        for frame, number in frames:
            if frame.f_code.co_filename == self.filename:
                line = self.lines[number - 1]
                if line.loops:  # all variables are copied
                    # A part of a loop's body may be a function of its own.
                    known = counters | frame.f_locals
                    counters = {t.counter: known.get(t.counter, 0) for t in line.loops}
                else:
                    counters = {}
                if line.node is not None:
                    found = _place(line, counters)
            elif found is not None:
                found = found._replace(node=node_in(frame) or found.node)
        return found


@collector_paused
def _frame_of(thread: int) -> FrameType | None:
    """What a thread is at.

    Before Python 3.12, ``_current_frames`` holds a lock of the interpreter's while it makes a
    dictionary; a collection in that moment, of an object of thread-local data, would wait for
    the same lock, and the whole process with it, for ever.
    """
    return sys._current_frames().get(thread)  # noqa: SLF001  (documented)


def _has_gil() -> bool:
    """Whether threads take iterations, which on some Pythons may change while they run."""
    is_enabled: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    return is_enabled()


def _place(line: SourceLine, counters: Mapping[str, int]) -> SourcePlace:
    assert line.node is not None
    if not line.loops:
        return SourcePlace(line.node, "", 0)
    parts = [f"{loop.frame}[{counters[loop.counter]}]" for loop in line.loops[:-1]]
    innermost = line.loops[-1]
    return SourcePlace(line.node, "/".join([*parts, innermost.frame]), counters[innermost.counter])


def place_of_thread(thread: int) -> SourcePlace | None:
    """The node that a thread is at, in whichever text; None if it is in none, or nobody can see.

    Where a region calls a function that is another one, that is the inner one's node.
    """
    if not _has_gil():
        return None
    frames: list[tuple[FrameType, int]] = []
    inner: Source | None = None
    frame = _frame_of(thread)
    while frame is not None:
        frames.insert(0, (frame, frame.f_lineno))
        if inner is None:
            inner = _sources.get(frame.f_code.co_filename)
        frame = frame.f_back
    return inner.place_in(frames) if inner is not None else None


def make_source(
    lines: Sequence[SourceLine],
    function: str,
    names: Collection[str],
    objects: Mapping[str, Any],
    *,
    needs_context: bool,
    is_pure: bool = False,
    only_reads: bool = False,
    name_of: Mapping[Var, str] | None = None,
) -> Source:
    """Compile code and take a function out of it.

    The listing is known to tracebacks and debuggers for as long as the source lives.

    Args:
        lines: of whole functions.
        function: which of them to take.
        names: the variables that the code may have, its functions among them.
        objects: what else it may refer to, and call.
        needs_context: see ``Source``.
        is_pure: see ``Source``.
        only_reads: see ``Source``.
        name_of: see ``Source.names``.

    Raises:
        InternalError: the code has something in it that the compiler did not put there.

    """
    filename = f"<penstock region {next(_numbers)}>"
    code = "".join(f"{line.code}\n" for line in lines)
    vet(code, names, objects.keys())
    namespace = {**objects, "__builtins__": {}}
    exec(_compiled(code, filename), namespace)
    source = Source(
        tuple(lines),
        namespace[function],
        filename,
        needs_context,
        is_pure,
        only_reads,
        name_of or {},
    )
    # The cache wants a list; few will ever look at a line.
    _sources[filename] = source
    linecache.cache[filename] = (len(code), None, cast("list[str]", Listing(lines)), filename)
    weakref.finalize(source, linecache.cache.pop, filename, None)
    # Who runs the function has the source.  It and its namespace hold each other, and weights.
    weakref.finalize(source, namespace.clear).atexit = False
    return source


def _compiled(code: str, filename: str) -> CodeType:
    try:
        return compile(code, filename, "exec")
    except SyntaxError as cause:
        raise InternalError(f"the code of a region is no Python: {cause}") from cause
