"""All commands, and the border where what they say becomes safe to show.

In:   a line.
Out:  text, in which nothing of a model is obeyed by a terminal.
Not:  knows no terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.debugger import change_commands, look_commands, move_commands, node_commands
from penstock.debugger.command import Arguments, Command, Console, Parser
from penstock.errors import InvalidArgumentError
from penstock.printable import printable_lines


def _help(_console: Console, words: Arguments) -> str:
    if words.command:
        command = find(words.command)
        names = ", ".join((command.name, *command.aliases))
        usage = command.parser.format_usage().removeprefix("usage: ").strip()
        return f"{usage}\n{names}: {command.help}"
    width = max(map(len, (command.name for command in COMMANDS)))
    rows = [f"  {c.name.ljust(width)}  {c.help.partition(chr(10))[0]}" for c in COMMANDS]
    return "\n".join([*rows, "help COMMAND says more; Ctrl-C stops a step at its next node"])


def _help_arguments(parser: Parser) -> None:
    parser.add_argument("command", nargs="?", default="", metavar="COMMAND")


def _exit(console: Console, _words: Arguments) -> str:
    console.is_over = True
    return ""


COMMANDS: Final = (
    *move_commands.COMMANDS,
    *look_commands.COMMANDS,
    *node_commands.COMMANDS,
    *change_commands.COMMANDS,
    Command("help", "what there is", _help, _help_arguments, ("h",)),
    Command("exit", "leave; the step is cancelled", _exit, aliases=("quit", "q")),
)
BY_NAME: Final[Mapping[str, Command]] = {
    name: command for command in COMMANDS for name in (command.name, *command.aliases)
}


def find(name: str) -> Command:
    """A command by its name.

    Raises:
        InvalidArgumentError: there is none.

    """
    if name not in BY_NAME:
        raise InvalidArgumentError(f"There is no command {name}", next_step="ask for help")
    return BY_NAME[name]


def execute(console: Console, line: str) -> str:
    """What a line says, safe to show.

    Raises:
        OpError: it makes no sense, or cannot be done now.

    """
    name, _, rest = line.strip().partition(" ")
    return printable_lines(find(name)(console, rest.strip())) if name else ""
