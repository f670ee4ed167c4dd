"""Mutations that nobody makes who means well: absurd numbers, wrong kinds, broken parts."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import numpy as np

from fuzzing.mutant import Mutant, set_inputs
from fuzzing.table import hostile
from penstock.catalogue.registry import get_op
from penstock.defs.schema import AttrValue, GraphDef, Message, NodeDef

_INT64: Final = (-(2**63), 2**63 - 1)
#: Numbers that no shape, count or index should be.
_HUGE: Final = (
    -1, -2, -(2**31), -(2**31) - 1, *_INT64, 0, 2**16, 2**20, 2**24, 2**31 - 1, 2**31, 2**32,
    2**40, 2**62,
)  # fmt: skip
#: Of these, sizes that are small, or impossible.  A constant of a million variants is honest work
#: for many seconds, of which nobody can say whether they are too many.
_SIZES: Final = tuple(number for number in _HUGE if number not in (2**20, 2**24))
#: Ops that have nothing to do with most nodes, and one that there is not.
_OPS: Final = (
    "NoSuchOp", "", "NoOp", "Const", "Placeholder", "Merge", "Switch", "Enter", "Exit",
    "NextIteration", "LoopCond", "_Arg", "_Retval", "_Recv", "_Send", "MatMul", "Identity", "While",
    "If", "PartitionedCall", "QueueDequeueV2", "Reshape", "ConcatV2", "Split", "Unpack", "Fill",
    "Range", "Tile", "Pad", "OneHot", "LinSpace", "TensorArrayV3", "TensorListReserve", "Bincount",
)  # fmt: skip
_NAMES: Final = (
    "", " ", "a b", "^", "x:0", "../x", "/", "_", "__", "a" * 300, "\x1b[2J", "é", ".", "-1", "0",
    "None", "class", "run", "lambda", "x'); import os #",
)  # fmt: skip


@hostile(8)
def absurd_int(mutant: Mutant, draw: Random) -> str | None:
    """Put an absurd number where an attribute has one."""
    places = [
        (node, name)
        for node in mutant.all_nodes()
        for name in sorted(node.attr)
        if node.attr[name].WhichOneof("value") == "i" or len(node.attr[name].list.i)
    ]
    if not places:
        return None
    node, name = draw.choice(places)
    value, number = node.attr[name], draw.choice([*_HUGE, 2**28])
    if value.WhichOneof("value") == "i":
        value.i = number
    else:
        value.list.i[draw.randrange(len(value.list.i))] = number
    return f"{name} of {node.name} has {number}"


@hostile(5)
def absurd_shape(mutant: Mutant, draw: Random) -> str | None:
    """Put an absurd size into a shape, or absurdly many sizes."""
    shapes = [
        (node, shape)
        for node in mutant.all_nodes()
        for name in sorted(node.attr)
        for shape in _shapes_in(node.attr[name])
    ]
    if not shapes:
        return None
    node, shape = draw.choice(shapes)
    kind = draw.randrange(4)
    if kind == 0:
        del shape.dim[:]
        for _ in range(draw.choice([1, 2, 8, 33, 255])):
            shape.dim.add(size=draw.choice([1, 2, *_SIZES]))
    elif kind == 1 and shape.dim:
        draw.choice(shape.dim).size = draw.choice(_SIZES)
    else:
        shape.dim.add(size=draw.choice(_SIZES))
    return f"a shape of {node.name} is {[dim.size for dim in shape.dim][:9]}"


@hostile(8)
def absurd_const(mutant: Mutant, draw: Random) -> str | None:
    """Have a constant hold absurd numbers."""
    nodes = [n for n in mutant.all_nodes() if n.op == "Const" and n.attr["value"].tensor.dtype]
    if not nodes:
        return None
    node = draw.choice(nodes)
    tensor, number = node.attr["value"].tensor, draw.choice(_HUGE)
    kinds = {1: "f4", 2: "f8", 3: "i4", 4: "u1", 5: "i2", 6: "i1", 9: "i8", 19: "f2", 22: "u4"}
    kind = kinds.get(tensor.dtype)
    if kind is None:
        return None
    size = int(np.prod([max(dim.size, 0) for dim in tensor.tensor_shape.dim]))
    if not 0 < size < 10_000:
        return None
    with np.errstate(all="ignore"):
        values = np.full(size, np.int64(number)).astype(kind)
    for field in ("float_val", "double_val", "int_val", "int64_val", "half_val", "uint32_val"):
        tensor.ClearField(field)
    tensor.tensor_content = values.tobytes()
    return f"{node.name} is full of {number}"


@hostile(5)
def absurd_feed(mutant: Mutant, draw: Random) -> str | None:
    """Feed absurd numbers, or a value of another type or shape."""
    fed = [(step, name) for step in mutant.steps for name in sorted(step.feeds)]
    if not fed:
        return None
    step, name = draw.choice(fed)
    old = np.asarray(step.feeds[name])
    kind = draw.randrange(3)
    if kind == 0 and old.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            new: Any = np.full(old.shape, np.int64(draw.choice(_HUGE))).astype(old.dtype)
    elif kind == 1:
        new = np.zeros((2,) * draw.choice([0, 1, 3, 9]), old.dtype)
    else:
        new = np.zeros(old.shape, draw.choice(["f4", "i4", "i8", "?", "O", "c16"]))
        new = np.full(old.shape, b"x", object) if new.dtype == object else new
    step.feeds[name] = new
    return f"{name} is fed with {new.dtype} of shape {list(new.shape)}"


@hostile(3)
def wrong_type(mutant: Mutant, draw: Random) -> str | None:
    """Give a type attribute a number that is none, or one of references."""
    places = [(n, a) for n in mutant.all_nodes() for a in sorted(n.attr) if n.attr[a].type]
    if not places:
        return None
    node, name = draw.choice(places)
    node.attr[name].type = draw.choice([0, 1, 3, 7, 20, 21, 23, 101, 103, 120, 999, -1])
    return f"{name} of {node.name} is type {node.attr[name].type}"


@hostile(4)
def wrong_kind(mutant: Mutant, draw: Random) -> str | None:
    """Give an attribute a value of another kind."""
    places = [(node, name) for node in mutant.all_nodes() for name in sorted(node.attr)]
    if not places:
        return None
    node, name = draw.choice(places)
    value = AttrValue()
    kind = draw.choice(
        ["i", "f", "b", "s", "type", "shape", "tensor", "list", "func", "placeholder"]
    )
    if kind in ("shape", "tensor", "list", "func"):
        getattr(value, kind).SetInParent()
    else:
        setattr(value, kind, {"s": b"x", "placeholder": "x", "f": 1.5}.get(kind, 1))
    node.attr[name].CopyFrom(value)
    return f"{name} of {node.name} is of kind {kind}"


@hostile(4)
def lose_attr(mutant: Mutant, draw: Random) -> str | None:
    """Take an attribute away that may be needed."""
    places = [(node, name) for node in mutant.all_nodes() for name in sorted(node.attr)]
    if not places:
        return None
    node, name = draw.choice(places)
    del node.attr[name]
    return f"{name} of {node.name} is missing"


@hostile(4)
def cut_list(mutant: Mutant, draw: Random) -> str | None:
    """Make a list shorter or longer: inputs, or an attribute's."""
    lists = [(node.name, "inputs", node.input) for node in mutant.all_nodes()]
    for node in mutant.all_nodes():
        for name in sorted(node.attr):
            items = node.attr[name].list
            lists += [
                (node.name, name, found)
                for kind in ("i", "f", "s", "type", "b")
                if len(found := getattr(items, kind))
            ]
    node_name, name, chosen = draw.choice(lists)
    kept = list(chosen)
    del chosen[:]
    longer = draw.random() < 0.3
    chosen.extend(kept + kept[-1:] if longer else kept[: draw.randrange(len(kept) + 1)])
    return f"{name} of {node_name} are {len(chosen)}, not {len(kept)}"


