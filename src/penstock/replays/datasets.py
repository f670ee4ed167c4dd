"""Datasets of iterators, which no file holds: the nodes that made them can make them again.

In:   the state before a step, perhaps out of a file.
Out:  the names of such nodes; and a state in which they give the same datasets again.
Not:  runs nothing.

A dataset may have drawn seeds from the chance of its nodes.  So these are run as in a session that
has run nothing before, whose chance follows from the same number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from penstock.core import trees
from penstock.core.trees import Tree
from penstock.kernels.datasets.dataset import LostDataset
from penstock.session.snapshot import ResourcePlace, Snapshot, reading

_KIND: Final = "IteratorResource"


def makers_of(snapshot: Snapshot) -> list[str]:
    """The nodes that have made datasets for iterators."""
    return [maker for _, _, maker in _iterators(snapshot) if maker]


def lost(snapshot: Snapshot) -> list[str]:
    """The same, for datasets that are lost."""
    return [maker for _, dataset, maker in _iterators(snapshot) if isinstance(dataset, LostDataset)]


def before_datasets(snapshot: Snapshot) -> Snapshot:
    """A state without iterators, and in which no kernel has done anything."""
    iterators = {place for place, _, _ in _iterators(snapshot)}
    kept = {place: held for place, held in snapshot.resources.items() if place not in iterators}
    entropy, _ = reading(lambda: trees.parts(snapshot.kernels, 2), "kernels")
    return replace(snapshot, resources=kept, kernels=(entropy, ()))


def _iterators(snapshot: Snapshot) -> Iterator[tuple[ResourcePlace, Tree, str]]:
    for place, held in snapshot.resources.items():
        if held.kind == _KIND:
            yield place, *reading(partial(_dataset_and_maker, held.state), str(place))


def _dataset_and_maker(state: Tree) -> tuple[Tree, str]:
    dataset, _, maker = trees.parts(state, 3)
    return dataset, trees.text(maker)
