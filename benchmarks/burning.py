"""Other work on the machine: processes that want a core each, and never wait.

In:   how many.
Out:  they run while a context is entered, and are gone after it.
Not:  measures nothing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_BURN: Final = "while True: pass"


@contextmanager
def burning(processes: int) -> Iterator[None]:
    """Keep so many cores busy meanwhile."""
    burners = [subprocess.Popen([sys.executable, "-c", _BURN]) for _ in range(processes)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
