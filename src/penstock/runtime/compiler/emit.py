"""Write a program as Python.

In:   a program.
Out:  ``Source``.
Not:  decides no order; ``schedule`` does.

One line per node, with the node's name and op in a comment; ``if`` and ``for`` for
structure; names are dropped after their last use, so that memory is freed as early as on
the dataflow tier.  A value that is dead has no name; where deadness can be seen, in what
the region returns, it is None.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from penstock.errors import CancelledError, OpError
from penstock.graph.graph import Node
from penstock.kernels.bound import BoundKernel
from penstock.kernels.context import Interrupt, OpKernelContext
from penstock.kernels.elementwise import is_elementwise
from penstock.kernels.registry import Calling
from penstock.runtime.compiler.blocks import in_blocks
from penstock.runtime.compiler.expressions import as_pred, operator_text
from penstock.runtime.compiler.loops import Irregular
from penstock.runtime.compiler.names import Names
from penstock.runtime.compiler.predicates import ALWAYS, NEVER, Condition, Predicate
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.program import (
    Body,
    Call,
    Chain,
    Constant,
    Initialized,
    Move,
    Operand,
    Program,
    Read,
    Repeat,
    Statement,
    Test,
    Var,
    targets_of,
    variable_of,
)
from penstock.runtime.compiler.schedule import (
    Entangled,
    Outcome,
    Path,
    Placed,
    schedule,
    schedule_turn,
)
from penstock.runtime.compiler.source import Line, Source, Turns, make_source
from penstock.runtime.frame_names import FrameTag
from penstock.runtime.references import initialized, read

#: Statements per function: more are split, since Python compiles, and people read, several
#: functions more easily than a huge one.
MAX_STATEMENTS: Final = 2_000
#: CPython allows 20 blocks that loop and 100 levels of indentation.
_MAX_LOOPS: Final = 15
_MAX_LEVELS: Final = 90


def end_loop(interrupt: Interrupt) -> None:
    """Leave a loop whose step must end; raises why."""
    reason: OpError | None = interrupt.reason
    if reason is None:
        reason = CancelledError("Loop execution was cancelled.", derived=True)
    raise reason


#: Ops that name what they make after the turn of the loop.
_FRAMED: Final = frozenset({"TemporaryVariable", "DestroyTemporaryVariable"})

#: What every text may refer to.
_OBJECTS: Final[Mapping[str, Any]] = {
    "as_pred": as_pred,
    "context_of": OpKernelContext,
    "count": itertools.count,
    "end_loop": end_loop,
    "false": np.False_,
    "frame_tag": FrameTag,
    "in_blocks": in_blocks,
    "initialized": initialized,
    "ndarray": np.ndarray,
    "read": read,
    "root_frame": FrameTag(None, 0, ""),
    "true": np.True_,
}
_LOCALS: Final = ("run", "interrupt", "_")

#: Makes sure that a kernel returns what its node declares; None if it is trusted.
Checked = Callable[[Node, BoundKernel], Callable[..., Any]]


def emit(program: Program, checked: Checked, profile: Profile | None = None) -> Source:
    """The program as a function of its parameters.

    Before them comes the ``StepContext`` or, for a region that is a node for the executor, its
    ``OpKernelContext``.  It returns a tuple of the program's results, and notes in ``profile``
    what each statement costs.

    Raises:
        Irregular: loops or branches are nested too deeply for Python.

    """
    return _Emitter(program, checked, profile).run()


class _Emitter:
    """One text under construction."""

    def __init__(self, program: Program, checked: Checked, profile: Profile | None) -> None:
        self.program = program
        self.checked = checked
        self.profile = profile
        #: What the text refers to, by name; and the names of kernels, by identity.
        self.objects: dict[str, Any] = dict(_OBJECTS)
        self._names_of_objects: dict[int, str] = {}
        self.names = Names([*_OBJECTS, *_LOCALS])
        if profile is not None:
            self.objects |= {"probe": profile.probe, "start": profile.start}
        #: The names that variables have got.
        self.name_of: dict[Var, str] = {}
        self.functions: list[list[Line]] = []
        #: Whether some kernel is called with a context.
        self.needs_context = False
        #: The step, and the turn of a loop that the region as a whole stands in.
        self.step, self.around = (
            ("run", "root_frame, 0")
            if program.is_whole
            else ("run.step", "run.frame, run.iteration")
        )

    def run(self) -> Source:
        """Write everything and compile it."""
        program = self.program
        placed = schedule(program.body)
        params = [self.name(var) for var in program.params]
        if program.is_whole:
            params.append("*_")
        main = self.names.new("region")
        results = program.results
        writer = _Writer(self, program.body, kept={*program.params, *results})
        writer.start(main, params)
        if self.profile is not None:
            writer.line("start()")
        for var in dict.fromkeys(results):
            if var in program.may_be_dead:
                writer.line(f"{self.name(var)} = None")
        if len(placed) > MAX_STATEMENTS:
            self._write_parts(writer, placed)
        else:
            writer.write(placed)
        returned = ", ".join(self.name(var) for var in results)
        writer.close_blocks()
        writer.line(f"return ({returned}{',' if len(results) == 1 else ''})")
        self.functions.append(writer.finished())
        lines = [Line(f"# {program.name}")]
        for function in self.functions:
            lines += [Line(""), *function]
        return make_source(
            program.name, lines, main, self.objects, needs_context=self.needs_context
        )

    def _write_parts(self, writer: _Writer, placed: Sequence[Placed]) -> None:
        """One function per so many statements, called one after the other."""
        parts = _cut(placed)
        uses = Counter(var for item in placed for var in item.reads)
        uses.update(self.program.results)
        #: Names that exist, in the order in which they came to be.
        there: dict[Var, None] = dict.fromkeys(self.program.params)
        there.update(dict.fromkeys(v for v in writer.kept if v in self.program.may_be_dead))
        for part in parts:
            used = {var for item in part for var in item.reads}
            made = dict.fromkeys(t for p in part for t in targets_of(p.statement))
            uses.subtract(var for item in part for var in item.reads)
            taken = [var for var in there if var in used or var in made]
            given = [var for var in made if uses[var] > 0]
            self._write_part(writer, part, taken, given)
            there.update(made)
            gone = [var for var in there if uses[var] <= 0 and var not in writer.kept]
            doomed = [self.name(var) for var in gone if var in taken]
            if doomed:
                writer.line("del " + ", ".join(doomed))
            for var in gone:
                del there[var]

    def _write_part(
        self, main: _Writer, part: Sequence[Placed], taken: Sequence[Var], given: Sequence[Var]
    ) -> None:
        name = self.names.new("part")
        writer = _Writer(self, self.program.body, kept={*taken, *given})
        arguments = [self.name(var) for var in taken]
        writer.start(name, arguments)
        writer.line("if interrupt.loops_end:")
        writer.line("    end_loop(interrupt)")
        for var in given:
            if var not in taken:
                writer.line(f"{self.name(var)} = None")
        writer.write(part)
        writer.close_blocks()
        writer.line(f"return ({''.join(f'{self.name(var)}, ' for var in given)})")
        self.functions.append(writer.finished())
        call = f"{name}({', '.join(['run', *arguments])})"
        if given:
            call = f"{', '.join(map(self.name, given))}{',' if len(given) == 1 else ''} = {call}"
        main.line(call)

    # -- names -------------------------------------------------------------------------

    def name(self, var: Var) -> str:
        """The name of a variable; a constant's object is made known under it."""
        name = self.name_of.get(var)
        if name is None:
            name = self.name_of[var] = self.names.new(var.hint)
            if isinstance(var, Constant):
                self.objects[name] = var.value
        return name

    def object(self, value: Any, hint: str) -> str:
        """A name for an object; the same for the same object."""
        name = self._names_of_objects.get(id(value))
        if name is None:
            name = self._names_of_objects[id(value)] = self.names.new(hint, "k_")
            self.objects[name] = value
        return name


