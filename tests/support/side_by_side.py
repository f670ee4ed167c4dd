"""The same on several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable


def side_by_side(work: Callable[[int], object], count: int) -> None:
    """Have so many threads work, each with a number of its own; return when all are done."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
