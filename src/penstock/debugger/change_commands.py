"""Commands that change what the step does, say where it stops, or keep what it computes.

In:   the words of a command.
Out:  what was done, as text.
Not:  loads no Python function itself.
"""

from __future__ import annotations

import ast
import math
from typing import Any, Final

from penstock.comparison.dump_all import dump_all
from penstock.comparison.find_nan import find_nan
from penstock.debugger.command import Arguments, Command, Console, Parser
from penstock.debugger.history import split_key
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.printable import printable

_WORDS: Final = {"true": True, "false": False, "nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def _break(console: Console, words: Arguments) -> str:
    debugger = console.debugger
    if not (words.pattern or words.filter or words.expression):
        return _breakpoints(console)
    pattern = words.pattern or "*"
    if not set("*?[") & set(pattern):
        debugger.check_name(pattern)
    made = debugger.break_at(
        pattern, words.expression or None, passes=words.filter, before=words.before
    )
    return f"breakpoint {printable(str(made))}"


def _breakpoints(console: Console) -> str:
    lines = [f"breakpoint {printable(str(one))}" for one in console.debugger.breakpoints]
    return "\n".join(lines) or "there are no breakpoints"


def _break_arguments(parser: Parser) -> None:
    parser.add_argument("-b", dest="before", action="store_true")
    parser.add_argument("-f", dest="filter", default="", metavar="FILTER")
    parser.add_argument("pattern", nargs="?", default="", metavar="NODE")


def _delete(console: Console, words: Arguments) -> str:
    debugger = console.debugger
    numbers = words.numbers or [one.number for one in debugger.breakpoints]
    for number in numbers:
        debugger.delete(number)
    return _breakpoints(console)


def _delete_arguments(parser: Parser) -> None:
    parser.add_argument("numbers", nargs="*", type=int, metavar="NUMBER")


def _inject(console: Console, words: Arguments) -> str:
    count = console.debugger.set_value(words.tensor, _literal(words.value))
    seen, name = console.debugger.seen, printable(words.tensor)
    if seen is not None and seen.node == split_key(words.tensor)[0].rpartition(":")[0]:
        return f"changed {name} for all who read it"
    return f"changed {name} for {'one' if count == 1 else count} yet to read it"


def _inject_arguments(parser: Parser) -> None:
    parser.add_argument("tensor", metavar="NODE:SLOT")
    parser.add_argument("value", metavar="VALUE")


def _override(console: Console, words: Arguments) -> str:
    debugger = console.debugger
    if not words.node:
        lines = [printable(f"{n} gives {f!r}") for n, f in debugger.overrides.nodes.items()]
        return "\n".join(lines) or "no node is overridden"
    if words.delete:
        if not debugger.overrides.remove(words.node):
            raise InvalidArgumentError(f"{words.node} is not overridden")
        return ""
    if not words.value:
        raise InvalidArgumentError("What is it to give?", next_step="a value, or FILE.py:FUNCTION")
    debugger.override(words.node, _function_or_value(console, words.value))
    return printable(f"{words.node} gives {words.value}")


def _override_arguments(parser: Parser) -> None:
    parser.add_argument("-d", dest="delete", action="store_true")
    parser.add_argument("node", nargs="?", default="", metavar="NODE")
    parser.add_argument("value", nargs="?", default="", metavar="VALUE|FILE.py:FUNCTION")


def _function_or_value(console: Console, text: str) -> Any:
    if ".py:" not in text:
        return _literal(text)
    if console.load_function is None:
        raise FailedPreconditionError(
            "Functions of files are for the command line", next_step="call Debugger.override"
        )
    return console.load_function(text)


def _literal(text: str) -> Any:
    """A number, a truth value, text in quotes, or lists of them."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise InvalidArgumentError(
            f"{printable(text)} is no value", next_step="write such as 3, [[1, 2]] or true"
        ) from None


def _find_nan(console: Console, words: Arguments) -> str:
    debugger = console.debugger
    debugger.end()
    found = find_nan(
        debugger.session, debugger.fetches, debugger.feeds,
        folder=words.folder or None, allows_infinite=words.allows_infinite,
    )  # fmt: skip
    if found is None:
        return "all results are numbers"
    lines = [str(found)]
    if words.folder:
        lines.append(f"wrote {printable(words.folder)}/reproduce.py")
    return "\n".join(lines)


def _find_nan_arguments(parser: Parser) -> None:
    parser.add_argument("-i", dest="allows_infinite", action="store_true")
    parser.add_argument("folder", nargs="?", default="", metavar="FOLDER")


def _dump(console: Console, words: Arguments) -> str:
    debugger = console.debugger
    debugger.end()
    count = dump_all(debugger.session, debugger.fetches, words.path, debugger.feeds)
    return f"wrote {count} values to {printable(words.path)}"


def _dump_arguments(parser: Parser) -> None:
    parser.add_argument("path", metavar="PREFIX")


COMMANDS = (
    Command("break", """stop at nodes, by name or pattern (* ?), when they have run; alone: list

  break NODE if iteration > 10  only if that holds; or: any(isnan(value)), mean(`x:0`) > 1, is_dead
  -b         before they run
  -f FILTER  only if a tensor passes a filter""",
        _break, _break_arguments, ("b",), takes_condition=True),
    Command("delete", "take breakpoints away, by number; without, all of them",
        _delete, _delete_arguments, ("d",)),
    Command("inject_value", "change a live tensor, and go on with that: inject_value x:0 [1,2]",
        _inject, _inject_arguments, ("inject",)),
    Command("override", """have a node give a value, or what a Python function returns; alone: list

  override NODE FILE.py:FUNCTION  the function gets what the node reads
  -d  let it compute again""", _override, _override_arguments),
    Command("find_nan", """run a step of its own to the first node whose result is no number

With a folder, that gets the node as a graph, its inputs as .npz, and a program that runs it.
  -i  infinities are numbers""", _find_nan, _find_nan_arguments),
    Command("dump", "run a step of its own, and write all values as a checkpoint",
        _dump, _dump_arguments),
)  # fmt: skip
