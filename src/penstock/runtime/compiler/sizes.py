"""Write what a profile has shown of sizes into a program.

In:   a program, and how large its values proved to be.
Out:  the same program, with numbers beside arrays as arrays of rank 0.
Not:  changes no value, whatever the sizes of later runs are.

Beside an array, numpy takes an array of rank 0 in 140 ns less than a number of its own types;
beside another number it is the other way round, ten times as much.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.api.registry import Calling
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.program import Body, Constant, KernelCall, Operand, Program, Repeat


def spread_numbers(program: Program, profile: Profile) -> bool:
    """Replace numbers that stand beside arrays, in place; whether there are any."""
    return _spread_in(program.body, profile)


def _spread_in(body: Body, profile: Profile) -> bool:
    found = False
    for statement in body.statements:
        if isinstance(statement, Repeat):
            found |= _spread_in(statement.body, profile)
        elif isinstance(statement, KernelCall) and _is_beside_array(statement, profile):
            inputs = tuple(map(_spread, statement.inputs))
            found |= inputs != statement.inputs
            statement.inputs = inputs
    return found


def _is_beside_array(call: KernelCall, profile: Profile) -> bool:
    kernel = call.kernel
    return (
        len(call.inputs) == 2
        and kernel.is_builtin
        and kernel.calling is Calling.PLAIN
        and kernel.is_elementwise
        and profile.size_of(call.node) > 1
    )


def _spread(operand: Operand) -> Operand:
    """An array of rank 0 instead of a number; anything else as it is."""
    if not isinstance(operand, Constant) or not isinstance(operand.value, np.generic):
        return operand
    array = np.asarray(operand.value)
    array.flags.writeable = False
    return Constant(operand.hint, array)
