"""Memory: how much there is, and that freed memory is kept."""

from __future__ import annotations

import platform

import pytest

from penstock.core.memory import PHYSICAL_MEMORY, keep_freed_memory


def test_a_machine_has_some_memory() -> None:
    """The bound is a plausible number of bytes."""
    assert PHYSICAL_MEMORY > 1 << 27


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_glibc_accepts_the_thresholds() -> None:
    """Both values are in the range that glibc takes, and asking twice does no harm."""
    assert keep_freed_memory()
    assert keep_freed_memory()
