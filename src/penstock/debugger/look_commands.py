"""Commands that show values.

In:   the words of a command.
Out:  tensors, lists of tensors, values of expressions, as text.
Not:  changes nothing of the step.
"""

from __future__ import annotations

import ast
import io
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from penstock.comparison.as_run import slotted
from penstock.core.files import FileSystem, file_errors
from penstock.core.values import Array
from penstock.debugger.breakpoints import TensorFilter, find_filter
from penstock.debugger.command import Arguments, Command, Console, Parser
from penstock.debugger.expressions import parse
from penstock.debugger.history import Recorded
from penstock.debugger.show_tensor import (
    Ranges,
    brief,
    statistics_lines,
    title,
    value_lines,
)
from penstock.errors import InvalidArgumentError
from penstock.printable import printable

_SORTS: Final[Mapping[str, Callable[[Recorded], Any]]] = {
    "timestamp": operator.attrgetter("number"),
    "dump_size": operator.attrgetter("nbytes"),
    "op_type": operator.attrgetter("op"),
    "tensor_name": operator.attrgetter("name", "number"),
}
#: A tensor, and perhaps a part of it.
_SLICED: Final = re.compile(r"([^\[@]*(?:@[^\[]+\[\d+\](?:/[^\[]+\[\d+\])*)?)(\[.*\])?")
_MOST: Final = 500


def _list(console: Console, words: Arguments) -> str:
    debugger = console.debugger
    wanted = find_filter(words.filter, debugger.filters)[1] if words.filter else None
    name, op = _regex(words.name), _regex(words.op)
    found = [one for one in debugger.records() if name.match(one.node) and op.match(one.op)]
    if wanted is not None:
        found = [one for one in found if one.value is not None and _passes(one, wanted)]
    found.sort(key=_SORTS[words.sort], reverse=words.reverse)
    lines = [f"{len(found)} tensors; {debugger.history.forgotten} were forgotten"]
    if found:
        lines.append(f"{'ms':>10} {'bytes':>10}  tensor")
    lines += [f"{one.seconds * 1e3:10.3f} {one.nbytes:10}  {title(one)}" for one in found[:_MOST]]
    if len(found) > _MOST:
        lines.append(f"… and {len(found) - _MOST} more")
    return "\n".join(lines)


def _passes(one: Recorded, wanted: TensorFilter) -> bool:
    try:
        return bool(wanted(one, one.value))
    except Exception as cause:  # whatever a filter of somebody's own does
        raise InvalidArgumentError(f"The filter fails for {one.key}: {cause}") from cause


def _list_arguments(parser: Parser) -> None:
    parser.add_argument("-n", dest="name", default="", metavar="REGEX")
    parser.add_argument("-t", dest="op", default="", metavar="REGEX")
    parser.add_argument("-f", dest="filter", default="", metavar="FILTER")
    parser.add_argument("-s", dest="sort", choices=list(_SORTS), default="timestamp")
    parser.add_argument("-r", dest="reverse", action="store_true")


