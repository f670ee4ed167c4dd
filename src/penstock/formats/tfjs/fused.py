"""Nodes that only TensorFlow.js has, as nodes of TensorFlow.

In:   nodes of a model of TensorFlow.js.
Out:  nodes that compute the same; the last of them has the old name.
Not:  knows no weights.

Its converter fuses convolutions and products with what follows, and writes down less than
TensorFlow wants to know.  Here they are taken apart again; our own optimiser fuses them as it can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from penstock.defs.schema import Message, NodeDef

#: Fused ops by what they begin with.
_BASES: Final = {
    "_FusedConv2D": "Conv2D",
    "_FusedDepthwiseConv2dNative": "DepthwiseConv2dNative",
    "FusedDepthwiseConv2dNative": "DepthwiseConv2dNative",
    "_FusedMatMul": "MatMul",
}
#: Attributes that the first of the nodes keeps.
_KEPT: Final = (
    "T", "strides", "padding", "explicit_paddings", "data_format", "dilations", "transpose_a",
    "transpose_b",
)  # fmt: skip
#: What may follow and takes no argument, by its name in lower case.
_ACTIVATIONS: Final = {
    "relu": "Relu", "relu6": "Relu6", "elu": "Elu", "sigmoid": "Sigmoid", "tanh": "Tanh",
    "leakyrelu": "LeakyRelu",
}  # fmt: skip
_LINEAR: Final = "linear"


def translated(nodes: Iterable[Message], *, in_function: bool) -> Iterator[Message]:
    """Nodes as TensorFlow has them; inside of functions, names of outputs are longer."""
    for node in nodes:
        if node.op == "Prelu":
            yield from _FusedNodeExpander(node, in_function=in_function).prelu()
        elif node.op in _BASES and _is_known(node):
            yield from _FusedNodeExpander(node, in_function=in_function).fused()
        else:
            yield node


def _is_known(node: Any) -> bool:
    """Whether all of a fused node can be said by others."""
    fused = _fused(node)
    first = 1 if fused[:1] == ["biasadd"] else 0
    rest = fused[first:]
    known = all(name in _ACTIVATIONS or name in ("prelu", _LINEAR) for name in rest)
    return known and len(_data_inputs(node)) == 2 + first + rest.count("prelu")


def _fused(node: Any) -> list[str]:
    return [text.decode("utf-8", "replace").lower() for text in node.attr["fused_ops"].list.s]


def _data_inputs(node: Any) -> list[str]:
    return [name for name in node.input if not name.startswith("^")]


class _FusedNodeExpander:
    """Makes the nodes that stand for one."""

    def __init__(self, node: Any, *, in_function: bool) -> None:
        self._node: Final = node
        self._in_function: Final = in_function
        self._made: Final[list[Message]] = []

    def prelu(self) -> list[Message]:
        """max(x, 0) + alpha * min(x, 0)."""
        self._add_prelu(*_data_inputs(self._node)[:2])
        return self._named()

    def fused(self) -> list[Message]:
        """A convolution or a product, what is added, and what is applied to it."""
        x, weights, *others = _data_inputs(self._node)
        base = self._add(_BASES[self._node.op], [x, weights], _KEPT)
        names = _fused(self._node)
        if names[:1] == ["biasadd"]:
            attrs = ("T", "data_format") if base.op != "MatMul" else ("T",)
            self._add("BiasAdd", [self._last(), others.pop(0)], attrs)
            names = names[1:]
        for name in names:
            if name == "prelu":
                self._add_prelu(self._last(), others.pop(0))
            elif name != _LINEAR:
                made = self._add(_ACTIVATIONS[name], [self._last()], ("T",))
                if name == "leakyrelu" and "leakyrelu_alpha" in self._node.attr:
                    made.attr["alpha"].CopyFrom(self._node.attr["leakyrelu_alpha"])
        return self._named()

    def _add_prelu(self, x: str, alpha: str) -> None:
        self._add("Relu", [x], ("T",))
        positive = self._last()
        self._add("Neg", [x], ("T",))
        self._add("Relu", [self._last()], ("T",))
        self._add("Mul", [alpha, self._last()], ("T",))
        self._add("Sub", [positive, self._last()], ("T",))

    def _add(self, op: str, inputs: list[str], attrs: Iterable[str]) -> Any:
        made = NodeDef(name=f"{self._node.name}/{op}_{len(self._made)}", op=op, input=inputs)
        made.device = self._node.device
        for key in attrs:
            if key in self._node.attr:
                made.attr[key].CopyFrom(self._node.attr[key])
        self._made.append(made)
        return made

    def _last(self) -> str:
        """The output of what was made last."""
        made = self._made[-1]
        return f"{made.name}:{_OUTPUTS[made.op]}:0" if self._in_function else str(made.name)

    def _named(self) -> list[Message]:
        """The nodes; the last has the old name, the first waits for what the old one waited for."""
        self._made[-1].name = self._node.name
        if self._in_function:
            # Who reads the old node names its output; that of the new one may be another.
            last = self._made[-1]
            theirs = "product" if self._node.op == "_FusedMatMul" else "output"
            if _OUTPUTS[last.op] != theirs:
                last.name += "/result"
                self._made.append(
                    NodeDef(name=self._node.name, op="Identity", input=[self._last()])
                )
                self._made[-1].attr["T"].CopyFrom(self._node.attr["T"])
        waits = [name for name in self._node.input if name.startswith("^")]
        self._made[0].input.extend(waits)
        return self._made


#: What TensorFlow calls the output of an op.
_OUTPUTS: Final = {
    "Conv2D": "output", "DepthwiseConv2dNative": "output", "MatMul": "product",
    "BiasAdd": "output", "Relu": "activations", "Relu6": "activations", "Elu": "activations",
    "LeakyRelu": "activations", "Sigmoid": "y", "Tanh": "y", "Neg": "y", "Mul": "z", "Sub": "z",
    "Identity": "output",
}  # fmt: skip
