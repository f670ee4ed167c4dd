"""The kernel that hands its input on.

Ops that only forward share this one function, so that the compiled tier can tell by it that
there is nothing to call.
"""

from __future__ import annotations

from penstock.core.values import Value


def forward(value: Value) -> Value:
    """The input."""
    return value
