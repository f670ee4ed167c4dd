"""How many cores this process may use.

In:   what the system tells: which cores, and what share of their time.
Out:  ``CORES``, from which all numbers of threads follow that nobody has given.
Not:  knows nothing of who else uses them; ``kernels/parallel/contention.py`` does.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Final

from penstock.core.memory import control_group_folders, text_of


def _allowed() -> int:
    """The cores on which the process may run: by its affinity mask, where there is one."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def _shares() -> Iterator[float]:
    """How many cores' time each of the process's control groups leaves it, where that is bound."""
    for folder in control_group_folders("cpu"):
        # The newer kind of groups has both numbers in one file.
        words = text_of(f"{folder}/cpu.max").split() or [
            text_of(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")
        ]
        if len(words) == 2 and all(word.isdecimal() and int(word) for word in words):
            yield int(words[0]) / int(words[1])


def usable_cores() -> int:
    """The number of cores; at least one, and a part of one counts as one."""
    return max(1, min([_allowed(), *map(math.ceil, _shares())]))


#: Asked once: threads are started for it, and results may follow from it.
CORES: Final = usable_cores()
