"""Shapes of tables, and of what is looked up in them.

In:   nodes of this folder's ops.
Out:  shape rules; the handle of a table points to one of its values.
Not:  knows no table's size.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import SCALAR, UNKNOWN, TensorShape
from penstock.kernels.api.partial_shapes import concat, shape
from penstock.kernels.api.shape_context import Held, ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures(
    {
        "LookupTableSize LookupTableSizeV2": "* -> []",
    }
)


@shape_rule(
    *("AnonymousHashTable", "AnonymousMutableHashTable", "HashTableV2", "MutableHashTableV2"),
    *("HashTable", "MutableHashTable"),
)
def table(node: ShapeContext) -> TensorShape:
    """A handle of a table whose values are scalars; two strings in the oldest ones."""
    return _table(node, SCALAR)


@shape_rule(
    *("AnonymousMutableHashTableOfTensors", "MutableHashTableOfTensors"),
    "MutableHashTableOfTensorsV2",
)
def table_of_tensors(node: ShapeContext) -> TensorShape:
    """A handle of a table whose values have a shape of their own."""
    return _table(node, node.attrs.shape("value_shape"))


@shape_rule(
    *("AnonymousMutableDenseHashTable", "MutableDenseHashTable", "MutableDenseHashTableV2"),
)
def dense_table(node: ShapeContext) -> TensorShape:
    """The same; its keys may be vectors, of which nothing is said."""
    made = _table(node, node.attrs.shape("value_shape"))
    if node.input(0).rank != 0:
        node.holds.clear()
    return made


def _table(node: ShapeContext, values: TensorShape) -> TensorShape:
    node.holds[0] = Held(values, node.attrs.dtype("value_dtype"))
    is_resource = node.attrs.output_types[0].name == "resource"
    return SCALAR if is_resource else shape(2)


@shape_rule("LookupTableFind", "LookupTableFindV2")
def find(node: ShapeContext) -> TensorShape:
    """A value per key."""
    held, keys = node.held(0), node.input(1)
    if held is None:
        return UNKNOWN
    return concat(keys, held.shape)


@shape_rule("LookupTableExport", "LookupTableExportV2")
def export(_node: ShapeContext) -> Sequence[TensorShape]:
    """Nothing: a dense table gives matrices also where keys and values are scalars."""
    return UNKNOWN, UNKNOWN
