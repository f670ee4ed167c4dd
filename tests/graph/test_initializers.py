"""What initializes and what restores is told from the graph, whatever it is called.

The graphs are those that TensorFlow 1's Saver, global_variables_initializer and
tables_initializer make, with fewer variables.
"""

from __future__ import annotations

import pytest

from penstock.graph.initializers import Restorer, initializer_of, restorer_of
from support.graphs import graph

REFERENCES = """
w/start = Const
w = VariableV2[shape=]
w/Assign = Assign[T=float32](w, w/start)
w/read = Identity(w)
target/start = Const
target = VariableV2[shape=]
target/Assign = Assign[T=float32](target, target/start)
copy = Assign[T=float32](target, w/read)
update = NoOp(^copy)
average = VariableV2[shape=]
average/Assign = Assign[T=float32](average, w/read)
init = NoOp(^average/Assign, ^target/Assign, ^w/Assign)
both = NoOp(^init, ^update)
one/name = Const[dtype=string; value=model]
one/Const = PlaceholderWithDefault[dtype=string; shape=](one/name)
one/tensors = Const[dtype=string; value=w|target|average]
one/RestoreV2 = RestoreV2[dtypes=float32|float32|float32](one/Const, one/tensors, one/tensors)
one/Assign = Assign[T=float32](w, one/RestoreV2)
one/Assign_1 = Assign[T=float32](target, one/RestoreV2:1)
one/Assign_2 = Assign[T=float32](average, one/RestoreV2:2)
one/shard = NoOp(^one/Assign, ^one/Assign_1, ^one/Assign_2)
one/all = NoOp(^one/shard)
few/name = Const[dtype=string; value=model]
few/prefix = Identity[T=string](few/name)
few/RestoreV2 = RestoreV2[dtypes=float32](few/prefix, one/tensors, one/tensors)
few/value = Identity(few/RestoreV2)
few/Assign = Assign[T=float32](w, few/value)
few/all = NoOp(^few/Assign)
"""
RESOURCES = """
start = Const
handle = VarHandleOp[dtype=float32; shape=; shared_name=weights]
first = AssignVariableOp[dtype=float32](handle, start)
name = Const[dtype=string; value=model]
tensors = Const[dtype=string; value=weights]
restore = RestoreV2[dtypes=float32](name, tensors, tensors)
value = Identity(restore)
assign = AssignVariableOp[dtype=float32](handle, value)
lonely = VarHandleOp[dtype=float32; shape=; shared_name=lonely]
"""
TABLES = """
keys = Const[dtype=string; value=a|b]
values = Const[dtype=int64; value=1|2]
start = Const
v = VariableV2[shape=]
v/Assign = Assign[T=float32](v, start)
init = NoOp(^v/Assign)
one = HashTableV2[key_dtype=string; value_dtype=int64]
two = HashTableV2[key_dtype=string; value_dtype=int64]
fill = InitializeTableV2[Tkey=string; Tval=int64](one, keys, values)
fill_1 = LookupTableImportV2[Tin=string; Tout=int64](two, keys, values)
tables = NoOp(^fill, ^fill_1)
"""


@pytest.mark.parametrize(
    ("text", "kind", "name", "node"),
    [
        (REFERENCES, "variable", "w", "init"),
        (REFERENCES, "variable", "w/read", "init"),
        (REFERENCES, "variable", "target", "init"),
        (REFERENCES, "variable", "average", "init"),
        (REFERENCES, "variable", "nobody", None),
        (REFERENCES, "table", "", None),
        (RESOURCES, "variable", "weights", "first"),
        (RESOURCES, "variable", "handle", "first"),
        (RESOURCES, "variable", "lonely", None),
        (TABLES, "variable", "v", "init"),
        (TABLES, "table", "", "tables"),
        ("a = Const", "iterator", "", None),
    ],
)
def test_initializers(text: str, kind: str, name: str, node: str | None) -> None:
    """What initializes the most and nothing else is found; updates are no initializers."""
    assert initializer_of(graph(text), kind, name) == node


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        (REFERENCES, "w", Restorer("one/all", "one/Const:0")),
        (REFERENCES, "w/read", Restorer("one/all", "one/Const:0")),
        (REFERENCES, "average", Restorer("one/all", "one/Const:0")),
        (REFERENCES, "nobody", None),
        (REFERENCES.replace("one/Assign =", "lost ="), "w", Restorer("few/all", "few/name:0")),
        (RESOURCES, "weights", Restorer("assign", "name:0")),
        (RESOURCES, "lonely", None),
    ],
)
def test_restorers(text: str, name: str, found: Restorer | None) -> None:
    """Of several savers the one that restores the most is found, with its own prefix."""
    if "lost =" in text:
        text = text.replace("^one/Assign,", "").replace(
            "lost = Assign[T=float32](w,", "lost = Neg("
        )
    assert restorer_of(graph(text), name) == found


def test_all_orders_of_nodes_give_the_same() -> None:
    """An assignment that restores is no initializer, even where it comes first."""
    lines = [line for line in RESOURCES.splitlines() if line]
    earlier = [line for line in lines if not line.startswith(("start", "first"))]
    moved = "\n".join([*earlier, *lines[:1], *lines[2:3]])

    assert initializer_of(graph(moved), "variable", "weights") == "first"
    assert restorer_of(graph(moved), "weights") == Restorer("assign", "name:0")
