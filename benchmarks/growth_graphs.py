"""Graphs of any size, whose answers depend on every node and every iteration.

In:   a size: of nodes, iterations or feeds.
Out:  a folder as ``benchmarks.cases`` reads it, with the answer that numpy and Python say.
Not:  needs no TensorFlow, and asks no engine: the answers are computed here.

All is arithmetic of integers that wraps around, so that answers are exact, whoever adds up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.cases import Case, write_arrays
from penstock import dtypes
from penstock.defs.schema import GraphDef

#: Vectors that the nodes of ``mixing`` stir.
LANES: Final = 16
#: What a vector is multiplied by; odd, so that no two products are equal.
FACTOR: Final = 1664525
ADDEND: Final = 1013904223
_WRAP: Final = 1 << 32
_TYPE: Final = dtypes.int32.number
_STIR: Final[tuple[tuple[str, Callable[[Any, Any], Any]], ...]] = (
    ("AddV2", np.add),
    ("Mul", np.multiply),
    ("BitwiseXor", np.bitwise_xor),
)


def mixing(folder: Path, nodes: int, width: int) -> Case:
    """Stir sixteen vectors with so many nodes.

    Each node adds another vector to one, multiplies it by an odd number, or flips its bits: for
    whatever the others are, a one-to-one map.  So an answer is right only if each node's was.
    """
    graph, random = GraphDef(), np.random.default_rng(nodes)
    start = random.integers(-(2**31), 2**31, (LANES, width)).astype(np.int32)
    values, names = list(start), [f"x{lane}" for lane in range(LANES)]
    for name in names:
        _placeholder(graph, name)
    _constant(graph, "factor", np.int32(FACTOR))
    for step in range(nodes):
        lane = step % LANES
        other = (lane + 1 + step // LANES % (LANES - 1)) % LANES
        op, function = _STIR[(step + step // LANES) % len(_STIR)]
        given = (np.int32(FACTOR), "factor") if op == "Mul" else (values[other], names[other])
        values[lane] = function(values[lane], given[0])
        _node(graph, op, f"n{step}", [names[lane], given[1]])
        names[lane] = f"n{step}"
    _pack(graph, names)
    feeds = {f"x{lane}": vector for lane, vector in enumerate(start)}
    return _written(folder, graph, feeds, ["answer:0"], [np.stack(values)], nodes)


def counting(folder: Path, iterations: int) -> Case:
    """Go on in a sequence of pseudo-random numbers, by a loop of so many iterations."""
    graph = GraphDef()
    _placeholder(graph, "count")
    _placeholder(graph, "seed")
    for name, value in {"zero": 0, "one": 1, "factor": FACTOR, "addend": ADDEND}.items():
        _constant(graph, name, np.int32(value))
    for name, given in {"i": "zero", "y": "seed", "n": "count"}.items():
        enter = _node(graph, "Enter", f"enter_{name}", [given])
        enter.attr["frame_name"].s = b"loop"
        enter.attr["is_constant"].b = name == "n"
    for name, given in {"one": "one", "factor": "factor", "addend": "addend"}.items():
        enter = _node(graph, "Enter", f"enter_{name}", [given])
        enter.attr["frame_name"].s = b"loop"
        enter.attr["is_constant"].b = True
    for name in "iy":
        _node(graph, "Merge", f"merge_{name}", [f"enter_{name}", f"next_{name}"], N=2)
    _node(graph, "Less", "less", ["merge_i", "enter_n"])
    graph.node.add(name="goes_on", op="LoopCond", input=["less"])
    for name in "iy":
        _node(graph, "Switch", f"switch_{name}", [f"merge_{name}", "goes_on"])
        _node(graph, "Exit", f"exit_{name}", [f"switch_{name}"])
    _node(graph, "AddV2", "i", ["switch_i:1", "enter_one"])
    _node(graph, "Mul", "product", ["switch_y:1", "enter_factor"])
    _node(graph, "AddV2", "y", ["product", "enter_addend"])
    for name in "iy":
        _node(graph, "NextIteration", f"next_{name}", [name])
    feeds = {"count": np.int32(iterations), "seed": np.int32(7)}
    answers = [np.int32(iterations), _gone_on(7, iterations)]
    return _written(folder, graph, feeds, ["exit_i:0", "exit_y:0"], answers, iterations)


def _gone_on(seed: int, steps: int) -> Any:
    """The number after so many steps of x → factor x + addend.

    Two steps at once are of the same form, and so are four: the steps of a number's binary digits.
    """
    factor, addend = FACTOR, ADDEND
    while steps:
        if steps % 2:
            seed = (seed * factor + addend) % _WRAP
        factor, addend = factor * factor % _WRAP, addend * (factor + 1) % _WRAP
        steps //= 2
    return np.uint32(seed).astype(np.int32)


def feeding(folder: Path, feeds: int) -> Case:
    """Feed so many vectors, and add them up, each times its own place."""
    graph, random = GraphDef(), np.random.default_rng(feeds)
    given = random.integers(-(2**31), 2**31, (feeds, 4)).astype(np.int32)
    for place in range(feeds):
        _placeholder(graph, f"x{place}")
    _pack(graph, [f"x{place}" for place in range(feeds)])
    _constant(graph, "places", np.arange(1, feeds + 1, dtype=np.int32)[:, None])
    _node(graph, "Mul", "product", ["answer", "places"])
    _constant(graph, "axis", np.int32(0))
    total = _node(graph, "Sum", "sum", ["product", "axis"])
    total.attr["Tidx"].type = _TYPE
    wanted = (given * np.arange(1, feeds + 1, dtype=np.int32)[:, None]).sum(0, dtype=np.int32)
    named = {f"x{place}": vector for place, vector in enumerate(given)}
    return _written(folder, graph, named, ["sum:0"], [wanted], feeds)


def _node(graph: Any, op: str, name: str, inputs: Sequence[str], **attributes: int) -> Any:
    """Add a node of int32."""
    node = graph.node.add(name=name, op=op, input=inputs)
    node.attr["T"].type = _TYPE
    for key, value in attributes.items():
        node.attr[key].i = value
    return node


def _placeholder(graph: Any, name: str) -> None:
    graph.node.add(name=name, op="Placeholder").attr["dtype"].type = _TYPE


def _constant(graph: Any, name: str, value: Any) -> None:
    node = graph.node.add(name=name, op="Const")
    node.attr["dtype"].type = _TYPE
    tensor = node.attr["value"].tensor
    tensor.dtype, tensor.tensor_content = _TYPE, np.asarray(value).tobytes()
    for size in np.shape(value):
        tensor.tensor_shape.dim.add(size=size)


def _pack(graph: Any, names: Sequence[str]) -> None:
    _node(graph, "Pack", "answer", names, N=len(names), axis=0)


def _written(
    folder: Path, graph: Any, feeds: dict[str, Any], fetches: list[str], answers: Any, units: int
) -> Case:
    """A case on disk."""
    graph.versions.producer = 27
    meta = {
        "group": "growth",
        "units": units,
        "devices": 1,
        "feeds": {f"{name}:0": name for name in feeds},
        "fetches": fetches,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.pb").write_bytes(graph.SerializeToString())
    np.savez(folder / "feeds.npz", **feeds)
    (folder / "case.json").write_text(json.dumps(meta), "utf-8")
    write_arrays(folder / "expected.npz", answers)
    return Case.read(folder)
