"""Write a program as Python.

In:   a program.
Out:  ``Source``.
Not:  decides no order; ``schedule`` does.

One line per node, with the node's name and op in a comment; ``if`` and ``for`` for
structure; names are dropped after their last use, so that memory is freed as early as on
the dataflow tier.  A value that is dead has no name; where deadness can be seen, in what
the region returns, it is None.  A long program becomes several functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count

from penstock.core.limits import DEFAULT_LIMITS, Limits
from penstock.runtime.compiler.code_buffer import Checked, CodeBuffer
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.program import Program, Var, targets_of
from penstock.runtime.compiler.schedule import ScheduledStatement, schedule
from penstock.runtime.compiler.source import Source
from penstock.runtime.compiler.statement_writer import StatementWriter
from penstock.state.checkpoints import begin, checkpoint


def generate(
    program: Program,
    checked: Checked,
    profile: Profile | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Source:
    """The program as a function of its parameters.

    Before them comes the ``StepContext`` or, for a region that is a node for the executor, its
    ``OpKernelContext``.  It returns a tuple of the program's results, and notes in ``profile``
    what each statement costs.

    Raises:
        Irregular: loops or branches are nested too deeply for Python.

    """
    text = CodeBuffer(program, checked, profile, limits)
    return _Generator(program, text, limits.statements).run()


class _Generator:
    """One program on its way to a text."""

    def __init__(self, program: Program, text: CodeBuffer, max_statements: int) -> None:
        self.program = program
        self.text = text
        #: Per function.
        self.max_statements = max_statements

    def run(self) -> Source:
        """Write everything and compile it."""
        program, text = self.program, self.text
        begin("writing Python")
        placed = schedule(program.body)
        params = [text.name(var) for var in program.params]
        if program.is_whole:
            params.append("*_")
        main = text.names.new("region")
        results = program.results
        writer = StatementWriter(text, program.body, kept={*program.params, *results})
        writer.start(main, params)
        if text.profile is not None:
            writer.line(f"start({', '.join(map(text.name, program.params))})")
        for var in dict.fromkeys(results):
            if var in program.may_be_dead:  # its branch may not be taken, and None is dead
                writer.line(f"{text.name(var)} = None")
        if len(placed) > self.max_statements:
            self._write_parts(writer, placed)
        else:
            writer.write(placed)
        returned = ", ".join(text.name(var) for var in results)
        writer.close_blocks()
        writer.line(f"return ({returned}{',' if len(results) == 1 else ''})")
        text.functions.append(writer.finished())
        return text.compiled(program.name, main)

    def _write_parts(self, writer: StatementWriter, placed: Sequence[ScheduledStatement]) -> None:
        """One function per so many statements, called one after the other."""
        parts = _cut(placed, self.max_statements)
        uses = Counter(var for item in placed for var in item.reads)
        uses.update(self.program.results)
        there = _Existing(self.program.params)
        there.add(var for var in self.program.results if var in self.program.may_be_dead)
        for part in parts:
            checkpoint()
            used = {var for item in part for var in item.reads}
            made = dict.fromkeys(t for p in part for t in targets_of(p.statement))
            uses.subtract(var for item in part for var in item.reads)
            taken = there.among(used.union(made))
            given = [var for var in made if uses[var] > 0]
            self._write_part(writer, part, taken, given)
            there.add(made)
            gone = [
                var
                for var in there.among(used.union(made))
                if uses[var] <= 0 and var not in writer.kept
            ]
            known = set(taken)
            doomed = [self.text.name(var) for var in gone if var in known]
            if doomed:  # by the caller as well: the part could only drop its own reference
                writer.line("del " + ", ".join(doomed))
            there.drop(gone)

    def _write_part(
        self,
        main: StatementWriter,
        part: Sequence[ScheduledStatement],
        taken: Sequence[Var],
        given: Sequence[Var],
    ) -> None:
        name = self.text.names.new("part")
        writer = StatementWriter(self.text, self.program.body, kept={*taken, *given})
        arguments = [self.text.name(var) for var in taken]
        writer.start(name, arguments)
        writer.write_question()
        known = set(taken)
        for var in given:
            if var not in known:
                writer.line(f"{self.text.name(var)} = None")
        writer.write(part)
        writer.close_blocks()
        writer.line(f"return ({''.join(f'{self.text.name(var)}, ' for var in given)})")
        self.text.functions.append(writer.finished())
        call = f"{name}({', '.join(['run', *arguments])})"
        if given:
            call = (
                f"{', '.join(map(self.text.name, given))}{',' if len(given) == 1 else ''} = {call}"
            )
        main.line(call)


class _Existing:
    """Names that exist, in the order in which they came to be.

    There may be as many as statements: nobody goes through all of them for a part's sake.
    """

    def __init__(self, variables: Iterable[Var]) -> None:
        self._numbers = count()
        #: When each came to be.
        self._number_of: dict[Var, int] = {}
        self.add(variables)

    def add(self, variables: Iterable[Var]) -> None:
        """They exist from now on, if they did not before."""
        for var in variables:
            if var not in self._number_of:
                self._number_of[var] = next(self._numbers)

    def among(self, variables: Iterable[Var]) -> list[Var]:
        """Those of some variables that exist."""
        known = self._number_of
        return sorted((var for var in variables if var in known), key=known.__getitem__)

    def drop(self, variables: Iterable[Var]) -> None:
        """They exist no longer."""
        for var in variables:
            del self._number_of[var]


def _cut(placed: Sequence[ScheduledStatement], size: int) -> list[list[ScheduledStatement]]:
    """Pieces of about this size that end outside of all branches."""
    parts: list[list[ScheduledStatement]] = [[]]
    for item in placed:
        if len(parts[-1]) >= size and not item.path:
            parts.append([])
        parts[-1].append(item)
    return parts
