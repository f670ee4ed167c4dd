"""The debugger at a terminal: a line is asked for, and what it says is shown.

In:   a ``Debugger``, and a terminal.
Out:  the same debugger, after what somebody typed.
Not:  knows no command: ``commands.py`` has them.

Ctrl-C at the prompt empties the line, and while the step goes on has it stop at its next node; a
step that does not come to one, since it waits for something, is cancelled by another Ctrl-C.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from penstock.core.forks import importing
from penstock.debugger.command import Console
from penstock.debugger.commands import BY_NAME, execute
from penstock.debugger.debugger import Debugger
from penstock.debugger.stops import Stop
from penstock.errors import FailedPreconditionError, OpError
from penstock.printable import printable, printable_lines

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completion

#: Seconds that a step has to come to its next node, before it is said what it is at.
_PATIENCE: Final = 2.0
_PROMPT: Final = "(penstock) "
_LAST_WORD: Final = re.compile(r"[^\s`]*\Z")
_MOST: Final = 200


def interact(console: Console, commands: Sequence[str] = ()) -> None:
    """Ask what to do, until somebody has had enough.

    Args:
        console: what is worked on; its debugger stays open.
        commands: lines that are worked off before anybody is asked.

    Raises:
        FailedPreconditionError: prompt_toolkit is not installed.

    """
    read = reader(console.debugger) if sys.stdin.isatty() else _piped
    for line in commands:
        show(f"{_PROMPT}{printable(line)}")
        answer(console, partial(_patiently, console, line))
    while not console.is_over:
        try:
            line = read()
        except KeyboardInterrupt:
            continue  # the line is empty again
        except EOFError:
            return
        answer(console, partial(_patiently, console, line))


def work_off(console: Console, commands: Sequence[str]) -> bool:
    """Do what lines say, and ask nobody; returns whether all of that could be done."""
    is_done = True
    for line in commands:
        show(f"{_PROMPT}{printable(line)}")
        is_done = answer(console, partial(execute, console, line)) and is_done
    return is_done


def answer(console: Console, do: Callable[[], str]) -> bool:
    """Do something, and show what it says; returns whether it could be done."""
    try:
        said = do()
    except OpError as error:
        show(printable_lines(f"{error.code.name}: {console.worded(error)}"))
        return False
    if said:
        show(said)
    return True


def show(text: str) -> None:
    """Print lines that are safe to show."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _patiently(console: Console, line: str) -> str:
    """Do what a line says; if Ctrl-C interrupts that, the step stops at its next node."""
    debugger = console.debugger
    try:
        return execute(console, line)
    except KeyboardInterrupt:
        if not debugger.is_going:
            return "interrupted"
        debugger.pause()
    try:
        return str(_come_to_stand(debugger))
    except KeyboardInterrupt:
        debugger.end()
        return str(debugger.stop)


def _come_to_stand(debugger: Debugger) -> Stop:
    """Wait for a step that is to stop; say what it is at if that takes long."""
    try:
        return debugger.wait(_PATIENCE)
    except TimeoutError:
        show(printable_lines(debugger.waits_for()))
        show("The step is not at a node. Ctrl-C cancels it.")
        return debugger.wait()


def _piped() -> str:
    """A line of what is no terminal."""
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    show(f"{_PROMPT}{printable(line.strip())}")
    return line


def reader(debugger: Debugger) -> Callable[[], str]:
    """What asks for a line, with a history and completion.

    Raises:
        FailedPreconditionError: prompt_toolkit is not installed.

    """
    try:
        with importing:
            from prompt_toolkit import PromptSession  # noqa: PLC0415
            from prompt_toolkit.completion import Completer, Completion  # noqa: PLC0415
    except ImportError as cause:
        raise FailedPreconditionError(
            "The debugger's prompt needs prompt_toolkit, which is not installed",
            next_step="pip install 'penstock[debug]'; or give commands by --command",
        ) from cause

    class Words(Completer):
        """Names of commands, then those of nodes."""

        def get_completions(self, document: Any, _event: Any) -> Iterable[Completion]:
            line = document.text_before_cursor
            word = _LAST_WORD.search(line)
            assert word is not None
            for text in completions(debugger, line):
                yield Completion(text, -len(word[0]), display=printable(text))

    session: PromptSession[str] = PromptSession(
        completer=Words(), complete_while_typing=False, enable_history_search=True
    )
    return lambda: session.prompt(_PROMPT)


def completions(debugger: Debugger, line: str) -> Iterator[str]:
    """What the last word of a line may become: a command, a filter, or a node."""
    found = _LAST_WORD.search(line)
    word = found[0] if found else ""
    before = line[: len(line) - len(word)].split()
    if not before or before == ["help"]:
        names: Iterable[str] = sorted(BY_NAME)
    elif before[-1] == "-f":
        names = sorted(debugger.filters)
    else:
        names = debugger.nodes.names()
    matching = (name for name in names if name.startswith(word) and name.isprintable())
    for _, name in zip(range(_MOST), matching, strict=False):
        yield name
