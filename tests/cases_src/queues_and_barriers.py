"""Queues and barriers: in which order elements come out, when they end, and who shares them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from cases_src.casebook import Case, graph, steps

# -- order of queues -----------------------------------------------------------------------


def priorities(tf: Any, actions: Sequence[Any]) -> Any:
    """Elements of few priorities; which of equals comes first follows from how heaps are made."""
    raw = tf.raw_ops
    queue = raw.PriorityQueueV2(component_types=["int32"], shapes=[[]], capacity=-1)
    given, values = tf.placeholder(tf.int64, None), tf.placeholder(tf.int32, None)
    count = tf.placeholder(tf.int32, None)
    put = raw.QueueEnqueueManyV2(handle=queue, components=[given, values])
    take = raw.QueueDequeueManyV2(handle=queue, n=count, component_types=["int64", "int32"])
    runs: list[Any] = []
    done = 0
    for what, number in actions:
        if what == "put":
            numbers = np.arange(done, done + len(number)).astype(np.int32)
            runs.append(({given: np.array(number, np.int64), values: numbers}, [put]))
            done += len(number)
        else:
            runs.append(({count: np.int32(number)}, list(take)))
    return steps(*runs)


def _priorities(seed: int) -> Case:
    numbers, size = random.Random(seed), 0
    actions: list[Any] = []
    for _ in range(8):
        put = [numbers.randrange(-2, 2) for _ in range(numbers.randrange(1, 7))]
        size += len(put)
        taken = numbers.randrange(1, size + 1)
        actions += [("put", put), ("take", taken)]
        size -= taken
    return graph(priorities, actions)


def shuffled(tf: Any, seeds: tuple[int, int], many: bool, least: int) -> Any:
    raw = tf.raw_ops
    queue = raw.RandomShuffleQueueV2(
        component_types=["int32"], shapes=[[]], capacity=100, min_after_dequeue=least,
        seed=seeds[0], seed2=seeds[1],
    )  # fmt: skip
    values, count = tf.placeholder(tf.int32, None), tf.placeholder(tf.int32, None)
    put = raw.QueueEnqueueManyV2(handle=queue, components=[values])
    take_many = raw.QueueDequeueManyV2(handle=queue, n=count, component_types=["int32"])
    take = raw.QueueDequeueV2(handle=queue, component_types=["int32"])
    runs: list[Any] = []
    for start, stop, taken in ((0, 12, 5), (12, 17, 7), (17, 40, 8)):
        runs.append(({values: np.arange(start, stop).astype(np.int32)}, [put]))
        runs += [({count: np.int32(taken)}, list(take_many))] if many else [list(take)] * taken
    return steps(*runs)


# -- barriers ------------------------------------------------------------------------------


def barrier(tf: Any, actions: Sequence[Any], options: dict[str, Any]) -> Any:
    """A list of (action, arguments); after each, the sizes are looked at."""
    raw = tf.raw_ops
    types, shapes = options.get("types", ["float32", "int32"]), options.get("shapes", [[], [2]])
    handle = raw.Barrier(
        component_types=types, shapes=shapes, capacity=options.get("capacity", -1),
        container="", shared_name="bar",
    )  # fmt: skip
    keys = tf.placeholder(tf.string, None)
    values = [tf.placeholder(dtype, None) for dtype in types]
    count = tf.placeholder(tf.int32, None)
    insert = [
        raw.BarrierInsertMany(handle=handle, keys=keys, values=value, component_index=at)
        for at, value in enumerate(values)
    ]

    def take(may_be_fewer: bool) -> Any:
        return raw.BarrierTakeMany(
            handle=handle, num_elements=count, component_types=types,
            allow_small_batch=may_be_fewer, wait_for_incomplete=may_be_fewer, timeout_ms=-1,
        )  # fmt: skip

    nodes = {"take": list(take(False)), "take_up_to": list(take(True))}
    for name, cancels in (("close", False), ("close_now", True)):
        nodes[name] = [raw.BarrierClose(handle=handle, cancel_pending_enqueues=cancels)]
    sizes = [raw.BarrierReadySize(handle=handle), raw.BarrierIncompleteSize(handle=handle)]
    runs: list[Any] = [[handle.op]]
    for what, *given in actions:
        if what == "insert":
            at, names = given
            shape = (len(names), *shapes[at])
            value = np.arange(int(np.prod(shape))).reshape(shape).astype(types[at])
            runs.append(({keys: np.array(names, object), values[at]: value}, [insert[at]]))
        else:
            fed = {count: np.int32(given[0])} if given else {}
            runs.append((fed, nodes[what]))
        runs.append(sizes)
    return steps(*runs)


def _first(*names: bytes) -> Any:
    return "insert", 0, list(names)


def _second(*names: bytes) -> Any:
    return "insert", 1, list(names)


def _barrier(*actions: Any, says: str = "", **options: Any) -> Case:
    return graph(barrier, actions, options, says=says)


def not_a_number(tf: Any) -> Any:
    handle = tf.raw_ops.Barrier(component_types=["float32"], shapes=[[]])
    count = tf.placeholder_with_default(np.array([1], np.int32), None)
    return tf.raw_ops.BarrierTakeMany(
        handle=handle, num_elements=count, component_types=["float32"]
    )


_CLOSED = "is closed.  Pending enqueues cancelled: "
_LACKS = "is closed and has insufficient elements "
_BARRIERS = [
    _barrier(_first(b"a", b"b", b"c"), _second(b"c", b"a"), ("take", 1), ("take", 1),
             _second(b"b"), ("take", 1)),
    _barrier(_first(b"a"), _second(b"a"), _first(b"a"), _second(b"a"), ("take", 2), _second(b"a"),
             _first(b"a"), ("take", 1)),
    _barrier(_first(b"a", b"b", b"c", b"d", b"e"), _second(b"e", b"d", b"c", b"b", b"a"),
             ("take", 2), ("take", 3)),
    _barrier(_first(b"a", b"b", b"c"), _first(b"d", b"e", b"f"),
             _second(b"e", b"d", b"c", b"b", b"a"), ("take", 2), _second(b"f"), ("take", 4)),
    _barrier(_first(), ("take", 0)),
    _barrier(_first(b"a"), ("take", 1), types=["float32"], shapes=[[]]),
    # The keys before one that has the component already have it now; complete tuples are lost.
    _barrier(_first(b"a"), _first(b"b", b"a"), _second(b"b"), ("take", 1), _first(b"c"),
             _second(b"c"), ("take", 1), says="Key a already has a value for component 0"),
    _barrier(_first(b"a", b"b"), _second(b"a", b"z", b"z"), _second(b"b"), ("take", 1),
             says="Key z already has a value for component 1 in barrier"),
    # The end.
    _barrier(_first(b"a", b"b"), _second(b"a"), ("close",), _second(b"b"), ("take", 1),
             ("take_up_to", 2), ("take", 1), says=f"{_LACKS}(requested 1, total size 0)"),
    _barrier(_first(b"a", b"b"), _second(b"a"), ("close",), ("take_up_to", 2), _first(b"c"),
             says="but attempted to insert a brand new key: c.  Pending enqueues cancelled: 0.  "
                  "Insertion index: 0.  Number of incomplete keys: 1."),
    _barrier(_first(b"a", b"b"), ("close",), _second(b"a", b"b", b"c"),
             says="brand new key: c.  Pending enqueues cancelled: 0.  Insertion index: 2."),
    _barrier(_first(b"a", b"b"), _second(b"a"), ("close",), ("take", 3),
             says=f"{_LACKS}(requested 3, total size 2)"),
    _barrier(_first(b"a"), _second(b"a"), ("close",), ("take_up_to", 5), ("take_up_to", 5),
             says=f"{_LACKS}(requested 0, total size 0)"),
    _barrier(("close",), ("take", 0), says=f"{_LACKS}(requested 0, total size 0)"),
    _barrier(_first(b"a", b"b"), _second(b"a"), ("close_now",), ("take", 1), _second(b"b"),
             says=f"{_CLOSED}1.  Number of new insertions: 1.  Number of incomplete keys: 0."),
    _barrier(_first(b"a"), _second(b"a"), ("close",), _first(b"a"),
             says=f"{_CLOSED}0.  Number of new insertions: 1.  Number of incomplete keys: 0."),
    *(_barrier((one,), (other,), says="Barrier 'bar' is already closed.")
      for one, other in (("close", "close"), ("close_now", "close"), ("close_now", "close_now"))),
    _barrier(shapes=[[]], says="All of the component shapes must be specified"),
    _barrier(shapes=[[], [None]], says="Shape [?] is not fully defined"),
    _barrier(_first(b"a"), shapes=[[], [0]]),
    _barrier(capacity=3, says="Barrier only accepts capacity=-1.  Feed the inputs to your Barrier"),
    graph(not_a_number, says="num_elements must be a scalar."),
]  # fmt: skip

# -- sharing -------------------------------------------------------------------------------

_SHARED: dict[str, tuple[str, dict[str, Any]]] = {
    "fifo": ("FIFOQueueV2", {"shapes": [[]]}),
    "shuffle": (
        "RandomShuffleQueueV2", {"shapes": [[]], "min_after_dequeue": 2, "seed": 3, "seed2": 4}
    ),
    "padding": ("PaddingFIFOQueueV2", {"shapes": [[None]]}),
    "priority": ("PriorityQueueV2", {"shapes": [[]]}),
    "barrier": ("Barrier", {"shapes": [[]], "capacity": -1}),
}  # fmt: skip


def shared(tf: Any, kind: str, first: dict[str, Any], second: dict[str, Any]) -> Any:
    """Two nodes of one name, of which the second may want something else."""
    op, common = _SHARED[kind]
    wanted = {"component_types": ["float32"], "capacity": 10, "shared_name": "x", **common}
    one, two = (
        getattr(tf.raw_ops, given.get("op", op))(
            **{**wanted, **{name: value for name, value in given.items() if name != "op"}}
        )
        for given in (first, second)
    )
    return steps([one.op], [two.op], [one.op])


def _conflict(kind: str, what: str, first: Any, second: Any, **changes: Any) -> Case:
    were = "were" if what.endswith("s") else "was"
    says = f"'x' has {what} {first} but requested {what} {were} {second}"
    return graph(shared, kind, {}, changes, says=says)


def stacks(tf: Any, first: dict[str, Any], second: dict[str, Any]) -> Any:
    """Two stacks of one name are two, whatever they are of."""
    raw = tf.raw_ops
    made = [
        raw.StackV2(stack_name="x", max_size=-1, elem_type=given["elem_type"])
        for given in (first, second)
    ]
    pushed = [
        raw.StackPushV2(handle=handle, elem=tf.constant(number, given["elem_type"]))
        for handle, number, given in zip(made, (1, 2), (first, second), strict=True)
    ]
    with tf.control_dependencies(pushed):
        return [
            raw.StackPopV2(handle=handle, elem_type=given["elem_type"])
            for handle, given in zip(made, (first, second), strict=True)
        ]


_QUEUES = ("fifo", "shuffle", "padding", "priority")
_SEEDS = {"seed": 5, "seed2": 4}
_FLOATS = {"component_types": ["float32", "float32"], "shapes": [[], []]}
_SHARING = [
    *(graph(shared, kind, {}, {}) for kind in _SHARED),
    *(_conflict(kind, "capacity", 10, 11, capacity=11) for kind in _QUEUES),
    _conflict("fifo", "capacity", 10, 2**31 - 1, capacity=-1),
    *(_conflict(kind, "component types", "float", "int32", component_types=["int32"])
      for kind in ("fifo", "shuffle", "padding", "barrier")),
    _conflict("priority", "component types", "int64, float", "int64, int32",
              component_types=["int32"]),
    _conflict("fifo", "component types", "float", "float, float", **_FLOATS),
    _conflict("barrier", "component types", "float", "float, float", **_FLOATS),
    *(_conflict(kind, "component shapes", "[[]]", "[[2]]", shapes=[[2]])
      for kind in ("fifo", "shuffle", "barrier")),
    _conflict("priority", "component shapes", "[[], []]", "[[], [2]]", shapes=[[2]]),
    _conflict("shuffle", "min_after_dequeue", 2, 3, min_after_dequeue=3),
    # Sizes that one of them leaves open fit any.
    graph(shared, "padding", {}, {"shapes": [[3]]}),
    graph(shared, "padding", {"shapes": [[3]]}, {}),
    graph(shared, "padding", {"shapes": [[3]]}, {"shapes": [[4]]}, says="component shapes [[3]]"),
    graph(shared, "padding", {}, {"shapes": [[None, None]]}, says="component shapes [[?]]"),
    graph(shared, "shuffle", {}, _SEEDS,
          says="'x' has random seeds (3, 4) but requested seeds are (5, 4)."),
    graph(shared, "shuffle", {"seed": 0, "seed2": 0}, {}, says="has random seeds (0, 0)"),
    graph(shared, "shuffle", {}, {"seed": 0, "seed2": 0}),
    graph(shared, "fifo", {}, {"op": "PriorityQueueV2"}, says="Expected FIFOQueue, found"),
    graph(shared, "fifo", {"op": "PaddingFIFOQueueV2"}, {}, says="Expected PaddingFIFOQueue,"),
    *(graph(stacks, {"elem_type": first}, {"elem_type": second})
      for first, second in product(("float32", "int32"), repeat=2)),
]  # fmt: skip

CASES = [
    *map(_priorities, range(6)),
    *(graph(shuffled, seeds, many, 2)
      for seeds, many in product(((1, 2), (0, 5), (7, 0), (2**40, -3)), (True, False))),
    graph(shuffled, (1, 2), True, 0),
    *_BARRIERS,
    *_SHARING,
]  # fmt: skip
