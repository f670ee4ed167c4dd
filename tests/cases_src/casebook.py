"""How a case is written down: one op and its inputs, or a small graph as a function.

In:   rows of a family's table.
Out:  records that ``tools/record_case.py`` turns into graphs with TensorFlow's answers.
Not:  imports no TensorFlow; holds no answers.

    CASES = [
        op("Bincount", arr=i32([1, 2, 2]), size=i32(3), weights=f32([])),
        graph(two_pushes),
        rows("a_switch", "x = Placeholder() dtype=float32\n...", ({"x": f32(1)}, ["s:1"])),
    ]

Arguments of ``op`` are those of ``tf.raw_ops``: arrays (made by ``f32`` and its like) become
placeholders that are fed, lists of arrays a list input, and everything else an attribute.
A function given to ``graph`` gets TensorFlow's ``tf.compat.v1`` and builds a graph; it returns
what one run fetches, or ``steps(...)`` for several runs of one session.  ``rows`` takes a graph
as ``support.sketch`` reads it, for what no front end of TensorFlow makes.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from penstock.graph.export import graph_to_def
from support.sketch import sketch

nan, inf = float("nan"), float("inf")
#: Nothing but the very bits will do, but for those of NaN: ``op(..., **EXACT)``.
EXACT: Mapping[str, Any] = {"tol": (0.0, 0.0)}


@dataclass(frozen=True, slots=True)
class Case:
    """One case, still without answers."""

    #: Several cases may share a name; the recorder numbers them.
    name: str
    build: Callable[..., Any]
    #: Relative and absolute tolerance; if both are 0, zeros must have the same sign, too.
    tol: tuple[float, float]
    #: A part of TensorFlow's error message that ours must have.
    says: str
    #: Codes that are accepted beside TensorFlow's own.
    also: tuple[str, ...]
    runs: int = 1
    #: The graph's version, for ops that newer graphs may not have; 0 is the newest.
    producer: int = 0
    #: Whether placeholders have the shapes that they are fed with.
    is_shaped: bool = False
    #: Arguments of the raw op; none if the case is a graph.
    args: Mapping[str, Any] = field(default_factory=dict)
    #: How many CPU devices the session has.
    cpus: int = 1


def op(
    name: str,
    *,
    tol: tuple[float, float] = (1e-5, 1e-6),
    says: str = "",
    also: tuple[str, ...] = (),
    runs: int = 1,
    producer: int = 0,
    is_shaped: bool = False,
    **args: Any,
) -> Case:
    """One node of op ``name``, all of whose outputs are fetched in each of ``runs`` runs."""
    return Case(name, _raw_op, tol, says, also, runs, producer, is_shaped, args)


def graph(
    build: Callable[..., Any],
    *args: Any,
    tol: tuple[float, float] = (1e-5, 1e-6),
    says: str = "",
    also: tuple[str, ...] = (),
    runs: int = 1,
    producer: int = 0,
    cpus: int = 1,
) -> Case:
    """A graph made by ``build(tf, *args)``, which returns tensors and operations to fetch."""
    made = functools.partial(_with_args, build, args)
    name = "_".join([build.__name__, *(arg for arg in args if isinstance(arg, str))])
    return Case(name, made, tol, says, also, runs, producer, cpus=cpus)


def rows(
    name: str,
    text: str,
    *runs: tuple[Mapping[str, Any], Sequence[str]],
    says: str = "",
    also: tuple[str, ...] = (),
) -> Case:
    """A graph as text; each run feeds endpoints, fetches endpoints and runs nodes, by name."""

    def build(tf: Any, _case: Case) -> Any:
        message = tf.GraphDef.FromString(graph_to_def(sketch(text)).SerializeToString())
        tf.import_graph_def(message, name="")
        find = tf.get_default_graph().as_graph_element
        return Steps(
            tuple(
                ({find(f"{fed}:0"): value for fed, value in feeds.items()}, list(map(find, wanted)))
                for feeds, wanted in runs
            )
        )

    return Case(name, build, (1e-5, 1e-6), says, also)


def numbered(cases: Sequence[Case]) -> dict[str, Case]:
    """Cases by names of their own: Add, Add_2, Add_3."""
    seen: Counter[str] = Counter()
    by_name = {}
    for case in cases:
        seen[case.name] += 1
        number = seen[case.name]
        by_name[case.name if number == 1 else f"{case.name}_{number}"] = case
    return by_name


@dataclass(frozen=True, slots=True)
class Steps:
    """Several runs of one session: (feeds by tensor, what is fetched) each."""

    runs: tuple[tuple[Mapping[Any, Any], Sequence[Any]], ...]


def steps(*runs: Any) -> Steps:
    """Runs in order; each a list of fetches, or a pair of feeds and fetches."""
    return Steps(tuple(run if isinstance(run, tuple) else ({}, run) for run in runs))


def _with_args(build: Callable[..., Any], args: Sequence[Any], tf: Any, _case: Case) -> Any:
    return build(tf, *args)


def _raw_op(tf: Any, case: Case) -> Any:
    feeds: dict[Any, Any] = {}

    def fed(name: str, value: Any) -> Any:
        if isinstance(value, list) and value and all(map(_is_array, value)):
            return [fed(f"{name}_{number}", item) for number, item in enumerate(value)]
        if not _is_array(value):
            return value
        shape = value.shape if case.is_shaped else None
        holder = tf.placeholder(dtype_name(value), shape, name=name)
        feeds[holder] = value
        return holder

    args = {name: fed(name, value) for name, value in case.args.items()}
    made = getattr(tf.raw_ops, case.name)(name="node", **args)
    return Steps(((feeds, [made]),) * case.runs)


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def dtype_name(array: Any) -> str:
    """TensorFlow's name of an array's element type."""
    if array.dtype == object:
        return "string"
    if array.dtype.names:
        return str(array.dtype.names[0])
    return str(array.dtype.name)


def s(value: Any) -> Any:
    """Strings, from ``bytes`` in any nesting of lists."""
    return np.array(value, object)


def q(name: str, value: Any) -> Any:
    """A quantised array: its integers under the name of its type."""
    integers = {"qint8": "i1", "quint8": "u1", "qint16": "i2", "quint16": "u2", "qint32": "i4"}
    return np.asarray(value, integers[name]).view([(name, integers[name])])


def of(dtype: Any) -> Callable[[Any], Any]:
    """What makes arrays of a type."""
    return functools.partial(np.asarray, dtype=dtype)


f16, f32, f64, bf16 = map(of, (np.float16, np.float32, np.float64, ml_dtypes.bfloat16))
i8, i16, i32, i64 = map(of, (np.int8, np.int16, np.int32, np.int64))
u8, u16, u32, u64 = map(of, (np.uint8, np.uint16, np.uint32, np.uint64))
c64, c128, b1 = map(of, (np.complex64, np.complex128, np.bool_))


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    """Numbers around zero, the same ones every time."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def uniform(*shape: int, low: float = 0, high: float = 1, seed: int = 0) -> Any:
    """Numbers from an interval, the same ones every time."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def integers(*shape: int, low: int = 0, high: int = 10, seed: int = 0, dtype: Any = "i4") -> Any:
    """Whole numbers below ``high``, the same ones every time."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)