@hostile(3)
def another_op(mutant: Mutant, draw: Random) -> str | None:
    """Have a node be of an op that its inputs are not made for."""
    node = draw.choice(mutant.all_nodes())
    others = sorted({other.op for other in mutant.all_nodes()})
    node.op = draw.choice([*_OPS, *others])
    return f"{node.name} is {node.op}"


@hostile(2)
def strange_name(mutant: Mutant, draw: Random) -> str | None:
    """Give a node a strange name, or that of another one."""
    node = draw.choice(mutant.all_nodes())
    old = node.name
    node.name = draw.choice([*_NAMES, draw.choice(mutant.all_nodes()).name])
    if draw.random() < 0.6:
        for other in mutant.graph.node:
            inputs = [text.replace(old, node.name) if old else text for text in other.input]
            set_inputs(other, inputs)
    return f"{old} is called {node.name[:40]!r}"


@hostile(3)
def strange_input(mutant: Mutant, draw: Random) -> str | None:
    """Have a node depend on what is not there, on itself, or on what depends on it."""
    node = draw.choice(mutant.all_nodes())
    other = draw.choice(mutant.all_nodes()).name
    text = draw.choice(
        [node.name, f"^{node.name}", f"{other}:7", f"{other}:-1", f"{other}:{2**40}", "no_such",
         "^no_such", "", "^", ":", "x:y:0", other, f"^{other}"]
    )  # fmt: skip
    place = draw.randrange(len(node.input) + 1)
    if draw.random() < 0.7 and place < len(node.input):
        node.input[place] = text
    else:
        inputs = list(node.input)
        inputs.insert(place, text)
        set_inputs(node, inputs)
    return f"input {place} of {node.name} is {text!r}"


@hostile(2)
def strange_device(mutant: Mutant, draw: Random) -> str | None:
    """Ask for a device that is not there, or that is no device."""
    node = draw.choice(mutant.all_nodes())
    node.device = draw.choice(
        ["/device:CPU:99", "/job:worker/task:3", "/gpu:0", "cpu", "/device:TPU:*", "///", "\n",
         "/device:CPU:-1", f"/device:CPU:{2**40}", "/job:localhost/replica:0/task:0/device:CPU:1"]
    )  # fmt: skip
    mutant.device_count = draw.choice([1, 2])
    return f"{node.name} on {node.device!r}"


