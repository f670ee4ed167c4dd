"""Gradients of functions are bodies like others; rules stand for what TensorFlow has."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as ps
from penstock.defs.attrs import FuncAttr
from penstock.defs.schema import FunctionDefLibrary
from penstock.errors import NotFoundError
from penstock.graph.gradients.body import instantiate_gradient
from support.functions import functions, library, session_with

CUBE = """
    Cube(x: float32) -> (y: float32)
    square = Mul[T=float32](x, x)
    gradient/Mul_3 = Mul[T=float32](square:z, x)
    return y = gradient/Mul_3:z
"""


def test_a_gradient_takes_arguments_and_gradients_of_results() -> None:
    """The body's types are those of arguments and results, and then of arguments."""
    text = """
        F(x: float32, n: int32) -> (y: float64)
        z = Cast[SrcT=float32; DstT=float64](x)
        return y = z:y
    """
    body = instantiate_gradient(library(*functions(text)), FuncAttr("F", {}))

    assert [str(t) for t in body.arg_types] == ["float32", "int32", "float64"]
    assert [str(t) for t in body.ret_types] == ["float32", "int32"]


@pytest.mark.parametrize("tier", ps.Tier)
def test_names_of_the_function_are_kept(tier: ps.Tier) -> None:
    """Nodes of the function may be called as new ones would be; d x³ is 3 x²."""
    graph = """
        x = Placeholder
        one = Const[dtype=float32; value=1.0]
        dx = SymbolicGradient[Tin=float32|float32; Tout=float32; f=Cube](x, one)
    """
    with session_with(graph, CUBE, config=ps.Config(tier=tier)) as session:
        assert session.run("dx:0", {"x:0": np.float32(5)}) == 75


def test_second_derivatives() -> None:
    """A gradient of a function that holds a gradient is one as well; d² x³ is 6 x."""
    slope = """
        Slope(x: float32) -> (y: float32)
        one = OnesLike[T=float32](x)
        dx = SymbolicGradient[Tin=float32|float32; Tout=float32; f=Cube](x, one:y)
        return y = dx:output
    """
    graph = """
        x = Placeholder
        one = Const[dtype=float32; value=1.0]
        dx = SymbolicGradient[Tin=float32|float32; Tout=float32; f=Slope](x, one)
    """
    with session_with(graph, f"{CUBE}\n\n{slope}") as session:
        assert session.run("dx:0", {"x:0": np.float32(5)}) == 30


def test_loops_have_no_gradient() -> None:
    """A function whose result comes out of a loop is refused, and an op of the loop is named."""
    loop = """
        Loop(x: float32) -> (y: float32)
        enter = Enter[T=float32; frame_name=loop](x)
        merge = Merge[T=float32; N=2](enter:output, next:output)
        stop = Const[dtype=bool; value=0]
        cond = LoopCond(stop:output)
        switch = Switch[T=float32](merge:output, cond:output)
        next = NextIteration[T=float32](switch:output_true)
        exit = Exit[T=float32](switch:output_false)
        return y = exit:output
    """
    with pytest.raises(NotFoundError, match="No gradient defined for op: Merge"):
        instantiate_gradient(library(*functions(loop)), FuncAttr("Loop", {}))


def test_gradients_of_what_is_not_there() -> None:
    """What is neither an op nor a function has none, and what is registered must be there."""
    with pytest.raises(NotFoundError, match="No gradient defined for op: Nope"):
        instantiate_gradient(library(), FuncAttr("Nope", {}))
    made = library(*functions(CUBE))
    gradients = FunctionDefLibrary()
    gradients.gradient.add(function_name="Cube", gradient_func="Lost")
    made.add_library(gradients)
    with pytest.raises(NotFoundError, match="Function Lost is not defined"):
        instantiate_gradient(made, FuncAttr("Cube", {}))
