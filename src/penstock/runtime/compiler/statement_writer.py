"""Write the statements of a body, one line per node.

In:   statements in their order and branches.
Out:  the lines of one function.
Not:  decides no order, and compiles nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from penstock.graph.graph import Node
from penstock.kernels.api.long_kernel import LongKernel
from penstock.kernels.api.registry import Calling
from penstock.kernels.api.try_kernel import TryKernel
from penstock.runtime.compiler.branches import Branches
from penstock.runtime.compiler.code_buffer import CodeBuffer
from penstock.runtime.compiler.expressions import operator_text
from penstock.runtime.compiler.lifetimes import Lifetimes
from penstock.runtime.compiler.loops import Irregular
from penstock.runtime.compiler.one_by_one import OneByOne
from penstock.runtime.compiler.program import (
    BatchGroup,
    Body,
    FusedGroup,
    Initialized,
    KernelCall,
    Move,
    Operand,
    ProgramCall,
    Read,
    Repeat,
    Sizes,
    Statement,
    Test,
    UnaryChain,
    Var,
    targets_of,
    variable_of,
)
from penstock.runtime.compiler.schedule import ScheduledStatement, in_order, schedule_iteration
from penstock.runtime.compiler.source import Iterations, SourceLine
from penstock.runtime.compiler.unary_chains import runs_of

#: CPython allows 20 blocks that loop.
_MAX_LOOPS: Final = 15
#: After so many calls of kernels in a row it is asked whether the step must end, which takes
#: 30 ns: a call takes half a microsecond or more, and other statements a tenth of that.
_ASK_EVERY: Final = 16
_OTHERS: Final = 1 / 8
#: What calls a program in C, and how many nodes of one are listed before it.
_SHOWN: Final = 32
_WAYS: Final = {
    Sizes.SHORT: "in_c",
    Sizes.LONG: "in_c_in_parts",
    Sizes.UNKNOWN: "in_c_if_short",
}


class StatementWriter(Branches):
    """Writes the statements of one body into one function."""

    def __init__(
        self,
        text: CodeBuffer,
        body: Body,
        *,
        kept: set[Var],
        loops: tuple[Iterations, ...] = (),
        indent: int = 1,
    ) -> None:
        super().__init__(text, body, loops, indent)
        #: Variables that are not to be dropped here.
        self.kept = kept
        #: Lines that come before all others: what the function takes out of its context.
        self.prelude: dict[str, None] = {}
        self.head = ""
        self._lifetimes = Lifetimes(body, kept)
        #: Variables with arrays of their own memory, or numbers: never a view of another's.
        self._fresh: set[Var] = set()
        #: Whether the function knows its step; and what was called since it asked whether that
        #: must end.
        self.asks = True
        self._unasked = 0.0

    # -- the function --------------------------------------------------------------------

    def start(self, name: str, params: Sequence[str]) -> None:
        """Begin a function."""
        self.head = f"def {name}({', '.join(['run', *params])}):"

    def finished(self) -> list[SourceLine]:
        """The function's lines."""
        asks = any("interrupt." in line.code for line in self.lines)
        interrupt = ["    interrupt = run.interrupt"] if asks else []
        prelude = [SourceLine(f"    {text}") for text in self.prelude]
        return [SourceLine(self.head), *map(SourceLine, interrupt), *prelude, *self.lines]

    # -- statements ------------------------------------------------------------------------

    def write(self, placed: Sequence[ScheduledStatement], end_uses: Iterable[Var] = ()) -> None:
        """Write statements in order; ``end_uses`` are used after the last."""
        self._lifetimes.expect(end_uses)
        self._lifetimes.expect(var for item in placed for var in item.reads)
        for statement, path, reads in placed:
            if path != self.path:
                self.go_to(path)
            targets = targets_of(statement)
            for var in targets:
                self._lifetimes.settle(var, path)
            self._write_statement(statement)
            self._unasked += _OTHERS
            if isinstance(statement, KernelCall) and _makes_fresh(statement):
                self._fresh.update(targets)
            self._lifetimes.used(reads)
            self._lifetimes.check(targets)
            if self._lifetimes.is_doomed(path):
                self.at_home()
            if self._unasked >= _ASK_EVERY and self.asks:
                self.write_question()

    def write_question(self, node: Node | None = None) -> None:
        """Ask whether the step must end."""
        self._unasked = 0.0
        self.line("if interrupt.loops_end:")
        self.line("    end_loop(interrupt)", node)

    def at_home(self) -> None:
        """Drop what is not needed any more."""
        name, lifetimes = self.text.name, self._lifetimes
        doomed = lifetimes.take_doomed(self.path)
        for var in doomed:
            if lifetimes.may_be_unset(var):
                self.line(f"{name(var)} = None")
        sure = [name(var) for var in doomed if not lifetimes.may_be_unset(var)]
        if sure:
            self.line("del " + ", ".join(sure))

    def _write_statement(self, statement: Statement) -> None:
        if isinstance(statement, KernelCall):
            self._write_call(statement)
        elif isinstance(statement, Move):
            target = self.text.name(statement.target)
            self.line(f"{target} = {self._operand(statement.source)}", statement.node)
        elif isinstance(statement, Test):
            self._write_test(statement)
        elif isinstance(statement, Repeat):
            self._write_loop(statement)
        elif isinstance(statement, ProgramCall):
            self._write_program(statement)
        elif isinstance(statement, FusedGroup):
            self._write_chain(statement)
        elif isinstance(statement, UnaryChain):
            self._write_row(statement)
        elif isinstance(statement, BatchGroup):
            self._write_batches(statement)

    def _write_call(self, call: KernelCall) -> None:
        text = self._called(call)
        if isinstance(call.kernel.compute, TryKernel):
            text = self._write_attempt(call, text)
        targets = [self.text.name(var) if var is not None else "_" for var in call.outputs]
        if not any(call.outputs):
            self.line(text, call.node)
        elif call.node.op.has_bare_output:
            self.line(f"{targets[0]} = {text}", call.node)
        else:
            self.line(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {text}", call.node)
            if text == "_":  # so that nothing is kept for longer than it is needed
                self.line("del _")
        self._write_probe(call.node, next((name for name in targets if name != "_"), "None"))

    def _write_attempt(self, call: KernelCall, text: str) -> str:
        """Call a kernel that may have to wait, and leave the function if it must."""
        self.text.may_wait = True
        self.line(f"_ = {text}", call.node)
        self.line("if _ is would_block:")
        self.line("    leave()", call.node)
        return "_"

    def _write_probe(self, node: Node, output: str) -> None:
        """Note what the statement has cost, if somebody wants to know."""
        profile = self.text.profile
        if profile is not None:
            self.line(f"probe({profile.number_of(node)}, {output})")

    def _called(self, call: KernelCall) -> str:
        """A kernel's call as an expression."""
        arguments = [self._operand(operand) for operand in call.inputs]
        self._note_effects(call)
        # What is checked is no operator any more.
        compute = self.text.checked(call.node, call.kernel)
        text = operator_text(compute, arguments)
        if text is not None:
            return text
        self._unasked += 1
        if self._may_overwrite(call, compute):
            kernel, [only] = self.text.object(compute, call.node.name), arguments
            return f"{kernel}({only}, {only}) if type({only}) is ndarray else {kernel}({only})"
        if isinstance(compute, TryKernel):
            self.text.needs_context = True
            compute = compute.try_compute
            arguments.insert(0, self.text.step)
        elif isinstance(compute, LongKernel):
            compute = compute.compute
            arguments.insert(0, f"{self.text.step}.interrupt")
        elif call.kernel.calling is Calling.CONTEXT:
            arguments.insert(0, self._context(call))
        return f"{self.text.object(compute, call.node.name)}({', '.join(arguments)})"

    def _note_effects(self, call: KernelCall) -> None:
        """See whether a kernel does nothing but compute."""
        is_pure, traits = call.kernel.is_pure, call.node.op.traits
        self.text.is_pure &= is_pure
        self.text.only_reads &= is_pure or traits.reads_variable or traits.only_checks

    def _write_row(self, row: UnaryChain) -> None:
        """Many functions in one line."""
        self._unasked += 1
        for call in row.calls:
            self._note_effects(call)
        runs = runs_of(call.kernel.compute for call in row.calls)
        name = self.text.object(runs, f"{row.calls[0].node.name}_to_{row.node.name}")
        target, source = self.text.name(row.target), self._operand(row.source)
        self.line(f"{target} = apply_all({source}, {name})", row.node)
        self._write_probe(row.node, target)

    def _may_overwrite(self, call: KernelCall, compute: object) -> bool:
        """Whether a function of one number may put its result where its input was.

        It saves an allocation (a quarter of the time for a few numbers, and page faults for
        many).  The input must be an array that a kernel of this body has just made, and that
        nobody else looks at, before or after.
        """
        if not isinstance(compute, np.ufunc) or compute.nin != 1:
            return False
        [operand] = call.inputs
        return (
            isinstance(operand, Var)
            and operand in self._fresh
            and self._lifetimes.is_only_use(operand)
            and call.node.input_types == call.node.output_types
        )

    def _write_program(self, call: ProgramCall) -> None:
        """A program in C, and the kernels that it stands for."""
        self._unasked += 1
        for one in call.calls:
            self._note_effects(one)
        is_known = call.sizes is not Sizes.UNKNOWN
        program = call.program.compiled if is_known else call.program
        arguments = [
            self.text.object(program, call.node.name),
            self.text.object(OneByOne(call.calls, call.inputs), "kernels"),
            *(() if is_known else ("run",)),
            *map(self.text.name, call.inputs),
        ]
        for one in call.calls[:-1][:_SHOWN]:
            self.line("", one.node)
        target = self.text.name(call.target)
        self.line(f"{target} = {_WAYS[call.sizes]}({', '.join(arguments)})", call.node)
        self._write_probe(call.node, target)

    def _write_chain(self, chain: FusedGroup) -> None:
        """A function of one piece, and its use for all of them."""
        target, inputs = self.text.name(chain.target), list(map(self.text.name, chain.inputs))
        name = self._write_function("chain", chain.calls, inputs, (chain.target,), target)
        self.line(f"{target} = in_blocks({', '.join([name, *inputs])})", chain.node)

    def _write_batches(self, group: BatchGroup) -> None:
        """A function of some entries of a batch, and its use for all of them."""
        inputs = ["run", *map(self.text.name, group.inputs)]
        targets = "".join(f"{self.text.name(var)}, " for var in group.targets)
        returned, batches = f"({targets})", self.text.object(group.batches, "batches")
        name = self._write_function("entries", group.statements, inputs, group.targets, returned)
        self.line(f"{targets}= in_batches({', '.join([name, batches, *inputs])})", group.node)

    def _write_function(
        self,
        hint: str,
        statements: Sequence[Statement],
        params: Sequence[str],
        kept: Iterable[Var],
        returned: str,
    ) -> str:
        """A function of some statements; its name."""
        self._unasked += 1
        name = self.text.names.new(hint)
        writer = StatementWriter(self.text, self.body, kept={*kept}, loops=self.loops)
        writer.head = f"def {name}({', '.join(params)}):"
        writer.asks = "run" in params
        writer.write(in_order(statements))
        writer.line(f"return {returned}")
        self.text.functions.append(writer.finished())
        return name

    def _context(self, call: KernelCall) -> str:
        """The name of a node's kernel context, which is made once per run."""
        node = call.node
        self.text.needs_context = True
        name = self.text.names.new(node.name, "c_")
        place = f"{self.text.string(node.name)}, {self.text.string(node.op.name)}"
        if self.loops and not call.kernel.reads_frame:
            self.prelude[f"{name} = frameless_of({self.text.step}, {place})"] = None
            return name
        around = f"{self.text.around}, False"
        self.prelude[f"{name} = context_of({self.text.step}, {place}, {around})"] = None
        if self.loops:
            self.line(f"{name}.frame, {name}.iteration = {self._frame_now()}")
        return name

    def _frame_now(self) -> str:
        """The dynamic frame of the innermost loop, and its iteration."""
        loop = self.loops[-1]
        self.text.tags.add(loop.tag)
        return f"{loop.tag}, {loop.counter}"

    def _write_test(self, test: Test) -> None:
        name = self.text.name(test.target)
        if test.source is not test.target:
            self.line(f"{name} = {self._operand(test.source)}", test.node)
        # numpy has one object for each of its two truth values, so that looking which one it is
        # costs least; what is neither (an array, Python's own bool) is made one of them.
        self.line(f"if {name} is not true and {name} is not false:")
        self.line(f"    {name} = as_pred({name})", test.node)

    def _operand(self, operand: Operand) -> str:
        if isinstance(operand, Read):
            return f"read({self._reference(operand)})"
        if isinstance(operand, Initialized):
            return f"initialized({self._reference(operand)})"
        return self.text.name(operand)

    def _reference(self, operand: Read | Initialized) -> str:
        return f"{self.text.name(operand.var)}, {self.text.string(operand.source)}"

    # -- loops -----------------------------------------------------------------------------

    def _write_loop(self, repeat: Repeat) -> None:
        if len(self.loops) >= _MAX_LOOPS:
            raise Irregular("loops are nested too deeply for Python")
        name = self.text.name
        for var, first, _ in repeat.variables:
            self.line(f"{name(var)} = {self._operand(first)}", repeat.node)
        names = self.text.names
        iterations = Iterations(repeat.frame, names.new("iteration_number"), names.new("tag"))
        at = len(self.lines)
        self.line(f"for {iterations.counter} in count():", label=repeat.frame)
        inner = StatementWriter(
            self.text,
            repeat.body,
            kept={*repeat.exits, *(var for var, _, _ in repeat.variables)},
            loops=(*self.loops, iterations),
            indent=self.indent + len(self.path) + 1,
        )
        inner.write_turn(repeat)
        if iterations.tag in self.text.tags:
            self._write_frame_tag(iterations, at)
        self.lines += inner.lines
        self.prelude |= inner.prelude
        left = [var for var, _, _ in repeat.variables if var not in repeat.exits]
        if left:
            self.line("del " + ", ".join(map(name, left)))

    def _write_frame_tag(self, iterations: Iterations, at: int) -> None:
        """Name the dynamic frame, for the kernels that ask."""
        outer = self._frame_now() if self.loops else self.text.around
        self.line(f"{iterations.tag} = frame_tag({outer}, {self.text.string(iterations.frame)})")
        self.lines.insert(at, self.lines.pop())

    def write_turn(self, repeat: Repeat) -> None:
        """Write one iteration of a loop."""
        iteration = schedule_iteration(repeat.body, repeat.goes_on)
        condition = self.body.conditions[repeat.goes_on]
        following = [variable_of(operand) for _, _, operand in repeat.variables]
        self.write_question(repeat.node)
        later = [var for item in iteration.after for var in item.reads]
        self.write(iteration.before, [*following, *later])
        self.close_blocks()
        self.line(f"if {self.text.name(condition)} is not true:")
        self.line("    break")
        self._lifetimes.expect_no_more(later)
        self.write(iteration.after)
        self.close_blocks()
        moves = [
            (self.text.name(var), self._operand(operand))
            for var, _, operand in repeat.variables
            if operand is not var
        ]
        if moves:
            targets, sources = zip(*moves, strict=True)
            self.line(f"{', '.join(targets)} = {', '.join(sources)}", repeat.node)


def _makes_fresh(call: KernelCall) -> bool:
    """Whether results have memory of their own: of users' kernels nobody knows."""
    return call.kernel.is_builtin and call.kernel.is_elementwise
