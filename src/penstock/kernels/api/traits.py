"""What the author of a kernel says about it, beside the kernel.

In:   nothing; a kernel is registered with ``traits=KernelTraits(...)``.
Out:  ``KernelTraits``.
Not:  judges no kernel, and repeats nothing that is true of the op, whoever computes it: that is
      ``catalogue/op_traits.py``.

Each trait that is left out is taken for the worse: it costs time, and no answer.
"""

from __future__ import annotations

from typing import Final

from penstock.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTraits:
    """What a kernel does, or does not do."""

    #: Whether it reads ``context.frame`` or ``context.iteration``.  In a compiled loop these cost
    #: time, and kernels that say that they read neither have none; asking for them all the same
    #: is an error.  None if nobody said: then a user's kernel has them, and one of Penstock's
    #: is taken at its word that it reads neither.
    reads_frame: bool | None = None
    #: The only output is the only input, and nothing else happens: compiled code calls nothing.
    forwards: bool = False
    #: The only output has the inputs' shape, broadcast, and each element is told by those at its
    #: place alone: long arrays may be worked off in pieces, several at the same time.
    is_elementwise: bool = False
    #: It does nothing but compute: it changes nothing, and neither keeps what it gets nor gives
    #: what it keeps.  Who does not need its results may go before it is done.  None if nobody
    #: said: then it is taken to change nothing if it is plain and its op is not stateful, but
    #: to keep values all the same.
    is_pure: bool | None = None


#: Of a kernel whose author says nothing.
UNSAID: Final = KernelTraits()
#: Of a kernel that hands its input on.
FORWARDS: Final = KernelTraits(forwards=True)
#: Of a kernel that asks where in a loop it is.
READS_FRAME: Final = KernelTraits(reads_frame=True)
