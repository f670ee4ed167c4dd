"""How much memory this machine has: the bound on what a graph may ask for.

Systems hand out more memory than they have, and kill whoever uses it.  So absurd sizes are
refused before anything is allocated.
"""

from __future__ import annotations

import os
from typing import Final


def _physical_memory() -> int:
    """Bytes of memory of this machine; very many if it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2**63 - 1


PHYSICAL_MEMORY: Final = _physical_memory()
