"""The kernel that hands its input on.

Kernels that only forward are registered with ``traits=FORWARDS``: compiled code has nothing to
call, and the executor calls this.
"""

from __future__ import annotations

from penstock.core.values import Value


def forward(value: Value) -> Value:
    """The input."""
    return value
