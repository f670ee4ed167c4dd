"""Ops that write into their input: what others see who read it later, and what is never seen.

Only what the graph orders is asked for: TensorFlow's answer to all else depends on its threads.
"""

from __future__ import annotations

from typing import Any

from cases_src.casebook import f32, graph, steps

_GIVEN = f32([[1], [2]])


def _after(tf: Any, nodes: Any, make: Any) -> Any:
    with tf.control_dependencies(nodes):
        return make()


def seen(tf: Any, what: str, source: str) -> Any:
    """A reader of what was written into, or of something else, after or before that."""
    raw = tf.raw_ops
    fed = tf.placeholder(tf.float32, None)
    x = {"computed": fed + 1, "constant": tf.constant(_GIVEN) * 1, "fed": fed}[source]

    def add(target: Any, row: int, number: float) -> Any:
        return raw.InplaceAdd(x=target, i=[row], v=[[number]])

    def later(nodes: Any) -> Any:
        return _after(tf, nodes, lambda: x * 10)

    def after(node: Any, target: Any, row: int, number: float) -> Any:
        return _after(tf, [node], lambda: add(target, row, number))

    nodes = {
        "later": lambda: [y := add(x, 0, 100), later([y])],
        "earlier": lambda: [z := x * 10, after(z, x, 0, 100)],
        "both": lambda: [z := x * 10, y := after(z, x, 0, 100), later([y])],
        "chain": lambda: [
            y := raw.InplaceSub(x=add(x, 0, 100), i=[1], v=[[7.0]]),
            z := raw.InplaceUpdate(x=y, i=[0, 1], v=[[5.0], [6.0]]),
            later([z]),
        ][1:],
        "between": lambda: [
            y := add(x, 0, 100),
            between := later([y]),
            z := after(between, y, 1, 50),
            later([z]),
            _after(tf, [z], lambda: y + 1),
        ][1:],
        "again": lambda: [y := add(x, 0, 100), z := after(y, x, 1, 50), later([z])][1:],
        "fetched": lambda: [x, add(x, 0, 100)],
        "chain_fetched": lambda: [x, y := add(x, 0, 100), add(y, 1, 50)],
        "copied": lambda: [copy := raw.DeepCopy(x=x), y := after(copy, copy, 0, 100), later([y])][
            1:
        ],
        "data": lambda: [x * tf.reduce_sum(add(x, 0, 100))],
    }[what]()
    return steps(({fed: _GIVEN}, nodes))


def in_branch(tf: Any, taken: bool) -> Any:
    """A branch that writes, or does not; whoever comes after both branches reads what is there."""
    raw = tf.raw_ops
    fed, says = tf.placeholder(tf.float32, None), tf.placeholder(tf.bool, [])
    x = fed + 1
    off, on = raw.Switch(data=tf.constant(0), pred=says)
    # A node that waits for the Switch itself would run in any case.
    y = _after(tf, [tf.identity(on)], lambda: raw.InplaceAdd(x=x, i=[0], v=[[100.0]]))
    merged = raw.Merge(inputs=[tf.reduce_sum(y), tf.cast(off, tf.float32)]).output
    return steps(({fed: _GIVEN, says: taken}, [merged]))


def in_loop(tf: Any) -> Any:
    """A loop that adds to one row after the other."""
    fed = tf.placeholder(tf.float32, None)

    def body(i: Any, x: Any) -> Any:
        y = tf.raw_ops.InplaceAdd(x=x, i=tf.reshape(i % 2, [1]), v=[[1.0]])
        return i + 1, _after(tf, [y], lambda: tf.identity(x))

    shapes = [tf.TensorShape([]), tf.TensorShape(None)]
    ends = tf.while_loop(lambda i, _: i < 5, body, [0, fed + 1], shape_invariants=shapes)
    return steps(({fed: _GIVEN}, list(ends)))


CASES = [
    *(
        graph(seen, what, "computed")
        for what in (
            "later",
            "earlier",
            "both",
            "chain",
            "between",
            "again",
            "fetched",
            "chain_fetched",
            "copied",
            "data",
        )
    ),
    *(graph(seen, what, source) for what in ("later", "chain") for source in ("constant", "fed")),
    graph(in_branch, True),
    graph(in_branch, False),
    graph(in_loop),
]
