"""What a command is, and how its words are understood.

In:   a line as somebody types it.
Out:  the command's text; InvalidArgumentError for words that make no sense.
Not:  knows no single command, and no terminal.

Words are separated by blanks, but not within quotes, brackets or backticks.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from penstock.debugger.debugger import Debugger
from penstock.errors import InvalidArgumentError, OpError

_WORD: Final = re.compile(
    r"""(?:[^\s"'\[`]|"[^"]*"|'[^']*'|\[(?:[^\[\]]|\[[^\]]*\])*\]|`[^`]*`|["'\[`])+"""
)
#: The words of a command's own, and what is left as it was typed.
_OPTIONS: Final = re.compile(r"((?:-[a-z](?:\s+|$))*)(.*)", re.DOTALL)
_IF: Final = re.compile(r"(?:^|\s)if\s")


@dataclass
class Console:
    """What commands work on, and what they leave for the next one."""

    debugger: Debugger
    #: Python functions by ``FILE.py:NAME``; the command line opens files, and the debugger none.
    load_function: Callable[[str], Any] | None = None
    #: An error in the words of whoever asks.
    worded: Callable[[OpError], str] = str
    #: Whether somebody has had enough.
    is_over: bool = False


class Arguments(argparse.Namespace):
    """The words of a command, understood."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Parser(argparse.ArgumentParser):
    """Understands the words of one command."""

    def __init__(self, name: str) -> None:
        super().__init__(prog=name, add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, rather than end the program."""
        usage = self.format_usage().strip().removeprefix("usage: ")
        raise InvalidArgumentError(f"{self.prog}: {message}", next_step=f"write {usage}")


@dataclass(frozen=True, slots=True)
class Command:
    """One command."""

    name: str
    #: What it does, in one line; more behind that.
    help: str
    run: Callable[[Console, Arguments], str]
    #: Adds what it understands.
    add_arguments: Callable[[Parser], Any] = lambda _parser: None
    aliases: tuple[str, ...] = ()
    #: Whether what follows the options is an expression, which is taken as it is.
    takes_expression: bool = False
    #: Whether ``if`` begins an expression, which is taken as it is.
    takes_condition: bool = False

    @property
    def parser(self) -> Parser:
        """What understands its words."""
        parser = Parser(self.name)
        self.add_arguments(parser)
        return parser

    def __call__(self, console: Console, text: str) -> str:
        """Run it with the words that follow its name."""
        expression = ""
        if self.takes_expression:
            options = _OPTIONS.fullmatch(text)
            assert options is not None
            text, expression = options[1], options[2]
        elif self.takes_condition and (found := _IF.search(text)):
            text, expression = text[: found.start()], text[found.end() :]
        arguments = self.parser.parse_args(words_of(text), Arguments())
        arguments.expression = expression.strip()
        return self.run(console, arguments)


def words_of(text: str) -> list[str]:
    """The words of a line."""
    return [_unquoted(word) for word in _WORD.findall(text)]


def _unquoted(word: str) -> str:
    is_quoted = len(word) > 1 and word[0] == word[-1] and word[0] in "\"'"
    return word[1:-1] if is_quoted else word
