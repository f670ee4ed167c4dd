"""Random graphs full of functions, whose nodes ask for one of three CPUs or for nothing.

In:   a seed.
Out:  a GraphDef: feeds ``p``, ``i``, ``x`` and ``y``, two variables with ``init``, result ``out``.
Not:  gives no two nodes the same name, in no two functions either: the name tells which it was.

Branches, loops and calls nest.  Their bodies compute, read the variables, which are arguments,
and lie with one another.  Constants always ask for a device: otherwise they would follow their
readers, and these are others where a call was opened in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from penstock.defs.schema import Message
from support.functions import graph_def_with

#: What a node may ask for.
_DEVICES = tuple(f" @/device:CPU:{number}" for number in range(3))
_PLACES = ("", "", "", *_DEVICES)
_VARIABLE = "VarHandleOp[container=; dtype=float32; shape="
CALLS = ("if", "case", "while", "call", "effects", "native")


#: How a node is read, by its name and the name of its output.
_Output: TypeAlias = Callable[[str, str], str]


class _Values(NamedTuple):
    """What the nodes of one body may read."""

    handles: list[str]
    floats: list[str]


def _inside(name: str, result: str) -> str:
    """How a node of a function is read."""
    return f"{name}:{result}"


def _outside(name: str, result: str) -> str:
    """How a node of the graph is read; of a loop, the number that comes after the variable."""
    return f"{name}:1" if result == "output:1" else name


def _has_effects(line: str) -> bool:
    """Whether functions name a node; if they did not, TensorFlow would not open them."""
    return line.startswith(("read", *CALLS))


class RandomFunctions:
    """One graph, being made."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._count = 0
        self._functions: list[str] = []

    def graph_def(self) -> Message:
        """The graph and its functions; branches and loops ask to be lowered."""
        values = _Values(["v0", "v1"], ["x", "y"])
        lines = [
            "p = Placeholder[dtype=bool]",
            "i = Placeholder[dtype=int32]",
            "x = Placeholder",
            "y = Placeholder @/device:CPU:1",
            "one = Const[value=1]",
        ]
        for number in (0, 1):
            lines.append(f"v{number} = {_VARIABLE}; shared_name=v{number}] @/device:CPU:{number}")
            lines.append(f"init{number} = AssignVariableOp[dtype=float32](v{number}, one)")
        lines.append("init = NoOp(^init0, ^init1)")
        lines += self._body(values, 2, ("p", "i"), _outside)
        done = [f"^{line.partition(' = ')[0]}" for line in lines if _has_effects(line)]
        lines.append(f"done = NoOp({', '.join(done)})")
        lines.append(f"out = AddN[N={len(values.floats)}]({', '.join(values.floats)}, ^done)")
        proto = graph_def_with("\n".join(lines), "\n\n".join(self._functions))
        for nodes in (proto.node, *(function.node_def for function in proto.library.function)):
            for node in nodes:
                if node.op in ("If", "Case", "While"):
                    node.attr["_lower_using_switch_merge"].b = True
        return proto

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    def _body(
        self, values: _Values, depth: int, chosen_by: tuple[str, str], output: _Output
    ) -> list[str]:
        """Some nodes; a bool and a number choose branches."""
        lines: list[str] = []
        neighbours: dict[str, str] = {}
        for _ in range(self._random.randint(2, 5)):
            kinds = ["const", "neg", "add", "reshape", "identity", "read"]
            kind = self._random.choice(kinds + [*CALLS] * (depth > 0))
            name = self._name(kind)
            place = self._random.choice(_DEVICES if kind == "const" else _PLACES)
            if kind in CALLS:
                line, result = self._call(name, kind, values, depth - 1, chosen_by)
            else:
                near = ""
                if output is _inside and neighbours and self._random.random() < 0.3:
                    # It asks for what the other one asks for, lest they contradict each other.
                    other, place = self._random.choice(list(neighbours.items()))
                    near = f"; _class=loc:@{other}"
                made, line, result = self._node(name, kind, values, near, output)
                lines += [first + (place if near else "") for first in made]
                if kind != "read":
                    neighbours[name] = place
            lines.append(line + place)
            values.floats.append(output(name, result))
        return lines

    def _node(
        self, name: str, kind: str, values: _Values, near: str, output: _Output
    ) -> tuple[list[str], str, str]:
        """What it needs first, the node itself, and which of its outputs is a number."""
        one, other = self._random.choices(values.floats, k=2)
        if kind == "const":
            number = self._random.randint(1, 3)
            return [], f"{name} = Const[value={number}{near}]", "output"
        if kind == "neg":
            return [], f"{name} = Neg[T=float32{near}]({one})", "y"
        if kind == "add":
            return [], f"{name} = Add[T=float32{near}]({one}, {other})", "z"
        if kind == "identity":
            return [], f"{name} = Identity[T=float32{near}]({one})", "output"
        if kind == "reshape":
            shape = self._name("shape")
            first = f"{shape} = Shape[T=float32{near}]({other})"
            line = f"{name} = Reshape[T=float32]({one}, {output(shape, 'output')})"
            return [first], line, "output"
        handle = self._random.choice(values.handles)
        return [], f"{name} = ReadVariableOp[dtype=float32{near}]({handle})", "value"

    def _call(
        self, name: str, kind: str, values: _Values, depth: int, chosen_by: tuple[str, str]
    ) -> tuple[str, str]:
        """A node that calls new functions, and which of its outputs is a number."""
        # A loop hands one variable on, so that it stays the same one; a native call lies on one
        # device as a whole.
        most = 1 if kind in ("while", "native") else len(values.handles)
        handles = self._random.sample(values.handles, self._random.randint(1, most))
        floats = self._random.choices(values.floats, k=self._random.randint(1, 2))
        sizes, args = (len(handles), len(floats)), ", ".join([*handles, *floats])
        types = "|".join(["resource"] * sizes[0] + ["float32"] * sizes[1])
        signature = f"Tin={types}; Tout=float32"
        if kind == "while":
            facts = f"T={types}; cond={self._condition(sizes)}; body={self._loop(sizes, depth)}"
            return f"{name} = While[{facts}]({args})", "output:1"
        if kind == "native":
            return f"{name} = {self._function(sizes, depth)}({args})", "r"
        if kind in ("call", "effects"):
            op = "PartitionedCall" if kind == "call" else "StatefulPartitionedCall"
            facts = f"{signature}; f={self._function(sizes, depth)}"
            return f"{name} = {op}[{facts}]({args})", "output:0"
        one, other = self._function(sizes, depth), self._function(sizes, depth)
        if kind == "if":
            facts = f"Tcond=bool; {signature}; then_branch={one}; else_branch={other}"
            return f"{name} = If[{facts}]({chosen_by[0]}, {args})", "output:0"
        facts = f"{signature}; branches={one}|{other}"
        return f"{name} = Case[{facts}]({chosen_by[1]}, {args})", "output:0"

    def _function(self, sizes: tuple[int, int], depth: int) -> str:
        """Variables and numbers to a number."""
        name, values, signature = self._start("Function", sizes)
        lines = self._lines(values, depth)
        self._finish(f"{name}({signature}) -> (r: float32)", lines, {"r": values.floats[-1]})
        return name

    def _loop(self, sizes: tuple[int, int], depth: int) -> str:
        """Variables and numbers to as many others; the variables stay as they are."""
        name, values, signature = self._start("Loop", sizes)
        lines = self._lines(values, depth)
        returns = {f"h{n}": handle for n, handle in enumerate(values.handles)}
        outputs = [f"{result}: resource" for result in returns]
        for n in range(sizes[1]):
            returns[f"r{n}"] = self._random.choice(values.floats)
            outputs.append(f"r{n}: float32")
        self._finish(f"{name}({signature}) -> ({', '.join(outputs)})", lines, returns)
        return name

    def _condition(self, sizes: tuple[int, int]) -> str:
        """Ends the loop at once: where nodes lie is not known by what they compute."""
        name, values, signature = self._start("Condition", sizes)
        least, less = self._name("least"), self._name("less")
        lines = [
            f"{least} = Const[value=-1000] @/device:CPU:0",
            f"{less} = Less[T=float32]({values.floats[0]}, {least}:output)"
            + self._random.choice(_PLACES),
        ]
        self._finish(f"{name}({signature}) -> (go: bool)", lines, {"go": f"{less}:z"})
        return name

    def _start(self, kind: str, sizes: tuple[int, int]) -> tuple[str, _Values, str]:
        """A name, the arguments, and how the signature has them."""
        name = self._name(kind)
        values = _Values(
            [f"{name.lower()}_h{n}" for n in range(sizes[0])],
            [f"{name.lower()}_a{n}" for n in range(sizes[1])],
        )
        parts = [f"{handle}: resource" for handle in values.handles]
        return name, values, ", ".join(parts + [f"{arg}: float32" for arg in values.floats])

    def _lines(self, values: _Values, depth: int) -> list[str]:
        least, pred, index = self._name("least"), self._name("pred"), self._name("index")
        place = "@/device:CPU:0"
        # Of a constant, TensorFlow would know the branch beforehand.
        first = [
            f"{least} = Const[value=-1000] {place}",
            f"{pred} = Greater[T=float32]({values.floats[0]}, {least}:output) {place}",
            f"{index} = Cast[SrcT=bool; DstT=int32; Truncate=False]({pred}:z) {place}",
        ]
        return first + self._body(values, depth, (f"{pred}:z", f"{index}:y"), _inside)

    def _finish(self, signature: str, lines: Sequence[str], returns: dict[str, str]) -> None:
        results = [f"return {name} = {source}" for name, source in returns.items()]
        nodes = [line.partition(" = ")[0] for line in lines if _has_effects(line)]
        named = [f"control {node} = {node}" for node in nodes]
        self._functions.append("\n".join([signature, *lines, *results, *named]))
