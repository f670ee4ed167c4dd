"""What a session can do besides running: explain itself, show itself, be copied and put back.

In:   a session.
Out:  what modules say or do that know sessions, and are loaded when they are first asked.
Not:  does none of it itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from penstock.core.forks import importing
from penstock.state.device_resources import DeviceResources

if TYPE_CHECKING:
    from penstock.session.snapshot import Snapshot

_EXPLANATIONS: Final = "penstock.explanations.explain_node"


class Instruments:
    """A session's methods that few sessions need."""

    def _repr_html_(self: Any) -> str:
        # Notebooks alone need it.
        with importing:
            from penstock.session.session_html import session_html  # noqa: PLC0415

        # What a server keeps is not here.
        resources = DeviceResources() if self.target else self.resources
        return session_html(repr(self).strip("<>"), self.config, resources, self.graph)

    def snapshot(self: Any, *, skip_unsupported: bool = False) -> Snapshot:
        """A copy of what the session keeps from step to step; nothing may be under way."""
        with importing:
            from penstock.session.snapshot import take  # noqa: PLC0415  (few sessions need it)

        with self._under_way.still("copied"):
            return take(self._environment, self._session_state, skips=skip_unsupported)

    def restore(self: Any, snapshot: Snapshot) -> None:
        """Keep what a session of the same graph kept then, and no more; or raise OpError."""
        with importing:
            from penstock.session.snapshot import put_back  # noqa: PLC0415

        with self._under_way.still("restored"):
            put_back(snapshot, self._environment, self._session_state)

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
        with importing:
            explanations = importlib.import_module(_EXPLANATIONS)
        return explanations.explain(self, node, fetches, feeds)
