"""What of the instruments a session has as methods.

In:   a session.
Out:  answers of packages that know sessions, and are loaded when they are first asked.
Not:  explains nothing itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

_EXPLANATIONS: Final = "penstock.explanations.explain_node"


class Instruments:
    """A session that can be asked about its graph."""

    def explain(
        self,
        node: str,
        fetches: Sequence[str] = (),
        feeds: Mapping[str, Any] | Sequence[str] = (),
    ) -> Any:
        """Say why a node is dead, pruned, folded, fused, compiled or not; see ``penstock.explain``.

        Returns:
            An ``Explanation``; printed, it is the answer.

        Raises:
            NotFoundError: there is no such node.

        """
        return importlib.import_module(_EXPLANATIONS).explain(self, node, fetches, feeds)