def _regex(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as cause:
        raise InvalidArgumentError(f"{text} is no regular expression: {cause}") from cause


def _print(console: Console, words: Arguments) -> str:
    name, part = split_part(words.tensor)
    found = console.debugger.record(name, words.number)
    lines = [title(found)]
    if found.is_dead:
        lines.append(f"it is dead: explain {printable(found.node)} says why")
    elif found.value is not None:
        value = found.value
        if part:
            value = _evaluated(console, f"`{found.key}`{part}", {found.key: found.value})
        lines += _shown(value, words)
    return "\n".join(lines)


def _shown(value: Any, words: Arguments) -> list[str]:
    """A value as the options want it."""
    if words.file:
        _write(np.asarray(value), words.file)
    lines = statistics_lines(value) if words.statistics else []
    lines += value_lines(value, whole=words.whole, ranges=_ranges(words.ranges))
    return [*lines, *([f"wrote {printable(words.file)}"] if words.file else [])]


def _write(array: Array, path: str) -> None:
    if array.dtype.hasobject:
        raise InvalidArgumentError(
            "Text has no place in a .npy file", next_step="dump writes a checkpoint, which has it"
        )
    packed = io.BytesIO()
    np.save(packed, array, allow_pickle=False)
    with file_errors(path):
        FileSystem().write(path, packed.getvalue())


def _show_arguments(parser: Parser) -> None:
    parser.add_argument("-a", dest="whole", action="store_true")
    parser.add_argument("-s", dest="statistics", action="store_true")
    parser.add_argument("-r", dest="ranges", default="", metavar="[LOW,HIGH]")
    parser.add_argument("-w", dest="file", default="", metavar="FILE.npy")


def _print_arguments(parser: Parser) -> None:
    _show_arguments(parser)
    parser.add_argument("-n", dest="number", type=int, default=None, metavar="NUMBER")
    parser.add_argument("tensor", metavar="NODE:SLOT[SLICE]")


def split_part(text: str) -> tuple[str, str]:
    """A tensor's name, and the slice behind it: ``x:0[0, :]``; loops have brackets, too."""
    found = _SLICED.fullmatch(text)
    if found is None:
        raise InvalidArgumentError(f"{text} is no tensor", next_step="write such as x:0[0, :]")
    return found[1], found[2] or ""


def _ranges(text: str) -> Ranges:
    """``[0, 1]`` or ``[[0, 1], [5, inf]]``."""
    if not text:
        return ()
    try:
        given = ast.literal_eval(re.sub(r"\binf\b", "1e999", text))
        pairs = np.asarray(given, np.float64).reshape(-1, 2)
    except (ValueError, SyntaxError, TypeError) as cause:
        raise InvalidArgumentError(
            f"{text} is no range", next_step="write such as [0,1] or [[-inf,0],[5,inf]]"
        ) from cause
    return [(float(low), float(high)) for low, high in pairs]


def _eval(console: Console, words: Arguments) -> str:
    value = _evaluated(console, words.expression, {})
    lines = statistics_lines(value) if words.statistics else []
    return "\n".join([*lines, *value_lines(value, whole=words.whole)])


def _eval_arguments(parser: Parser) -> None:
    parser.add_argument("-a", dest="whole", action="store_true")
    parser.add_argument("-s", dest="statistics", action="store_true")
    parser.epilog = "EXPRESSION"


def _evaluated(console: Console, text: str, known: Mapping[str, Any]) -> Any:
    """An expression over tensors, and over what was seen where the step stands."""
    seen = console.debugger.seen

    def tensor(name: str) -> Any:
        return known[name] if name in known else console.debugger.value(name)

    def named(name: str) -> Any:
        if seen is None:
            raise KeyError(f"there is no {name}: write tensors between backticks, as in `x:0`")
        return seen.named(name)

    return parse(text).evaluate(tensor, named)


def _watch(console: Console, words: Arguments) -> str:
    debugger = console.debugger
    if not words.tensor:
        return (
            "\n".join(
                line
                for name in debugger.watches
                for line in (printable(name), *_values(console, name))
            )
            or "nothing is watched"
        )
    if words.delete:
        if words.tensor not in debugger.watches:
            raise InvalidArgumentError(f"{words.tensor} is not watched")
        debugger.watches.remove(words.tensor)
        return ""
    debugger.check_name(words.tensor.partition(":")[0])
    if words.tensor not in debugger.watches:
        debugger.watches.append(words.tensor)
    return "\n".join([f"{printable(words.tensor)} is watched", *_values(console, words.tensor)])


def _values(console: Console, name: str) -> list[str]:
    """The values of a tensor, one line for each iteration."""
    found = console.debugger.records(name)[-_MOST:]
    return [f"  {_iteration(one):>10}  {brief(one)}" for one in found]


def _iteration(one: Recorded) -> str:
    return ",".join(map(str, one.iterations)) or "-"


def _watch_arguments(parser: Parser) -> None:
    parser.add_argument("-d", dest="delete", action="store_true")
    parser.add_argument("tensor", nargs="?", default="", metavar="NODE:SLOT")


def _feed(console: Console, words: Arguments) -> str:
    feeds = console.debugger.nodes.feeds
    given = feeds.get(slotted(words.tensor))
    if given is None:
        names = ", ".join(feeds) or "nothing"
        raise InvalidArgumentError(f"{words.tensor} is not fed", next_step=f"fed is {names}")
    return "\n".join([printable(words.tensor), *_shown(given, words)])


def _feed_arguments(parser: Parser) -> None:
    _show_arguments(parser)
    parser.add_argument("tensor", metavar="NODE:SLOT")


_SHOWING = """

  -a           show all elements
  -s           with counts, least, largest, mean and a histogram
  -r [LOW,HIGH]  mark the elements in that range, or in several: [[-inf,0],[5,inf]]
  -w FILE.npy  write it as well"""
COMMANDS = (
    Command("lt", """list the tensors that have been computed

  -n REGEX   of nodes whose names begin with what this matches
  -t REGEX   of ops, likewise
  -f FILTER  that pass a filter
  -s KEY     sort by timestamp, dump_size, op_type or tensor_name; -r backwards""",
        _list, _list_arguments, ("list_tensors",)),
    Command("pt", "print a tensor, or a part of it: pt x:0[0, :], pt 'x:0@loop[3]'" + _SHOWING +
        "\n  -n NUMBER    of all its values, that one, from 0",
        _print, _print_arguments, ("print_tensor",)),
    Command("pf", "print what is fed for a tensor" + _SHOWING,
        _feed, _feed_arguments, ("print_feed",)),
    Command("eval", """the value of an expression over tensors: eval [-a] [-s] mean(`x:0`) * 2

Operators of Python, functions of numpy; where a step stands, also node, op, frame, function,
device, iteration, iterations, depth, is_dead, inputs, outputs, value.""",
        _eval, _eval_arguments, takes_expression=True),
    Command("watch", """show a tensor wherever the step stops; alone: all its values so far

  -d  watch it no longer""", _watch, _watch_arguments),
)  # fmt: skip
