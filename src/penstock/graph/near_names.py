"""Names that resemble one that there is not.

In:   a wrong name, and those that there are.
Out:  advice: which of these may have been meant.
Not:  knows no graph.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

from penstock.advice import LookUpName

#: So many names are compared with a wrong one, and so many of them offered.
_MAX_COMPARED: Final = 10_000
_MAX_NEAR: Final = 3


def near_names(name: str, names: Sequence[str]) -> LookUpName:
    """What to do when none of ``names`` is ``name``: those that resemble it, if there are any."""
    # Scopes are easily forgotten: ``logits`` may mean ``model/head/logits``.
    scoped = [one for one in names if one.endswith(f"/{name}")]
    similar = difflib.get_close_matches(name, names[:_MAX_COMPARED])
    return LookUpName(tuple(dict.fromkeys(scoped[:_MAX_NEAR] + similar))[:_MAX_NEAR])
