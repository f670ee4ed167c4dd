"""Call several callbacks, none of which may keep the others from being called."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def call_all(callbacks: Iterable[Callable[[], object]]) -> None:
    """Call every one, in order; then raise the first exception that one of them raised.

    Whoever waits to be told of a cancellation would hang if a stranger's callback failed.
    """
    first: BaseException | None = None
    for callback in callbacks:
        try:
            callback()
        except BaseException as error:  # noqa: BLE001  (raised below)
            first = first or error
    if first is not None:
        raise first
