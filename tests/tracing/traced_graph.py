"""The graph whose step statistics TensorFlow was asked for: loop, branch, call, two devices."""

from __future__ import annotations

from typing import Any, Final

from support.functions import graph_def_with

FUNCTION: Final = """
Twice(a: float32) -> (y: float32)
two = Const[value=2.0]
mul = Mul(a, two:output)
y = Add(mul:z, a)
return y = y:z
"""
TEXT: Final = """
x = Placeholder
w = VariableV2[shape=3; dtype=float32]
start = Const[value=1.0|2.0|3.0]
init = Assign(w, start)
read = Identity(w)
scaled = Mul(x, read) @/device:CPU:1
axis = Const[value=0; dtype=int32] @/device:CPU:1
sum = Sum(scaled, axis) @/device:CPU:1
zero = Const[value=0; dtype=int32]
limit = Const[value=3; dtype=int32]
i_enter = Enter[T=int32; frame_name=loop](zero)
y_enter = Enter[frame_name=loop](sum)
bound = Enter[T=int32; frame_name=loop; is_constant=true](limit)
i = Merge[N=2; T=int32](i_enter, i_next)
y = Merge[N=2](y_enter, y_next)
less = Less[T=int32](i, bound)
cond = LoopCond(less)
i_switch = Switch[T=int32](i, cond)
y_switch = Switch(y, cond)
i_body = Identity[T=int32](i_switch:1)
one = Const[value=1; dtype=int32](^i_body)
i_sum = Add[T=int32](i_body, one)
i_next = NextIteration[T=int32](i_sum)
square = Square(y_switch:1)
y_next = NextIteration(square)
y_exit = Exit(y_switch)
large = Const[value=100.0]
is_large = Greater(y_exit, large)
branch = Switch(y_exit, is_large)
small = Neg(branch)
root = Sqrt(branch:1)
either = Merge[N=2](small, root)
call = PartitionedCall[Tin=float32; Tout=float32; f=Twice](either)
words = Const[value=ab|c; dtype=string]
joined = StringJoin[N=2](words, words)
out = Identity(call)
"""
FEEDS: Final = {"x:0": [1.0, 2.0, 3.0]}
FETCHES: Final = ("out:0", "joined:0")


def traced_graph() -> Any:
    """Its GraphDef."""
    return graph_def_with(TEXT, FUNCTION)
