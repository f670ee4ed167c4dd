"""One attack: a text put where a graph has room for text, and everything that is looked at.

In:   a case of the corpus, a kind of place, a payload, and how it is put there.
Out:  what both tiers answered; ``Finding`` raised for what must never happen.
Not:  chooses no attacks.

What must never happen: that code runs, that a payload is handed to Python's compiler, that a
terminal gets to see a control character, that an exception is raised that is no OpError, that the
tiers differ, or that a graph in which only names are other names answers something else.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main
from penstock.core.names import parse_endpoint
from penstock.defs.schema import GraphDef
from penstock.errors import OpError
from penstock.printable import printable_lines
from security.payloads import CANARY
from security.slots import slots_of
from support.corpus import Case

#: No step may take longer.
_LIMIT: Final = ps.RunOptions(timeout_in_ms=5000)
_COMMANDS: Final = (["show", "--nodes"], ["show", "--python"], ["ops", "--missing"])
#: Steps of a case that are run.
_STEPS: Final = 2


class Finding(AssertionError):  # noqa: N818  (it is what tests look for, not an error of theirs)
    """Something happened that must never happen."""


class Way(enum.Enum):
    """How a payload is put into a kind of place."""

    #: Instead of the text in the first of them.
    FIRST = enum.auto()
    #: Instead of the text in the last of them.
    LAST = enum.auto()
    #: Before the text wherever the same text stands in such a place: names stay what they name.
    EVERYWHERE = enum.auto()


#: Kinds that name the same things: to rename them together changes nothing.
_NODE_NAMES: Final = ("node.name", "node.input", "node.attr[_class].list.s")
_FUNCTION_NAMES: Final = (
    "library.function.signature.name", "library.gradient.function_name",
    "library.gradient.gradient_func", "node.op", ".func.name", "library.function.node_def.op",
)  # fmt: skip
_FRAME_NAMES: Final = (".attr[frame_name].s",)
_FREE: Final = (".attr[shared_name].s", ".attr[container].s", ".attr[stack_name].s")

#: The word of all payloads where it is more than the name of a variable; and what was started.
_AS_CODE: Final = re.compile(rf"""['"./>`]{CANARY}|touch {CANARY}|\A{CANARY} """)
#: Texts that were given to Python's compiler since the last look.
_compiled: Final[list[str]] = []
_is_watched = False


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if event == "compile" and isinstance(args[0], (str, bytes)):  # a tree was a text before
        source = args[0]
        _compiled.append(source if isinstance(source, str) else source.decode("utf-8", "replace"))
    elif event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork"):
        _compiled.append(f"{CANARY} {event} {args!r}")


def watch() -> None:
    """See all that is compiled or started in this process from now on."""
    global _is_watched  # noqa: PLW0603  (a hook can never be taken away)
    if not _is_watched:
        _is_watched = True
        sys.addaudithook(_audit)


class Attacker:
    """All attacks on one case."""

    def __init__(self, case: Case, folder: Path) -> None:
        self._case = case
        self._folder = folder
        self._graph = planted(case)
        self.kinds = tuple(dict.fromkeys(slot.kind for slot in slots_of(self._graph)))
        self._answers = [self._run(self._graph, _same, tier) for tier in ps.Tier]
        #: Whether the graph says the same whenever it is asked.
        self._is_steady = _agree(self._answers[0], self._run(self._graph, _same, ps.Tier.DATAFLOW))

    def attack(self, kind: str, payload: str, way: Way) -> str:
        """Make one attack; returns what came of it: ``answered`` or the code of an error.

        Raises:
            Finding: something happened that must never happen.

        """
        _compiled.clear()
        graph = GraphDef()
        graph.CopyFrom(self._graph)
        try:
            renamed = put(graph, kind, payload, way)
            content = graph.SerializeToString()
        except (ValueError, UnicodeError, TypeError):  # no message can hold this text
            return "unwritable"
        answers = [self._run(graph, renamed, tier) for tier in ps.Tier]
        self._look_at_commands(content, payload)
        look_for_code(payload, self._folder)
        if self._is_steady and not _agree(*answers):
            raise Finding(f"the tiers differ: {answers[0]!r:.300} and {answers[1]!r:.300}")
        if isinstance(answers[0], str):
            return answers[0]
        if renamed is not _same and self._is_steady and not _agree(answers[0], self._answers[0]):
            raise Finding(f"other names, another answer: {answers[0]!r:.300}")
        return "answered"

    def _run(self, graph: Any, renamed: Callable[[str], str], tier: ps.Tier) -> Any:
        """The answers to the first steps of the case, or the code of an error."""
        answers: list[Any] = []
        config = ps.Config(tier=tier, device_count=self._case.device_count, accelerate=False)
        try:
            with _quiet(), ps.Session(graph, config=config) as session:
                for step in self._case.steps[:_STEPS]:
                    names = [*step.get("fetches", ()), *step.get("targets", ())]
                    feeds = self._case.feeds(step, str(self._folder).encode())
                    fed = {renamed(name): value for name, value in feeds.items()}
                    answers += session.run(list(map(renamed, names)), fed, _LIMIT)
        except OpError as error:
            look_at_text("".join(traceback.format_exception(error)))
            look_at_text(str(error))
            if "please report" in str(error):
                raise Finding(f"an error that is our own mistake: {error}") from error
            return error.code.name
        except Exception as error:
            raise Finding(f"no OpError: {type(error).__name__}: {error}") from error
        return answers

    def _look_at_commands(self, content: bytes, payload: str) -> None:
        path = self._folder / "attacked.pb"
        path.write_bytes(content)
        for command in _COMMANDS:
            with _quiet():
                result = CliRunner().invoke(main, [*command, str(path)])
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise Finding(f"{command}: {result.exception!r}") from result.exception
            look_at_text(result.output)
            if "\n" in payload.strip("\n") and payload in result.output:
                raise Finding(f"{command} prints a name as two lines")


def planted(case: Case) -> Any:
    """A case's graph with text also in the fields that graphs hardly ever have."""
    graph = case.graph_def()
    node = graph.node[-1]
    node.experimental_debug_info.original_node_names.append("original")
    node.experimental_debug_info.original_func_names.append("original")
    node.attr["_unheard_of"].s = b"text"
    node.attr["_unheard_of_too"].list.s.append(b"text")
    graph.debug_info.files.append("file.py")
    graph.debug_info.frames_by_id[7].func = "caller"
    graph.library.gradient.add(function_name="of_nothing", gradient_func="nothing")
    return graph


def put(graph: Any, kind: str, payload: str, way: Way) -> Callable[[str], str]:
    """Put a payload into a graph; returns what has become of the names of its nodes.

    Raises:
        ValueError: a field of text cannot hold it.

    """
    if way is not Way.EVERYWHERE:
        chosen = [slot for slot in slots_of(graph) if slot.kind == kind]
        chosen[0 if way is Way.FIRST else -1].put(payload)
        return _same
    return _rename(graph, kind, payload)


def can_rename(kind: str) -> bool:
    """Whether texts of such places are names of the graph's own, which may be other names."""
    kinds = (*_NODE_NAMES[:1], *_FUNCTION_NAMES[:1])
    return kind in kinds or kind.endswith((*_FRAME_NAMES, *_FREE))


def _rename(graph: Any, kind: str, payload: str) -> Callable[[str], str]:
    slots = list(slots_of(graph))
    if kind == _NODE_NAMES[0]:
        names = {slot.text for slot in slots if slot.kind == kind}
        for slot in slots:
            if slot.kind in _NODE_NAMES:
                slot.put(_with_name(slot.text, names, payload))
        return lambda text: _with_name(text, names, payload)
    suffixes: tuple[str, ...] = (kind[kind.rindex(".attr[") :],) if ".attr[" in kind else ()
    if kind in _FUNCTION_NAMES:
        suffixes = _FUNCTION_NAMES
        names = {slot.text for slot in slots if slot.kind == kind}
    else:
        names = {slot.text for slot in slots if slot.kind.endswith(suffixes) and slot.text}
    for slot in slots:
        if slot.kind.endswith(suffixes) and slot.text in names:
            slot.put(payload + slot.text)
    return str


def _with_name(text: str, names: set[str], payload: str) -> str:
    before = next(mark for mark in ("^", "loc:@", "") if text.startswith(mark))
    name = text[len(before) :]
    return f"{before}{payload}{name}" if parse_endpoint(name).node in names else text


def _same(text: str) -> str:
    return text


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What is said is looked at, too: a warning is text that a terminal shows."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
    for warning in said:
        look_at_text(str(warning.message))


def look_at_text(text: str) -> None:
    """Raise if a terminal would obey something in a text."""
    if printable_lines(text) != text:
        at = next(i for i, char in enumerate(text) if printable_lines(char) != char)
        raise Finding(f"a control character is shown: {text[max(0, at - 60) : at + 60]!r}")


def look_for_code(payload: str, folder: Path) -> None:
    """Raise if a payload was compiled, or has run."""
    _look_for_traces(folder)
    if CANARY in payload and any(payload in source for source in _compiled):
        raise Finding("text of the graph was given to the compiler")


def look_for_any_code(folder: Path) -> None:
    """Raise if any payload was compiled, or has run, or a process was started since the last look.

    A node's name may end in the word that payloads have, which then is the name of a variable.
    """
    _look_for_traces(folder)
    is_found = any(map(_AS_CODE.search, _compiled))
    _compiled.clear()
    if is_found:
        raise Finding("text of the graph was given to the compiler")


def _look_for_traces(folder: Path) -> None:
    """Raise if a payload has run."""
    if hasattr(builtins, CANARY):
        delattr(builtins, CANARY)
        raise Finding("code of the graph has run")
    for place in (Path(CANARY), folder / CANARY):
        if place.exists():
            place.unlink()
            raise Finding("code of the graph has run, and left a file")


def _agree(one: Any, other: Any) -> bool:
    """Whether two answers are the same, but for last bits and the code of an error."""
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    return len(one) == len(other) and all(map(_are_close, one, other))


def _are_close(one: Any, other: Any) -> bool:
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind in "fc":
        return bool(np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True))
    return a.dtype.hasobject or bool((a == b).all())
