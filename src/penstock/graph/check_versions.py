"""Whether this runtime may read a definition, by the versions that it states.

In:   a VersionDef message.
Out:  nothing, or an error that says who has to be renewed.
"""

from __future__ import annotations

from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError
from penstock.graph.graph import MIN_PRODUCER, VERSION


def check_versions(versions: Message) -> None:
    """Raise unless this runtime may read a graph of these versions."""
    if versions.producer < MIN_PRODUCER:
        raise InvalidArgumentError(
            f"GraphDef producer version {versions.producer} below min producer {MIN_PRODUCER} "
            "supported by Penstock",
            next_step="regenerate the graph with a newer release",
        )
    if versions.min_consumer > VERSION:
        raise InvalidArgumentError(
            f"GraphDef min consumer version {versions.min_consumer} above current version "
            f"{VERSION} of Penstock",
            next_step="upgrade Penstock",
        )
    if VERSION in versions.bad_consumers:
        raise InvalidArgumentError(
            f"GraphDef disallows consumer version {VERSION} of Penstock",
            next_step="upgrade Penstock; this version is known to read the graph wrongly",
        )
