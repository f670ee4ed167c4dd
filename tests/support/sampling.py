"""Many similar cases, of which a few will do in everyday runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], every: int = 8) -> list[Any]:
    """Cases for ``parametrize``: one in so many is run always, the others are marked slow."""
    return [
        case if index % every == 0 else pytest.param(case, marks=pytest.mark.slow)
        for index, case in enumerate(cases)
    ]