@hostile(2)
def strange_text(mutant: Mutant, draw: Random) -> str | None:
    """Put a strange text into an attribute."""
    places = [
        (node, name)
        for node in mutant.all_nodes()
        for name in sorted(node.attr)
        if node.attr[name].WhichOneof("value") in ("s", "func")
    ]
    if not places:
        return None
    node, name = draw.choice(places)
    text = draw.choice([*_NAMES, "VALID", "SAME", "NHWC", "\xff\xfe", "%s", "{}", "a,b;c->d"])
    value = node.attr[name]
    if value.WhichOneof("value") == "func":
        value.func.name = text
    else:
        value.s = text.encode("utf-8", "surrogateescape")
    return f"{name} of {node.name} is {text[:40]!r}"


@hostile(3)
def strange_request(mutant: Mutant, draw: Random) -> str | None:
    """Fetch, run or feed what is not there, or what is there twice."""
    if not mutant.steps:
        return None
    step = draw.choice(mutant.steps)
    other = draw.choice(mutant.graph.node).name if mutant.graph.node else "x"
    text = draw.choice(
        ["no_such:0", f"{other}:9", f"{other}:-1", "", ":0", "^x", other, f"{other}:0"]
    )
    kind = draw.choice(["fetch", "run", "feed"])
    if kind == "feed":
        step.feeds[text] = np.float32(1)
    else:
        (step.fetches if kind == "fetch" else step.targets).append(text)
    return f"{kind} {text!r}"


@hostile(2)
def strange_versions(mutant: Mutant, draw: Random) -> str | None:
    """Have the graph come from another time."""
    versions = mutant.graph.versions
    versions.producer = draw.choice([0, 1, 8, 20, 24, 1000, 2**31 - 1])
    if draw.random() < 0.2:
        versions.min_consumer = draw.choice([0, 2**31 - 1])
    return f"made by version {versions.producer}"


@hostile(3)
def strange_library(mutant: Mutant, draw: Random) -> str | None:
    """Lose a function, have one call itself, or have another signature."""
    functions = mutant.graph.library.function
    if not functions:
        return None
    function = draw.choice(functions)
    name, kind = function.signature.name, draw.randrange(5)
    if kind == 0:
        functions.remove(function)
        return f"function {name} is missing"
    if kind == 1 and function.signature.input_arg:
        del function.signature.input_arg[draw.randrange(len(function.signature.input_arg))]
    elif kind == 2 and function.signature.output_arg:
        del function.signature.output_arg[draw.randrange(len(function.signature.output_arg))]
    elif kind == 3 and function.ret:
        function.ret.pop(draw.choice(sorted(function.ret)))
    else:
        for node in function.node_def:
            for value in node.attr.values():
                if value.WhichOneof("value") == "func":
                    value.func.name = name
        call = function.node_def.add(name="again", op=name)
        call.input.extend(arg.name for arg in function.signature.input_arg)
    return f"function {name} is another one"


@hostile(2)
def lose_node(mutant: Mutant, draw: Random) -> str | None:
    """Take a node away that others need."""
    if not mutant.graph.node:
        return None
    node = draw.choice(mutant.graph.node)
    name = node.name
    mutant.graph.node.remove(node)
    return f"{name} is missing"


@hostile(1)
def strangers(mutant: Mutant, draw: Random) -> str | None:
    """Add a node of some op with no attributes, and ask for it."""
    op = draw.choice(_OPS)
    node = NodeDef(name=mutant.fresh_name("stranger"), op=op)
    if op and op != "NoSuchOp":
        node.input.extend([n.name for n in mutant.graph.node][: len(get_op(op).inputs)])
    mutant.graph.node.append(node)
    for step in mutant.steps:
        step.targets.append(node.name)
    return f"a {op}"


@hostile(3)
def break_bytes(mutant: Mutant, draw: Random) -> str | None:
    """Change single bytes of the graph, or cut it off."""
    data = bytearray(mutant.graph_bytes)
    if not data:
        return None
    if draw.random() < 0.2:
        data = data[: draw.randrange(len(data))]
    for _ in range(draw.choice([1, 1, 2, 5])):
        if data:
            data[draw.randrange(len(data))] = draw.randrange(256)
    try:
        changed = GraphDef()
        changed.ParseFromString(bytes(data))
        mutant.graph = changed
    except Exception:  # noqa: BLE001  (no message any more: nothing can be changed after this)
        mutant.broken = bytes(data)
    return "bytes are changed"


def _shapes_in(value: Message) -> list[Message]:
    """The shapes in an attribute: its own, those of a list, a tensor's."""
    kind = value.WhichOneof("value")
    if kind == "shape":
        return [value.shape]
    if kind == "tensor":
        return [value.tensor.tensor_shape]
    return list(value.list.shape) if kind == "list" else []