def _asks_frame(call: Call) -> bool:
    """Whether a kernel may want to know in which turn it is: few of Penstock's own do."""
    return not call.kernel.is_builtin or call.node.op.name in _FRAMED


def _cut(placed: Sequence[Placed]) -> list[list[Placed]]:
    """Pieces of about the same size that end outside of all branches."""
    parts: list[list[Placed]] = [[]]
    for item in placed:
        if len(parts[-1]) >= MAX_STATEMENTS and not item.path:
            parts.append([])
        parts[-1].append(item)
    return parts


class _Writer:
    """Writes the statements of one body into one function."""

    def __init__(
        self,
        emitter: _Emitter,
        body: Body,
        *,
        kept: set[Var],
        loops: tuple[Turns, ...] = (),
        indent: int = 1,
    ) -> None:
        self.emitter = emitter
        self.body = body
        #: Variables that are not to be dropped here.
        self.kept = kept
        self.loops = loops
        self.indent = indent
        self.lines: list[Line] = []
        #: Lines that come before all others: what the function takes out of its context.
        self.prelude: dict[str, None] = {}
        self.head = ""
        #: The branch that is open.
        self._path: Path = ()
        #: Whether each of its blocks is an "else".
        self._elses: list[bool] = []
        #: Names to be dropped when their branch is reached again, by branch.
        self._doomed: dict[Path, list[Var]] = {}
        #: The branches in which variables are known.
        self._home: dict[Var, Path] = {}
        #: Variables with arrays of their own memory, or numbers: never a view of another's.
        self._fresh: set[Var] = set()
        #: Variables that get their value in one of several branches.
        self._moved: set[Var] = set()
        self._uses: Counter[Var] = Counter()
        self._conditions = set(body.conditions)

    # -- the function --------------------------------------------------------------------

    def start(self, name: str, params: Sequence[str]) -> None:
        """Begin a function."""
        self.head = f"def {name}({', '.join(['run', *params])}):"

    def finished(self) -> list[Line]:
        """The function's lines."""
        interrupt = ["    interrupt = run.interrupt"] if self._asks_interrupt() else []
        prelude = [Line(f"    {text}") for text in self.prelude]
        return [Line(self.head), *map(Line, interrupt), *prelude, *self.lines]

    def _asks_interrupt(self) -> bool:
        return any("interrupt" in line.text for line in self.lines)

    def line(self, text: str, node: Node | None = None) -> None:
        """Add a line to the branch that is open."""
        level = self.indent + len(self._path)
        if level > _MAX_LEVELS:
            raise Irregular("branches are nested too deeply for Python")
        comment = f"  # {node.name} ({node.op.name})" if node is not None else ""
        self.lines.append(Line("    " * level + text + comment, node, self.loops))

    # -- statements ------------------------------------------------------------------------

    def write(self, placed: Sequence[Placed], end_uses: Iterable[Var] = ()) -> None:
        """Write statements in order; ``end_uses`` are used after the last."""
        self._uses.update(end_uses)
        self._uses.update(var for item in placed for var in item.reads)
        for statement, path, reads in placed:
            if path != self._path:
                self._go_to(path)
            targets = targets_of(statement)
            for var in targets:
                self._settle(var, path)
            self._write_statement(statement)
            if isinstance(statement, Call) and is_elementwise(statement.kernel.compute):
                self._fresh.update(targets)
            self._used(reads)
            for var in targets:
                if not self._uses[var]:
                    self._doom(var)
            if path in self._doomed:
                self._drop()

    def _settle(self, var: Var, path: Path) -> None:
        """Note in which branch a variable is known; one with several moves, in all of them."""
        home = self._home.get(var)
        if home is not None and home != path:
            self._moved.add(var)
            path = _common(home, path)
        self._home[var] = path

    def _used(self, variables: Sequence[Var]) -> None:
        for var in variables:
            self._uses[var] -= 1
            if not self._uses[var]:
                self._doom(var)

    def _doom(self, var: Var) -> None:
        home = self._home.get(var)
        # A condition is a single boolean, and not worth dropping.
        if home is not None and var not in self.kept and var not in self._conditions:
            waiting = self._doomed.setdefault(home, [])
            if var not in waiting:
                waiting.append(var)

    def _drop(self) -> None:
        name = self.emitter.name
        doomed = self._doomed.pop(self._path, ())
        # A name with several moves may have got no value at all, which "del" would not forgive.
        for var in doomed:
            if var in self._moved:
                self.line(f"{name(var)} = None")
        sure = [name(var) for var in doomed if var not in self._moved]
        if sure:
            self.line("del " + ", ".join(sure))

    def _write_statement(self, statement: Statement) -> None:
        if isinstance(statement, Call):
            self._write_call(statement)
        elif isinstance(statement, Move):
            target = self.emitter.name(statement.target)
            self.line(f"{target} = {self._operand(statement.source)}", statement.node)
        elif isinstance(statement, Test):
            self._write_test(statement)
        elif isinstance(statement, Repeat):
            self._write_loop(statement)
        elif isinstance(statement, Chain):
            self._write_chain(statement)

    def _write_call(self, call: Call) -> None:
        text = self._called(call)
        targets = [self.emitter.name(var) if var is not None else "_" for var in call.outputs]
        if not any(call.outputs):
            self.line(text, call.node)
        elif call.node.op.has_bare_output:
            self.line(f"{targets[0]} = {text}", call.node)
        else:
            self.line(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {text}", call.node)
        profile = self.emitter.profile
        if profile is not None:
            first = next((name for name in targets if name != "_"), "None")
            self.line(f"probe({profile.number_of(call.node)}, {first})")

    def _called(self, call: Call) -> str:
        """A kernel's call as an expression."""
        arguments = [self._operand(operand) for operand in call.inputs]
        # What is checked is no operator any more.
        compute = self.emitter.checked(call.node, call.kernel)
        text = operator_text(compute, arguments)
        if text is not None:
            return text
        if self._may_overwrite(call, compute):
            kernel, [only] = self.emitter.object(compute, call.node.name), arguments
            return f"{kernel}({only}, {only}) if type({only}) is ndarray else {kernel}({only})"
        if call.kernel.calling is Calling.CONTEXT:
            arguments.insert(0, self._context(call))
        return f"{self.emitter.object(compute, call.node.name)}({', '.join(arguments)})"

    def _may_overwrite(self, call: Call, compute: object) -> bool:
        """Whether a function of one number may put its result where its input was.

        It saves an allocation (a quarter of the time for a few numbers, and page faults for
        many).  The input must be an array that a kernel of this body has just made, and that
        nobody else will look at.
        """
        if not isinstance(compute, np.ufunc) or compute.nin != 1:
            return False
        [operand] = call.inputs
        return (
            isinstance(operand, Var)
            and operand in self._fresh
            and operand not in self.kept
            and self._uses[operand] == 1
            and call.node.input_types == call.node.output_types
        )

    def _write_chain(self, chain: Chain) -> None:
        """A function of one piece, and its use for all of them."""
        name, inputs = self.emitter.names.new("chain"), list(map(self.emitter.name, chain.inputs))
        writer = _Writer(self.emitter, self.body, kept={chain.target}, loops=self.loops)
        writer.head = f"def {name}({', '.join(inputs)}):"
        writer.write([Placed(c, (), tuple(map(variable_of, c.inputs))) for c in chain.calls])
        writer.line(f"return {self.emitter.name(chain.target)}")
        self.emitter.functions.append(writer.finished())
        arguments = ", ".join([name, *inputs])
        self.line(f"{self.emitter.name(chain.target)} = in_blocks({arguments})", chain.node)

    def _context(self, call: Call) -> str:
        """The name of a node's kernel context, which is made once per run."""
        node = call.node
        self.emitter.needs_context = True
        name = self.emitter.names.new(node.name, "c_")
        place = f'{node.name!r}, "{node.op.name}", {self.emitter.around}'
        self.prelude[f"{name} = context_of({self.emitter.step}, {place}, False)"] = None
        if self.loops and _asks_frame(call):
            counter = self.loops[-1].counter
            self.line(f"{name}.frame, {name}.iteration = frame_{counter}, {counter}")
        return name

    def _write_test(self, test: Test) -> None:
        name = self.emitter.name(test.target)
        if test.source is not test.target:
            self.line(f"{name} = {self._operand(test.source)}", test.node)
        self.line(f"if {name} is not true and {name} is not false:")
        self.line(f"    {name} = as_pred({name})", test.node)

    def _operand(self, operand: Operand) -> str:
        if isinstance(operand, Read):
            return f"read({self.emitter.name(operand.var)}, {operand.source!r})"
        if isinstance(operand, Initialized):
            return f"initialized({self.emitter.name(operand.var)}, {operand.source!r})"
        return self.emitter.name(operand)

    # -- loops -----------------------------------------------------------------------------

    def _write_loop(self, repeat: Repeat) -> None:
        if len(self.loops) >= _MAX_LOOPS:
            raise Irregular("loops are nested too deeply for Python")
        name = self.emitter.name
        for var, first, _ in repeat.variables:
            self.line(f"{name(var)} = {self._operand(first)}", repeat.node)
        turns = Turns(repeat.frame, self.emitter.names.new("turn"))
        at = len(self.lines)
        self.line(f"for {turns.counter} in count():  # {repeat.frame}")
        inner = _Writer(
            self.emitter,
            repeat.body,
            kept={*repeat.exits, *(var for var, _, _ in repeat.variables)},
            loops=(*self.loops, turns),
            indent=self.indent + len(self._path) + 1,
        )
        inner.write_turn(repeat)
        if any(f"frame_{turns.counter}" in line.text for line in inner.lines):
            self._write_frame_tag(turns, at)
        self.lines += inner.lines
        self.prelude |= inner.prelude
        left = [var for var, _, _ in repeat.variables if var not in repeat.exits]
        if left:
            self.line("del " + ", ".join(map(name, left)))

    def _write_frame_tag(self, turns: Turns, at: int) -> None:
        """Name the dynamic frame, for the kernels that ask."""
        outer = self.emitter.around
        if self.loops:
            counter = self.loops[-1].counter
            outer = f"frame_{counter}, {counter}"
        self.line(f"frame_{turns.counter} = frame_tag({outer}, {turns.frame!r})")
        self.lines.insert(at, self.lines.pop())

    def write_turn(self, repeat: Repeat) -> None:
        """Write one turn of a loop."""
        turn = schedule_turn(repeat.body, repeat.goes_on)
        condition = self.body.conditions[repeat.goes_on]
        following = [variable_of(operand) for _, _, operand in repeat.variables]
        self.line("if interrupt.loops_end:")
        self.line("    end_loop(interrupt)", repeat.node)
        later = [var for item in turn.after for var in item.reads]
        self.write(turn.before, [*following, *later, condition])
        self.close_blocks()
        self.line(f"if {self.emitter.name(condition)} is not true:")
        self.line("    break")
        self._used([condition])
        self._uses.subtract(later)
        self.write(turn.after)
        self.close_blocks()
        moves = [
            (self.emitter.name(var), self._operand(operand))
            for var, _, operand in repeat.variables
            if operand is not var
        ]
        if moves:
            targets, sources = zip(*moves, strict=True)
            self.line(f"{', '.join(targets)} = {', '.join(sources)}", repeat.node)

    # -- branches --------------------------------------------------------------------------

    def close_blocks(self) -> None:
        """Leave all branches."""
        self._go_to(())

    def _go_to(self, path: Path) -> None:
        """Close and open branches until the right one is open."""
        shared = len(_common(self._path, path))
        while len(self._path) > shared:
            closed, was_else = self._path[-1], self._elses.pop()
            self._path = self._path[:-1]
            at_fork = len(self._path) == shared < len(path)
            if at_fork and not was_else and _are_opposite(closed, path[shared]):
                self.line("else:")
                self._open(path[shared], is_else=True)
                shared += 1
            else:
                self._drop()
        for step in path[shared:]:
            self.line(f"if {self._condition(step)}:")
            self._open(step, is_else=False)

    def _open(self, step: Outcome | Entangled, *, is_else: bool) -> None:
        self._path = (*self._path, step)
        self._elses.append(is_else)

    def _condition(self, step: Outcome | Entangled) -> str:
        if isinstance(step, Entangled):
            return self._predicate(step.predicate)
        return self._outcome(step.condition, is_true=step.is_true)

    def _outcome(self, condition: Condition, *, is_true: bool) -> str:
        name = self.emitter.name(self.body.conditions[condition])
        if condition in self.body.arrivals:
            return f"{name} is not None" if is_true else f"{name} is None"
        return f"{name} is true" if is_true else f"{name} is not true"

    def _predicate(self, predicate: Predicate) -> str:
        """A predicate as an expression; what is not known yet is not asked."""
        condition, low, high = self.body.predicates.parts(predicate)
        yes, no = self._outcome(condition, is_true=True), self._outcome(condition, is_true=False)
        if high == ALWAYS:
            return yes if low == NEVER else f"{yes} or ({self._predicate(low)})"
        if low == ALWAYS:
            return no if high == NEVER else f"{no} or ({self._predicate(high)})"
        if low == NEVER:
            return f"{yes} and ({self._predicate(high)})"
        if high == NEVER:
            return f"{no} and ({self._predicate(low)})"
        return f"({self._predicate(high)}) if {yes} else ({self._predicate(low)})"


def _common(a: Path, b: Path) -> Path:
    """The beginning that two paths share."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return a[:count]


def _are_opposite(a: Outcome | Entangled, b: Outcome | Entangled) -> bool:
    return (
        isinstance(a, Outcome)
        and isinstance(b, Outcome)
        and a.condition == b.condition
        and a.is_true != b.is_true
    )
