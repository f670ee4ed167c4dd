"""Gradients that a graph registers for its functions: good ones, and all ways to be wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import graph

_TYPES = {"float": 1, "int32": 3}


def gradient(tf: Any, name: str) -> Any:
    """The gradient of F(x, y) = x y at (2, 3), as the function called ``name`` says."""
    proto = tf.GraphDef()
    _add(proto, "F", ["float", "float"], [("m:z:0", "float")], [("m", "Mul", "x0", "x1")])
    _add(proto, name, *GRADIENTS[name])
    proto.library.gradient.add(function_name="F", gradient_func=name)
    for number, value in enumerate((2, 3, 1)):
        const = proto.node.add(name=f"input_{number}", op="Const")
        const.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.float32(value)))
        const.attr["dtype"].type = _TYPES["float"]
    node = proto.node.add(name="gradient", op="SymbolicGradient")
    node.input.extend(f"input_{number}" for number in range(3))
    node.attr["Tin"].list.type.extend([_TYPES["float"]] * 3)
    node.attr["Tout"].list.type.extend([_TYPES["float"]] * 2)
    node.attr["f"].func.name = "F"
    return tf.import_graph_def(proto, return_elements=["gradient:0", "gradient:1"], name="")


def _add(proto: Any, name: str, inputs: Any, outputs: Any, nodes: Any) -> None:
    """A function of x0, x1 and so on."""
    made = proto.library.function.add()
    made.signature.name = name
    for number, dtype in enumerate(inputs):
        made.signature.input_arg.add(name=f"x{number}", type=_TYPES[dtype])
    for number, (source, dtype) in enumerate(outputs):
        made.signature.output_arg.add(name=f"y{number}", type=_TYPES[dtype])
        made.ret[f"y{number}"] = source
    for node_name, op, *sources in nodes:
        node = made.node_def.add(name=node_name, op=op, input=sources)
        node.attr["T"].type = _TYPES["float"]
        if op == "Cast":
            node.attr["SrcT"].type, node.attr["DstT"].type = _TYPES["float"], _TYPES["int32"]
            del node.attr["T"]
        if op == "CheckNumerics":
            node.attr["message"].s = b"no gradient at all"


_THREE = ["float"] * 3
_BOTH = [("x2", "float"), ("x0", "float")]
#: Arguments, results and nodes of functions that are registered as gradients of F.
GRADIENTS: dict[str, Any] = {
    "Right": (
        _THREE,
        [("a:z:0", "float"), ("b:z:0", "float")],
        [("a", "Mul", "x2", "x1"), ("b", "Mul", "x2", "x0")],
    ),
    "NotTheGradient": (_THREE, _BOTH, []),
    "TooFewResults": (_THREE, _BOTH[:1], []),
    "TooManyResults": (_THREE, [*_BOTH, ("x1", "float")], []),
    "NoResults": (_THREE, [], []),
    "TooFewArguments": (_THREE[:2], [("x1", "float"), ("x0", "float")], []),
    "TooManyArguments": ([*_THREE, "float"], _BOTH, []),
    "OtherArguments": (["float", "int32", "float"], _BOTH, []),
    "OtherResults": (_THREE, [_BOTH[0], ("c:y:0", "int32")], [("c", "Cast", "x2")]),
    "Broken": (_THREE, [("a:z:0", "float"), _BOTH[1]], [("a", "Mul", "x2", "nowhere")]),
    "Failing": (
        _THREE,
        [("c:output:0", "float"), _BOTH[1]],
        [("n", "Sqrt", "m:y:0"), ("m", "Neg", "x2"), ("c", "CheckNumerics", "n:y:0")],
    ),
}
_SAYS = {
    "TooFewResults": "SymGrad expects to return 2 tensor(s), but get 1 tensor(s) instead.",
    "TooManyResults": "SymGrad expects to return 2 tensor(s), but get 3 tensor(s) instead.",
    "NoResults": "SymGrad expects to return 2 tensor(s), but get 0 tensor(s) instead.",
    "TooFewArguments": "Expects 2 arguments, but 3 is provided",
    "TooManyArguments": "Expects 4 arguments, but 3 is provided",
    "OtherArguments": "Expects arg[1] to be int32 but float",
    "OtherResults": "Output 1 of type int32 does not match declared output type float for node",
    "Broken": "input nowhere is not found",
    "Failing": "no gradient at all",
}

CASES = [graph(gradient, name, says=_SAYS.get(name, "")) for name in GRADIENTS]
