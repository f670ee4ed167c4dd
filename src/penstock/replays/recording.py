"""A recorded step: all that is needed to run it again elsewhere.

In:   what ``record`` notes; or the bytes of a file, of a stranger perhaps.
Out:  ``Recording``; a file.
Not:  runs nothing.

The file is an archive (``session/tree_file.py``) with the graph, as far as the step needs it, the
state of the session before the step, the feeds, the order, and what came out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from penstock.core import trees
from penstock.core.files import FileSystem
from penstock.dataclass import dataclass
from penstock.defs.codec import parse_graph_def
from penstock.errors import OpError
from penstock.printable import printable
from penstock.replays import events as event_trees
from penstock.replays.events import Event
from penstock.replays.task import Ending, Settings, Task
from penstock.session.snapshot import Snapshot, reading
from penstock.session.tree_file import Contents, Kind, packed, unpacked

_KIND: Final = Kind("penstock step", 1)
_GRAPH: Final = "graph.pb"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Recording:
    """One step, with all that it depends on."""

    task: Task
    #: The order in which everything took effect.
    events: Sequence[Event]
    ending: Ending
    #: What the step gave, by endpoint; empty if it failed, and once it was in a file.
    results: Mapping[str, Any] = field(default_factory=dict)
    #: Its error; None if it had none, and once it was in a file: ``ending`` has what it was.
    error: OpError | None = None

    @property
    def described(self) -> str:
        """How large the step was, and how it ended."""
        count = sum(not event.is_end for event in self.events)
        return f"a step of {count} nodes, which ended with {self.ending.code.name}"

    def __repr__(self) -> str:
        return f"<Recording of {self.described}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it into a file, which has all that is needed to replay it elsewhere.

        Raises:
            UnimplementedError: something in it cannot leave the process.
            OpError: the file system refuses.

        """
        task = self.task
        tree = (
            *(task.settings.as_tree(), task.fetches, task.targets),
            *(tuple(task.feeds.items()), task.before.as_tree()),
            *(event_trees.as_tree(self.events), self.ending.as_tree()),
        )
        graph = bytes(task.graph.SerializeToString(deterministic=True))
        FileSystem().write(os.fspath(path), packed(_KIND, Contents(tree, {_GRAPH: graph})))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recording:
        """Read what ``save`` has written; a file of a stranger does no harm until it is replayed.

        Raises:
            InvalidArgumentError: it is another kind of file, or of a later version.
            DataLossError: it is damaged.
            OpError: the file system refuses.

        """
        name = os.fspath(path)
        origin = printable(name)
        contents = unpacked(_KIND, FileSystem().read(name), origin)
        return reading(lambda: _of(contents, origin), origin)


def _of(contents: Contents, origin: str) -> Recording:
    settings, fetches, targets, feeds, before, events, ending = trees.parts(contents.tree, 7)
    pairs = [trees.parts(pair, 2) for pair in trees.listed(feeds)]
    task = Task(
        graph=parse_graph_def(contents.parts[_GRAPH], f"{origin}/{_GRAPH}"),
        settings=Settings.of_tree(settings),
        fetches=tuple(map(trees.text, trees.listed(fetches))),
        targets=tuple(map(trees.text, trees.listed(targets))),
        feeds={trees.text(name): trees.any_value(value) for name, value in pairs},
        before=Snapshot.of_tree(before),
    )
    return Recording(
        task=task, events=event_trees.of_tree(events), ending=Ending.of_tree(ending), error=None
    )
