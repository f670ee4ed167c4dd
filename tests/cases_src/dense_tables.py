"""Dense tables: where each key stands, when buckets are doubled, and what is taken over.

A program is a list of (action, keys, values); after each change all buckets are looked at.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from cases_src.casebook import Case, graph, steps

_TAKEN = {"int64": (-1, -2), "int32": (-1, -2), "string": (b"", b"-")}


def program(tf: Any, actions: Sequence[Any], options: dict[str, Any]) -> Any:
    raw = tf.raw_ops
    key, value = options.get("key", "int64"), options.get("value", "float32")
    shape = options.get("value_shape", [])
    empty, deleted = options.get("taken", _TAKEN[key])
    table = raw.MutableDenseHashTableV2(
        empty_key=tf.constant(empty, key), deleted_key=tf.constant(deleted, key),
        value_dtype=value, value_shape=shape,
        initial_num_buckets=options.get("buckets", 8), max_load_factor=options.get("load", 0.8),
    )  # fmt: skip
    keys, values = tf.placeholder(key, None, name="k"), tf.placeholder(value, None, name="v")
    nodes = {
        "insert": raw.LookupTableInsertV2(table_handle=table, keys=keys, values=values),
        "take_over": raw.LookupTableImportV2(table_handle=table, keys=keys, values=values),
        "remove": raw.LookupTableRemoveV2(table_handle=table, keys=keys),
        "find": raw.LookupTableFindV2(table_handle=table, keys=keys, default_value=values),
    }
    every = raw.LookupTableExportV2(table_handle=table, Tkeys=key, Tvalues=value)
    seen = [*every, raw.LookupTableSizeV2(table_handle=table)]
    key_rank, numbers = np.ndim(empty), random.Random(0)

    def feeds(given: Any, new: Any, action: str) -> dict[Any, Any]:
        fed = np.asarray(given, object if key == "string" else key)
        if new is None:
            batch = () if action == "find" else fed.shape[: fed.ndim - key_rank]
            count = int(np.prod((*batch, *shape)))
            new = [numbers.randrange(100) for _ in range(count)]
            new = np.reshape(new, (*batch, *shape))
        made = {keys: fed, values: np.asarray(new, value)}
        return {keys: fed} if action == "remove" else made

    runs: list[Any] = [[table.op]]
    for action, given, *new in actions:
        runs.append((feeds(given, new[0] if new else None, action), [nodes[action]]))
        if action != "find":
            runs.append(seen)
    return steps(*runs)


def shared(tf: Any, options: dict[str, Any]) -> Any:
    """A second node of the name gets the first one's table, if keys and values are of its types."""
    raw, types = tf.raw_ops, {"empty_key": tf.constant(-1), "deleted_key": tf.constant(-2)}
    wanted = {"value_dtype": "float32", "initial_num_buckets": 8, "shared_name": "both"}
    first = raw.MutableDenseHashTableV2(**types, **wanted)
    second = raw.MutableDenseHashTableV2(**{**types, **wanted, **options})
    return steps([first.op], [second.op], [raw.LookupTableSizeV2(table_handle=second)])


def _case(*actions: Any, says: str = "", **options: Any) -> Case:
    return graph(program, actions, options, says=says)


def _put(*keys: Any) -> tuple[str, Any]:
    return "insert", list(keys)


def _drop(*keys: Any) -> tuple[str, Any]:
    return "remove", list(keys)


def _look(*keys: Any) -> tuple[str, Any]:
    return "find", list(keys)


def _random(seed: int, width: int) -> Case:
    """Keys that meet in few buckets; with a width, keys of so many numbers."""
    numbers = random.Random(seed)

    def key() -> Any:
        if width:
            return [numbers.randrange(4) for _ in range(width)]
        return numbers.randrange(24) * numbers.choice([1, 8, 16])

    actions = [
        (numbers.choices(["insert", "remove", "find"], [5, 3, 2])[0],
         [key() for _ in range(numbers.randrange(1, 5))])
        for _ in range(20)
    ]  # fmt: skip
    options: dict[str, Any] = {"taken": ([-1] * width, [-2] * width)} if width else {}
    return _case(
        *actions,
        buckets=numbers.choice([4, 8, 16]),
        load=numbers.choice([0.5, 0.8, 0.9]),
        **options,
    )


