"""Commands that let the step go on, or look at where it stood.

In:   the words of a command.
Out:  where the step stands then, as text.
Not:  says nothing of values but of those that are watched, and of what was just computed.
"""

from __future__ import annotations

from penstock.debugger import stops
from penstock.debugger.command import Arguments, Command, Console, Parser
from penstock.debugger.history import Recorded
from penstock.debugger.show_tensor import brief, title
from penstock.debugger.stops import Goal, Moment, Stop
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.printable import printable


def shown(console: Console, stop: Stop) -> str:
    """Where the step stands, what was just computed, and what is watched."""
    debugger = console.debugger
    lines = [str(stop)]
    if stop.moment in (Moment.AFTER, Moment.DEAD):
        names = [one.name for one in debugger.history.at(stop.number)]
        lines += [_line(debugger.record(name)) for name in names]
    if stop.moment is Moment.FAILED:
        lines.append(f"  li {printable(stop.node)} lists what it reads, pt shows a tensor")
    for name in debugger.watches:
        found = debugger.records(name)
        lines += ["watched  " + _line(found[-1]).strip()] if found else []
    return "\n".join(lines)


def _line(one: Recorded) -> str:
    return f"  {title(one)} = {brief(one)}" if not one.is_dead else f"  {title(one)}"


def _run(console: Console, words: Arguments) -> str:
    debugger = console.debugger
    for _ in range(words.times - 1 if words.times else 0):
        debugger.end()
        debugger.go(stops.to_the_end(heeds_breakpoints=False))
    if words.filter:
        stop = debugger.run_to_filter(words.filter, exclude=words.exclude)
    else:
        stop = debugger.go(stops.to_the_end(heeds_breakpoints=not words.no_debug))
    return shown(console, stop)


def _run_arguments(parser: Parser) -> None:
    parser.add_argument("-n", dest="no_debug", action="store_true")
    parser.add_argument("-t", dest="times", type=int, default=0, metavar="TIMES")
    parser.add_argument("-f", dest="filter", default="", metavar="FILTER")
    parser.add_argument("-fenn", dest="exclude", default="", metavar="REGEX")


def _step(console: Console, words: Arguments) -> str:
    if words.count < 1:
        raise InvalidArgumentError(f"{words.count} nodes are none")
    return shown(console, console.debugger.step(words.count))


def _step_arguments(parser: Parser) -> None:
    parser.add_argument("-t", dest="count", type=int, default=1, metavar="TIMES")


def _cont(console: Console, words: Arguments) -> str:
    debugger = console.debugger
    goal: Goal = stops.to_the_end()
    if words.node:
        if not set("*?[") & set(words.node):
            debugger.check_name(words.node)
        goal = stops.to_node(words.node, is_before=words.before)
    return shown(console, debugger.go(goal))


def _cont_arguments(parser: Parser) -> None:
    parser.add_argument("-b", dest="before", action="store_true")
    parser.add_argument("node", nargs="?", default="", metavar="NODE")


def _iterate(console: Console, _words: Arguments) -> str:
    return shown(console, console.debugger.iterate())


def _finish(console: Console, _words: Arguments) -> str:
    return shown(console, console.debugger.finish())


def _back(console: Console, words: Arguments) -> str:
    return _looked_at(console, console.debugger.back(words.count))


def _forward(console: Console, words: Arguments) -> str:
    return _looked_at(console, console.debugger.forward(words.count))


def _count_arguments(parser: Parser) -> None:
    parser.add_argument("count", nargs="?", type=int, default=1, metavar="PLACES")


def _where(console: Console, _words: Arguments) -> str:
    stop = console.debugger.stop
    if stop is None:
        raise FailedPreconditionError("No step has begun", next_step="run, or s for one node")
    return _looked_at(console, stop)


def _looked_at(console: Console, stop: Stop) -> str:
    is_back = console.debugger.is_back
    remark = "\nan earlier place: its values can be looked at, and not changed" if is_back else ""
    device = f"\n  on {printable(stop.device)}" if stop.device else ""
    return shown(console, stop) + device + remark


COMMANDS = (
    Command("run", """begin the step, or go on with it, to a breakpoint or the end

  -f FILTER  stop at the first tensor that passes a filter (has_inf_or_nan, has_nan, has_inf, own)
  -fenn REGEX  but for nodes whose names begin with what this matches
  -n         stop nowhere
  -t TIMES   begin that many steps, and stop only in the last""",
        _run, _run_arguments, ("r",)),
    Command("s", "run one node, and stop when it has run\n\n  -t TIMES  run so many",
        _step, _step_arguments, ("step",)),
    Command("cont", """go on to a node, by name or pattern (* ?), and stop when it has run

Without a node, to the next breakpoint or the end.
  -b  stop before it runs""", _cont, _cont_arguments, ("c", "continue")),
    Command("iterate", "go on to the next iteration of this loop, or out of it", _iterate),
    Command("finish", "go on to the end of this function, or else of this loop", _finish),
    Command("back", "look at an earlier place where the step stood, and its values",
        _back, _count_arguments),
    Command("forward", "look at a later place again", _forward, _count_arguments),
    Command("where", "say where the step stands", _where),
)  # fmt: skip
