"""How much memory this machine has, and how it is handed out.

In:   what the system tells.
Out:  the bound on what a graph may ask for; and an allocator that keeps what was freed.
Not:  allocates nothing.

Systems hand out more memory than they have, and kill whoever uses it.  So absurd sizes are
refused before anything is allocated.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Final


def _physical_memory() -> int:
    """Bytes of memory of this machine; very many if it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2**63 - 1


PHYSICAL_MEMORY: Final = _physical_memory()

#: Parameters of glibc's ``mallopt``, and their values in bytes: the largest that it takes, and
#: what a step may well free at once.
_TRIM_THRESHOLD: Final = (-1, 512 << 20)
_MMAP_THRESHOLD: Final = (-3, 32 << 20)


@functools.cache
def keep_freed_memory() -> bool:
    """Have the C library keep freed memory for the next array; whether it could be told.

    By default glibc gives large blocks back to the system at once.  The next step gets them
    again page by page, each of which the system has to clear first: that took half of the time
    of training steps and a tenth of that of networks.  TensorFlow's allocator keeps memory,
    too.  The setting holds for the whole process; elsewhere than with glibc nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    done = [mallopt(*option) for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD)]
    return all(done)
