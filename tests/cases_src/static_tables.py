"""Tables that are filled once, filled again; and mutable ones that take over what was exported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cases_src.casebook import Case, graph, steps

_KINDS = {
    "static": ("HashTableV2", {}),
    "mutable": ("MutableHashTableV2", {}),
    "vectors": ("MutableHashTableOfTensorsV2", {"value_shape": [2]}),
}


def filled(tf: Any, kind: str, actions: Sequence[Any]) -> Any:
    """A list of (how, keys, values); after each, the size and three values are looked at."""
    raw = tf.raw_ops
    op, options = _KINDS[kind]
    table = getattr(raw, op)(key_dtype=tf.string, value_dtype=tf.int64, **options)
    keys, values = tf.placeholder(tf.string, None), tf.placeholder(tf.int64, None)
    given = {"table_handle": table, "keys": keys, "values": values}
    nodes = {
        "initialize": raw.InitializeTableV2(**given),
        "take_over": raw.LookupTableImportV2(**given),
        "insert": raw.LookupTableInsertV2(**given),
    }
    data = tf.data.Dataset.from_tensor_slices((tf.constant(["x", "y"]), np.array([8, 9])))
    nodes["dataset"] = raw.InitializeTableFromDataset(
        table_handle=table, dataset=data._variant_tensor
    )
    default = np.zeros(options.get("value_shape", ()), np.int64) - 1
    found = raw.LookupTableFindV2(
        table_handle=table, keys=["a", "b", "x"], default_value=tf.constant(default)
    )
    size = raw.LookupTableSizeV2(table_handle=table)
    runs: list[Any] = [[table.op]]
    for how, *arrays in actions:
        fed = {}
        if arrays:
            names = np.char.encode(np.array(arrays[0], str)).astype(object)
            fed = {keys: names, values: np.array(arrays[1], np.int64)}
        # Where nothing is put in, nothing can be looked up.
        runs += [(fed, [nodes[how]]), [size, found] if len(actions) > 1 else [size]]
    return steps(*runs)


def _case(kind: str, *actions: Any, says: str = "") -> Case:
    return graph(filled, kind, actions, says=says)


_A = ["a", "b"], [1, 2]
_OTHER = "Table was already initialized with different data."
CASES = [
    # As many elements as there are change nothing, whatever they are.
    *(_case("static", (first, *_A), (second, *_A), (second, ["a", "b"], [5, 6]),
            (second, ["q", "q"], [7, 8]), ("dataset",))
      for first, second in (("initialize", "initialize"), ("initialize", "take_over"),
                            ("take_over", "take_over"))),
    *(_case("static", (first, *_A), (second, *other), says=_OTHER)
      for first, second in (("initialize", "initialize"), ("initialize", "take_over"),
                            ("take_over", "take_over"))
      for other in ((["a"], [1]), (["a", "b", "c"], [1, 2, 3]))),
    _case("static", ("initialize", ["a", "a"], [1, 1]), ("initialize", ["a"], [5])),
    _case("static", ("initialize", ["a", "a"], [1, 1]), ("initialize", ["a", "a"], [1, 1]),
          says=_OTHER),
    _case("static", ("dataset",), ("initialize", *_A), ("dataset",), ("initialize", ["a"], [1]),
          says=_OTHER),
    _case("static", ("initialize", [["a", "b"]], [[1, 2]]),
          says="Keys must be a vector, but received shape[1,2]"),
    _case("static", ("initialize", "a", 1), says="Keys must be a vector, but received shape[]"),
    _case("static", ("initialize", ["a", "b"], [1]),
          says="Keys and values must have the same size 2 vs 1"),
    *(_case("static", filling, ("dataset",)) for filling in (
        ("initialize", ["a", "b"], [[1, 2]]), ("take_over", [["a", "b"]], [[1, 2]]),
        ("take_over", "a", 1))),
    *(_case("static", (how, [], []), says="keys and values cannot be empty tensors.")
      for how in ("initialize", "take_over")),
    *(_case(kind, ("initialize", *_A), says="is not initializable") for kind in ("mutable",)),
    _case("mutable", ("insert", *_A), ("take_over", ["b", "c"], [5, 6]),
          ("take_over", ["x", "x"], [1, 2]), ("take_over", [], []), ("insert", *_A),
          ("take_over", [["x", "b"]], [[7, 8]]), ("take_over", "a", 9)),
    _case("mutable", ("insert", *_A), ("take_over", ["a", "b"], [1]),
          says="Expected shape [2] for value, got [1]"),
    _case("mutable", ("insert", *_A), ("take_over", ["a", "b"], [[1, 2], [3, 4]]),
          says="Expected shape [2] for value, got [2,2]"),
    _case("vectors", ("insert", ["a"], [[1, 2]]), ("take_over", ["x", "b"], [[5, 6], [7, 8]]),
          ("take_over", ["x", "x"], [[1, 2], [3, 4]]), ("take_over", [], np.zeros((0, 2))),
          ("take_over", [["b"]], [[[7, 8]]])),
    _case("vectors", ("take_over", ["a"], [5]), says="Expected shape [1,2] for value, got [1]"),
]  # fmt: skip
