"""What a region does, before it has an order: statements over variables.

In:   made by ``build``.
Out:  read by ``schedule`` and ``generate``.
Not:  knows no Python text.

Each loop body, and the code outside of loops, is a ``Body`` with predicates of its own.
A statement is live under its predicate, in each iteration of its body; it must come after the
statements that it waits for.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, TypeAlias

from penstock.dataclass import dataclass
from penstock.graph.graph import Node
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.c.programs import Compiled
from penstock.kernels.parallel.batches import Batches
from penstock.runtime.compiler.predicates import Condition, Predicate, Predicates


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A name that a value goes by.  Equal only to itself."""

    #: What the name is made from.
    hint: str

    def __repr__(self) -> str:
        return f"<{self.hint}>"


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Var):
    """A value that is the same in every step."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Read:
    """The value behind a reference, at the time of use; an error if there is none."""

    var: Var
    #: The node that the reference comes from, for the error.
    source: str


@dataclass(frozen=True, slots=True)
class Initialized:
    """The reference itself; an error if there is nothing behind it."""

    var: Var
    source: str


#: What stands in an argument place.
Operand: TypeAlias = "Var | Read | Initialized"


@dataclass(frozen=False, slots=True, eq=False)
class Statement:
    """The common part of all statements."""

    #: The node that errors are reported for, and that the comment names.
    node: Node
    live: Predicate
    #: Statements that must have been done.
    waits: tuple[Statement, ...]


@dataclass(frozen=False, slots=True, eq=False)
class KernelCall(Statement):
    """Call a kernel."""

    kernel: BoundKernel
    inputs: tuple[Operand, ...]
    #: One per output; None for an output that nobody uses.
    outputs: tuple[Var | None, ...]


@dataclass(frozen=False, slots=True, eq=False)
class FusedGroup(Statement):
    """Several element-wise calls, to be done piece by piece; see ``fused_groups``."""

    #: Each after those that it reads; only the last one's output is used by others.
    calls: tuple[KernelCall, ...]
    inputs: tuple[Var, ...]
    target: Var


class ElementProgram(NamedTuple):
    """Element-wise calls as one function in C."""

    compiled: Compiled
    #: What it takes; numbers that are the same in every step are part of it.
    inputs: tuple[Var, ...]
    #: How many functions it goes through.
    steps: int
    #: Whether its inputs must have one shape.
    adds_alike: bool


class Sizes(enum.Enum):
    """What is known of the arrays of a program."""

    SHORT = enum.auto()
    LONG = enum.auto()
    UNKNOWN = enum.auto()


@dataclass(frozen=False, slots=True, eq=False)
class ProgramCall(FusedGroup):
    """The same by a program in C; its inputs are those of the program."""

    program: ElementProgram
    sizes: Sizes


@dataclass(frozen=False, slots=True, eq=False)
class BatchGroup(Statement):
    """Statements to be done for some entries of a batch at a time; see ``split_batches``."""

    #: Each after those that it reads.
    statements: tuple[Statement, ...]
    inputs: tuple[Var, ...]
    #: What others read of it, all with the batch.
    targets: tuple[Var, ...]
    batches: Batches


@dataclass(frozen=False, slots=True, eq=False)
class UnaryChain(Statement):
    """Functions of one number, each of what the one before gives; see ``unary_chains``."""

    calls: tuple[KernelCall, ...]
    source: Operand
    target: Var


@dataclass(frozen=False, slots=True, eq=False)
class Move(Statement):
    """Give a value another name: what a Merge lets through, what a region returns."""

    source: Operand
    target: Var


@dataclass(frozen=False, slots=True, eq=False)
class Test(Statement):
    """Make sure that a condition is one boolean."""

    condition: Condition
    source: Operand
    target: Var


@dataclass(frozen=False, slots=True, eq=False)
class Nothing(Statement):
    """Wait for many statements at once, on behalf of many others."""


@dataclass(frozen=False, slots=True, eq=False)
class Repeat(Statement):
    """Run a loop to its end."""

    frame: str
    body: Body
    #: The loop goes on as long as this is true.
    goes_on: Condition
    #: What the iterations hand on: (name, first value, next value).
    variables: tuple[tuple[Var, Operand, Operand], ...]
    #: Names of the body that are used after the loop.
    exits: tuple[Var, ...]
    #: Names from outside that the body uses.
    free: frozenset[Var] = field(default_factory=frozenset)


@dataclass(frozen=False, slots=True, eq=False)
class Body:
    """The statements of one iteration, each after those that it waits for."""

    predicates: Predicates
    statements: list[Statement] = field(default_factory=list)
    #: How to ask each condition: the variable to test.  A condition about whether an input is
    #: live at all is in ``arrivals`` as well.
    conditions: list[Var] = field(default_factory=list)
    #: Conditions that mean "the input is not dead".
    arrivals: set[Condition] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Program:
    """A whole region."""

    #: What it is called in messages: the device, or a function's name.
    name: str
    body: Body
    params: tuple[Var, ...]
    #: Whether it is all of a partition: then more arguments may follow, which nobody uses, and
    #: it is in no loop.
    is_whole: bool
    #: What it returns; a name whose value is dead holds None.
    results: tuple[Var, ...]
    #: The results that may be dead.
    may_be_dead: frozenset[Var]
    #: What the outputs of nodes outside of loops have become, by node id and slot.
    values: Mapping[tuple[int, int], Any] = field(default_factory=dict)


def variable_of(operand: Operand) -> Var:
    """The name that an operand reads."""
    return operand if isinstance(operand, Var) else operand.var


def operands_of(statement: Statement) -> Sequence[Operand]:
    """What a statement reads, by itself or in a loop."""
    if isinstance(statement, (KernelCall, FusedGroup, BatchGroup)):
        return statement.inputs
    if isinstance(statement, (Move, Test, UnaryChain)):
        return (statement.source,)
    if isinstance(statement, Repeat):
        return (*(first for _, first, _ in statement.variables), *statement.free)
    return ()


def targets_of(statement: Statement) -> Sequence[Var]:
    """The names that a statement gives values to, as seen from its own body."""
    if isinstance(statement, KernelCall):
        return [var for var in statement.outputs if var is not None]
    if isinstance(statement, (Move, Test, FusedGroup, UnaryChain)):
        return (statement.target,)
    if isinstance(statement, Repeat):
        return statement.exits
    return statement.targets if isinstance(statement, BatchGroup) else ()


def free_names(repeat: Repeat) -> frozenset[Var]:
    """Names that a loop's body uses and does not define."""
    used: set[Var] = {variable_of(following) for _, _, following in repeat.variables}
    defined = {var for var, _, _ in repeat.variables}
    for statement in repeat.body.statements:
        used.update(map(variable_of, operands_of(statement)))
        defined.update(targets_of(statement))
    return frozenset(var for var in used - defined if not isinstance(var, Constant))
