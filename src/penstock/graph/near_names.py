"""Names that resemble one that there is not.

In:   a wrong name, and those that there are.
Out:  advice: which of these may have been meant.
Not:  knows no graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.advice import LookUpName
from penstock.core.similar import similar

#: So many names are offered.
_MAX_NEAR: Final = 3


def near_names(name: str, names: Sequence[str]) -> LookUpName:
    """What to do when none of ``names`` is ``name``: those that resemble it, if there are any."""
    # Scopes are easily forgotten: ``logits`` may mean ``model/head/logits``.
    scoped = [one for one in names if one.endswith(f"/{name}")]
    near = dict.fromkeys([*scoped[:_MAX_NEAR], *similar(name, names)])
    return LookUpName(tuple(near)[:_MAX_NEAR])
