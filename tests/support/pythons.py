"""What only some Pythons have."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

import pytest

_is_gil_enabled: Final[Callable[[], bool]] = getattr(sys, "_is_gil_enabled", lambda: True)
#: For tests of what only a Python with a GIL can do.
with_gil: Final = pytest.mark.skipif(not _is_gil_enabled(), reason="this Python has no GIL")
