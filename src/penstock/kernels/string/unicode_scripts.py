"""The script that each character of Unicode belongs to.

In:   ``unicode_scripts.txt``: where each run of characters of one script begins, and the script.
Out:  scripts by the numbers that ICU gives them; -1 for what is no character.
Not:  registers no kernel.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import numpy as np

from penstock.core.values import Array


@cache
def _runs() -> tuple[Array, Array]:
    """First characters of all runs, and their scripts."""
    text = resources.files(__package__).joinpath("unicode_scripts.txt").read_text("ascii")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    pairs = [run.split(":") for line in lines for run in line.split()]
    starts = np.array([int(start, 16) for start, _ in pairs])
    return starts, np.array([int(script) for _, script in pairs], np.int32)


def scripts(codes: Array) -> Array:
    """The script of each code point."""
    starts, numbers = _runs()
    found = numbers[np.maximum(np.searchsorted(starts, codes, "right") - 1, 0)]
    return np.where((codes < 0) | (codes > 0x10FFFF), np.int32(-1), found).astype(np.int32)
