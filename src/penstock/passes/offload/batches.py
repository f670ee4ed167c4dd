"""Whether a region may be computed for some entries of a batch at a time, and for how many.

In:   the nodes of a region, what it reads and gives, and what is known of shapes.
Out:  a ``Cut``, if each entry is alone in all of the region.
Not:  runs nothing, and knows no batch's size: a batch is what has an unknown first dimension.

ONNX Runtime works on the whole batch, node by node; what lies between these is as large as that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.graph.graph import Edge, Node
from penstock.passes.batchwise import Sizes, read_by_entries
from penstock.passes.offload.write_model import RegionModel
from penstock.passes.region_node import Output
from penstock.shapes.infer import Shapes

#: Stands for how many entries there are.
_BATCH: Final = -1


class Cut(NamedTuple):
    """How a region is cut by entries."""

    #: Which inputs are given some entries.
    by_entries: tuple[bool, ...]
    #: How many entries at a time.
    at_once: int


#: What is not cut.
WHOLE: Final = Cut((), 0)


def cut_of(nodes: Sequence[Node], model: RegionModel, shapes: Shapes, most: int) -> Cut:
    """How a region is cut, or ``WHOLE``.

    Args:
        nodes: the region, in an order in which they can run.
        model: what it reads and gives.
        shapes: what is known of shapes.
        most: elements of the largest array that lies between two nodes.

    """
    region = _EntriesOfRegion(nodes, shapes)
    if not all(region.takes(node) for node in nodes):
        return WHOLE
    if not all(region.has_entries(*output) for output in model.outputs):
        return WHOLE
    inputs = [reader.input(slot) for reader, slot in model.inputs]
    by_entries = tuple(region.reads.get((edge.src, edge.src_slot), False) for edge in inputs)
    return Cut(by_entries, max(most // region.largest, 1))


class _EntriesOfRegion:
    """What has entries in the nodes of a region that have been looked at."""

    def __init__(self, nodes: Sequence[Node], shapes: Shapes) -> None:
        self._inside = frozenset(nodes)
        self._shapes = shapes
        self._with_entries = set[Node]()
        #: What comes from outside, and whether it is read by entries.
        self.reads: dict[Output, bool] = {}
        #: Elements of the largest array between two nodes, for one entry.
        self.largest = 1

    def has_entries(self, node: Node, slot: int) -> bool:
        """Whether an output of the region has the batch, and each entry is alone in it."""
        return slot == 0 and node in self._with_entries

    def takes(self, node: Node) -> bool:
        """Look at one more node; whether entries are alone in it, or it has none."""
        edges = [edge for edge in node.inputs if edge is not None]
        sizes = [self._sizes(edge) for edge in edges]
        flags = read_by_entries(node, sizes, _BATCH)
        if flags is None:
            flags = (False,) * len(edges)
        else:
            self._with_entries.add(node)
            entry = (self._shapes.shape(node, 0).dims or ())[1:]
            self.largest = max(self.largest, math.prod(size or 1 for size in entry))
        return all(map(self._agrees, edges, flags))

    def _agrees(self, edge: Edge, has_entries: bool) -> bool:  # noqa: FBT001
        """Whether what an edge brings is read as it is, and by others."""
        if edge.src in self._inside:
            return self.has_entries(edge.src, edge.src_slot) is has_entries
        return self.reads.setdefault((edge.src, edge.src_slot), has_entries) is has_entries

    def _sizes(self, edge: Edge) -> Sizes:
        """Sizes, of which that of the batch is known by another one."""
        dims = self._shapes.shape(edge.src, edge.src_slot).dims
        if edge.src in self._inside:
            is_batch = self.has_entries(edge.src, edge.src_slot)
        else:
            is_batch = bool(dims) and dims is not None and dims[0] is None
        return (_BATCH, *dims[1:]) if is_batch and dims else dims
