"""Numbers of bytes, as people write and read them.

In:   ``2G``, or a number.
Out:  the number, or ``2.0 GiB``.
Not:  measures nothing.

K, M, G and T are powers of 1,024, as for control groups, containers and ``ulimit``.
"""

from __future__ import annotations

import re
from typing import Final

from penstock.errors import InvalidArgumentError

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")
_STEP: Final = 1024
_WRITTEN: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


def in_units(count: int) -> str:
    """A number of bytes for people: ``1.5 MiB``."""
    number, unit = float(count), 0
    while abs(number) >= _STEP and unit < len(_UNITS) - 1:
        number, unit = number / _STEP, unit + 1
    return f"{count} bytes" if not unit else f"{number:.1f} {_UNITS[unit]}"


def parse_bytes(text: str) -> int:
    """The number that a text such as ``2G``, ``1.5GiB``, ``300mb`` or ``1000`` means.

    Raises:
        InvalidArgumentError: it means none.

    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise InvalidArgumentError(
            f"{text!r} is no number of bytes", next_step="write 2G, 1.5G, 300M or 1000"
        )
    power = " kmgt".index(found[2].lower()) if found[2] else 0
    return int(float(found[1]) * _STEP**power)
