"""One failing callback does not keep the others from being called."""

from __future__ import annotations

import pytest

from penstock.state.callbacks import call_all


def test_all_are_called_in_order_and_the_first_failure_is_raised() -> None:
    """Failures are put off until everyone was called; later ones are dropped."""
    calls: list[str] = []

    def fail(name: str) -> None:
        calls.append(name)
        raise ValueError(name)

    with pytest.raises(ValueError, match="b"):
        call_all(
            [
                lambda: calls.append("a"),
                lambda: fail("b"),
                lambda: fail("c"),
                lambda: calls.append("d"),
            ]
        )
    assert calls == ["a", "b", "c", "d"]