_BUCKETS = [[-1], [1], [2], [3]]
_ROWS = [[5.0], [6.0], [7.0], [8.0]]
_FULL = [[0], [1], [2], [3]]
CASES = [
    _case(_put(1, 2, 3), _put(9, 17), _drop(9), _look(1, 9, 17, 5), _put(25), _drop(1), _put(9),
          _look(17, 9, 25)),
    # A key stands in two buckets after it was put into one that had become free.
    _case(_put(1, 9, 17), _drop(1), _put(17), _drop(17), _look(17), _put(9), _drop(9),
          _look(9, 17), _put(17), _put(33, 34, 35)),
    _case(*(_put(key) for key in range(14))),
    _case(*(_put(key) for key in range(9)), load=0.5),
    _case(*(_put(key) for key in range(9)), load=0.99, buckets=4),
    _case(_put(*range(1, 40)), load=0.3, buckets=4),
    _case(_put(1, 2, 3, 4), _drop(1, 2), _put(5, 6), _put(7), _put(8), _look(1, 8), _put(9)),
    _case(_put(1, 2, 3, 4, 5, 6), _drop(1, 2), _put(7, 0), _look(1, 0)),
    _case(_put(-100, -3, 2**62, -(2**62), 100)),
    _case(_put(1, 1, 1), _put(1, 2, 1)),
    _case(_put(1, -5, 2**31 - 1, -(2**31)), key="int32", value="int32"),
    *(_case(_put(b"a", b"b", b"c", b"hello", b"x" * 20), _drop(b"b"), _look(b"a", b"b"),
            _put(b"zz", b"y", b"12345678"), key="string", value=value)
      for value in ("float32", "int64", "bool")),
    _case(_put([b"a", b"b"], [b"c", b"hello"]), _drop([b"a", b"b"]), key="string",
          taken=([b"", b""], [b"-", b""])),
    _case(_put([1], [2]), _drop([1]), _look([1], [2]), taken=([-1], [-2]), buckets=4),
    *(_case(_put(1, 2, 9), _drop(2), _look(1, 2, 9), value_shape=shape) for shape in ([2], [0])),
    *(_random(seed, width) for width, seed in product((0, 2, 3), range(4))),
    # Buckets that were made elsewhere.
    _case(("take_over", _BUCKETS, _ROWS), _look(1, 2, 3), _put(4), _look(1, 2, 3, 4)),
    _case(_put(7), ("take_over", [*_BUCKETS, [-2], [-1], [-1], [-1]], [*_ROWS, *_ROWS]),
          _look(1, 2, 3), _put(4), _put(1, 2, 3, 4, 5, 6, 7)),
    _case(("take_over", [[1], [2], [3], [-1]], _ROWS), _look(1, 2, 3), _put(1, 2, 3, 4),
          _look(1, 2, 3, 4)),
    _case(("take_over", [[1], [1], [-1], [-1]], _ROWS), _look(1), _drop(1), _look(1)),
    _case(("take_over", _FULL, _ROWS), _look(1, 2), _put(9), _look(9)),
    _case(("take_over", [[0], [1], [-1], [-1], [-1]], [*_ROWS, [0.0]]), _look(1, 2), _put(7),
          _look(7)),
    _case(("take_over", np.zeros((0, 1)), np.zeros((0, 1)))),
    _case(("take_over", [[1, 2], [-1, -1]], [[5.0, 6.0], [7.0, 8.0]]), _look([1, 2], [3, 4]),
          taken=([-1, -1], [-2, -2]), value_shape=[2]),
    _case(("take_over", _FULL, _ROWS), _look(9), says="MutableDenseHashTable lookup"),
    _case(("take_over", _FULL, _ROWS), _drop(9), says="MutableDenseHashTable remove"),
    _case(("take_over", [[0], [1], [-1], [-1], [-1]], [*_ROWS, [0.0]]), _put(7, 8, 9),
          says="at least 4 and a power of 2, got: 10"),
    _case(("take_over", [1, 2, 3], [1.0, 2.0, 3.0]),
          says="Expected shape [1] for value, got [3]"),
    _case(("take_over", [[1], [2]], _ROWS), says="Expected shape [2,1] for value, got [4,1]"),
    # Mistakes.
    _case(_put(1, -1), says="Using the empty_key as a table key is not allowed"),
    _case(_put(1, -2, 3), says="Using the deleted_key as a table key is not allowed"),
    *(_case(act(*keys), says="as a table key is not allowed")
      for act, keys in product((_look, _drop), ([-1], [1, -2]))),
    _case(("insert", [1, 2], [1.0]), says="Expected shape [2] for value, got [1]"),
    _case(("insert", [[5, 6]], [[1.0, 2.0]]), says="Expected key shape [1] got [1,2]"),
    _case(("insert", 5, 1.0), ("find", 5)),
    _case(("insert", [1, 2, 3], [1.0]), taken=([-1, -1], [-2, -2]),
          says="Input key shape [3] must end with the table's key shape [2]"),
    _case(("find", [1, 2], [3.0, 4.0])),
    _case(_put(1), ("find", [1, 2], [[1.0, 2.0], [3.0, 4.0]]), value_shape=[2]),
    _case(("find", [1, 2], [[1.0, 2.0]]), says="Expected shape [] or [2] for default value"),
    *(_case(_put(1), buckets=count, says=f"and a power of 2, got: {count}")
      for count in (0, 2, 12)),
    *(_case(_put(1), load=load, says="max_load_factor must be between 0 and 1")
      for load in (0.0, 1.0, -1.0)),
    _case(_put(1), taken=(5, 5), says="Empty and deleted keys cannot be equal"),
    _case(_put(1), taken=(5, [5]), says="Empty and deleted keys must have same shape"),
    _case(("insert", [1], [[[1.0]]]), value_shape=[1, 1],
          says="Empty value must be a scalar or a vector, got shape [1,1]"),
    *(graph(shared, others) for others in ({"initial_num_buckets": 16}, {"value_shape": [2]})),
    graph(shared, {"value_dtype": "float64"}, says="Conflicting key/value dtypes int32->double"),
]  # fmt: skip
