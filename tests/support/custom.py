"""Ops and kernels that live for one test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from penstock.catalogue import registry as ops
from penstock.catalogue.registry import register_op
from penstock.kernels.api import registry as kernels
from penstock.kernels.api.registry import async_kernel, context_kernel, kernel

#: Registers a kernel for an op: its name, the function, and how it is called.
Register: TypeAlias = Callable[..., None]


@contextmanager
def custom_kernels(*rows: str) -> Iterator[Register]:
    """Register ops, yield a function that registers kernels, and forget it all again."""
    kernels.load_families()
    tables: list[dict[str, Any]] = [ops._custom, kernels._kernels]
    before = [dict(table) for table in tables]

    def register(op: str, compute: Callable[..., Any], calling: str = "plain") -> None:
        decorator = {"plain": kernel, "context": context_kernel, "async": async_kernel}[calling]
        decorator(op)(lambda _attrs: compute)

    try:
        for row in rows:
            register_op(row)
        yield register
    finally:
        for table, content in zip(tables, before, strict=True):
            table.clear()
            table.update(content)
