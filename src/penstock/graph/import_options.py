"""What can be asked for when a definition is merged into a graph, and what comes back.

Not:  imports nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.defs.large_contents import LargeContents
from penstock.graph.graph import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """How a definition is merged into a graph."""

    #: Contents of constants that were taken out of the definition.
    contents: LargeContents = field(default_factory=dict)
    #: Put in front of every name, with a slash.
    prefix: str = ""
    #: Endpoints of the definition → endpoints that exist in the graph already.
    input_map: Mapping[str, str] = field(default_factory=dict)
    #: Existing nodes that every imported node is to wait for.
    control_dependencies: Sequence[str] = ()
    #: Endpoints of the definition to look up afterwards.
    return_tensors: Sequence[str] = ()
    #: Nodes of the definition to look up afterwards.
    return_nodes: Sequence[str] = ()
    #: Append ``_1``, ``_2`` … to names that are taken, instead of refusing them.
    uniquify_names: bool = False
    uniquify_prefix: bool = False
    #: Leave out nodes all of whose outputs are mapped.
    skip_mapped_nodes: bool = False
    default_device: str = ""
    validate_colocation: bool = True
    #: Allow node names with a leading underscore, as the runtime itself makes them.
    allow_internal_names: bool = False
    #: Demand a device on every node, and take it for the assigned one.
    expect_device: bool = False


@dataclass(frozen=True, slots=True)
class ImportResults:
    """What was asked for by ``return_tensors`` and ``return_nodes``."""

    return_tensors: tuple[tuple[Node, int], ...]
    return_nodes: tuple[Node, ...]
    #: Keys of the input map that name nothing in the definition.
    missing_unused_input_map_keys: tuple[str, ...]
    #: Nodes by their name in the definition.
    imported: Mapping[str, Node]
