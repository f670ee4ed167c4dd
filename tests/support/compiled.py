"""Compile small graphs directly: their text, and what it computes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

from penstock.graph.graph import Node
from penstock.kernels.api.context import Interrupt
from penstock.runtime import KernelBinder
from penstock.runtime.compiler.compile_regions import Compiled, Compiler
from penstock.runtime.compiler.region import Region
from support.sketch import CPU, sketch


class Bare:
    """A step of which only the interrupt is asked for."""

    def __init__(self) -> None:
        self.interrupt = Interrupt()


def compiled(text: str, **options: Any) -> Compiled | None:
    """What becomes of a graph."""
    return Compiler(device=CPU, make_kernel=KernelBinder(CPU).bind, **options).compile(sketch(text))


def whole(text: str, **options: Any) -> Region:
    """The one region of a graph that is one."""
    made = compiled(text, **options)
    assert made is not None
    assert made.whole is not None
    return made.whole


def text_of(region: Region) -> str:
    """A region's text without the line that says where it runs."""
    return region.source.listing.partition("\n\n")[2]


def expected(text: str) -> str:
    """A text as it is written in a test."""
    return textwrap.dedent(text).strip("\n") + "\n"


def regions_of(text: str, **options: Any) -> dict[str, Region]:
    """The regions of a graph of which the executor runs some, by the names of their nodes."""
    made = compiled(text, **options)
    assert made is not None
    assert made.whole is None
    return {node.name: region for node, region in made.regions.items()}


def leaving_out(*names: str) -> Callable[[Node, Any], bool]:
    """A replacement for the compiler's own judgement: all but some nodes can be compiled."""
    return lambda node, _kernel: node.name not in names
