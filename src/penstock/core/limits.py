"""Where the runtime stops, cuts, or begins to think that something is worthwhile.

In:   numbers, each with a default that suits graphs of all kinds.
Out:  ``Limits``, a part of a session's ``Config``.
Not:  changes no result: beyond a limit a graph runs in another way, or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from penstock.core.options import Options

_NOT_NEGATIVE: Final = {"minimum": 0}
_POSITIVE: Final = {"minimum": 1}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Limits(Options):
    """The limits of one session's graphs."""

    #: Functions are put where they are called until a graph has grown by so many nodes; a
    #: function that calls another twice doubles at every level.
    new_nodes: int = field(default=100_000, metadata=_NOT_NEGATIVE)
    #: Calls that are unfinished at the same time.  Wider recursion is taken for endless.
    calls_in_flight: int = field(default=100_000, metadata=_POSITIVE)
    #: Call sites whose attributes are kept; a kernel may make new ones for every call.
    known_call_sites: int = field(default=10_000, metadata=_NOT_NEGATIVE)
    #: Seconds that an asynchronous kernel has to answer when it is told that its step ends.
    patience: float = field(default=1.0, metadata=_NOT_NEGATIVE)
    #: Statements per generated function: more are split, since Python compiles, and people
    #: read, several functions more easily than a huge one.
    statements: int = field(default=2_000, metadata=_POSITIVE)
    #: Steps that a request without loops makes node by node before it is compiled, unless it is fed
    #: long arrays: many requests are run only once.  With 0, all are compiled first.
    uncompiled_steps: int = field(default=1, metadata=_NOT_NEGATIVE)
    #: Seconds: requests whose steps take fewer are not tuned.  For a text of more than two thousand
    #: lines, fewer than this for each hundred, since all of it is compiled twice more.
    slow_step: float = field(default=1e-4, metadata=_NOT_NEGATIVE)
    #: Seconds: a function that takes the place of an executor whose kernels may have to wait is
    #: compared with it if some steps in a row take more.
    slow_trial: float = field(default=1e-3, metadata=_NOT_NEGATIVE)
    #: Steps as one function, and as parts, that are compared before it is decided which goes on.
    compared_steps: int = field(default=3, metadata=_NOT_NEGATIVE)
    #: Steps of a request whose kernels may have to wait before it is tried as one function.
    untried_steps: int = field(default=2, metadata=_NOT_NEGATIVE)
    #: Products of numbers from which on a region of the graph is handed to ONNX Runtime; those of
    #: matrices do not count where they are computed in C.  With 0, all regions are.
    region_products: int = field(default=1_000_000, metadata=_NOT_NEGATIVE)
    #: Nodes from which on a straight region is worth being a program in C, where
    #: ``global_jit_level`` asks for it; loops always are.  With 0, all are.
    native_nodes: int = field(default=50, metadata=_NOT_NEGATIVE)
    #: Seconds of work that are worth a thread.
    heavy_part: float = field(default=200e-6, metadata=_NOT_NEGATIVE)
    #: Seconds that it costs to start a part on another thread.
    thread_start: float = field(default=30e-6, metadata=_NOT_NEGATIVE)
    #: Elements per piece of a fused group: three of float32 fit into a core's cache.
    piece: int = field(default=32_768, metadata=_POSITIVE)
    #: Elements: groups over shorter arrays are not worth cutting into pieces.
    long_array: int = field(default=4 * 32_768, metadata=_POSITIVE)
    #: Elements: where arrays have several times as many, ops that treat each entry of a batch alone
    #: are done for some entries at a time, whose arrays have no more, or for one.
    entries_at_once: int = field(default=2 << 20, metadata=_POSITIVE)


#: What holds unless a session says otherwise.
DEFAULT_LIMITS: Final = Limits()
