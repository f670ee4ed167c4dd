"""Packages that bring ops of their own, found by their entry points.

In:   the distributions that are installed.
Out:  their ops and kernels, registered, because their modules were imported.
Not:  looks for nothing before something is missing; takes no package's word for it: what a
      module registers is checked like anyone's.

A package says in its ``pyproject.toml`` what to import:

    [project.entry-points."penstock.ops"]
    scaling = "penstock_scaling"
"""

from __future__ import annotations

import importlib
import warnings
from threading import RLock
from typing import TYPE_CHECKING, Final

from penstock.core.forks import held_at_forks

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "penstock.ops"

#: Held while packages are imported, so that others wait for what they register.  Taken before
#: the locks of the tables of ops and kernels.
_lock: Final = held_at_forks(RLock(), order=1)
#: Has an element when all packages were imported, or are just being imported.
_loaded: Final[list[bool]] = []


def load_plugins() -> bool:
    """Import every package with an entry point, once; whether that was now.

    A package that cannot be imported is warned about, and what it would have brought is
    missing.
    """
    if _loaded:
        return False
    with _lock:
        if _loaded:
            return False
        _loaded.append(True)
        # Not imported above: it takes longer than all of ours, and few miss an op.
        metadata = importlib.import_module("importlib.metadata")
        for entry_point in metadata.entry_points(group=GROUP):
            _load(entry_point)
        return True


def _load(entry_point: EntryPoint) -> None:
    try:
        entry_point.load()
    except Exception as error:  # noqa: BLE001  (a stranger's package may raise anything)
        package = entry_point.dist.name if entry_point.dist else entry_point.value
        warnings.warn(
            f"The ops of {package} are not there: {type(error).__name__}: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
