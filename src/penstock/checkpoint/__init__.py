"""Checkpoints without a graph: read, written, compared; and which of a folder is the latest."""

from __future__ import annotations

from penstock.checkpoint.checkpoint import Checkpoint, load
from penstock.checkpoint.diff import Difference, Kind, diff
from penstock.checkpoint.object_graph import (
    OBJECT_GRAPH_KEY,
    VARIABLE_VALUE,
    ObjectGraph,
    ObjectNode,
    SlotVariable,
)
from penstock.checkpoint.save import save, save_objects
from penstock.checkpoint.state_file import State, latest, read_state, write_state
from penstock.checkpoint.stores import TensorSpec

__all__ = [
    "OBJECT_GRAPH_KEY",
    "VARIABLE_VALUE",
    "Checkpoint",
    "Difference",
    "Kind",
    "ObjectGraph",
    "ObjectNode",
    "SlotVariable",
    "State",
    "TensorSpec",
    "diff",
    "latest",
    "load",
    "read_state",
    "save",
    "save_objects",
    "write_state",
]
