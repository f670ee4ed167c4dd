"""Denormal numbers as zeros, thread by thread.

In:   whether a thread is to take them for zeros.
Out:  ``flushing``, in which it does; ``in_own_setting``, in which it has its own one again;
      ``settle`` for threads that begin.
Not:  decides nothing; ``runtime/flushing.py`` says which steps want it.

TensorFlow's worker threads take denormal inputs for zeros and make none.  A processor is a
hundred times slower with them, so a loop whose state dies out ends in slow motion.  Processors
have a switch for it, by thread; the C library reads and writes it as part of the floating-point
environment:

| system | C library | where the switch is |
| --- | --- | --- |
| Linux, x86-64 | glibc from 2.25 on | ``femode_t``: MXCSR, 4 bytes in |
| Linux, x86-64 | musl | ``fenv_t``: MXCSR, 28 bytes in |
| Linux, ARM64 | glibc, musl | ``fenv_t``: FPCR, at the start |
| macOS, x86-64 | Apple's | ``fenv_t``: MXCSR, 4 bytes in |
| macOS, ARM64 | Apple's | ``fenv_t``: FPCR, 8 bytes in |

Each of them is tried before it is used; elsewhere nothing happens.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

#: MXCSR: flush to zero, denormals are zeros.  FPCR: both.
_X86, _ARM = 0x8040, 1 << 24
#: More bytes than any environment has.
_BYTES: Final = 128
#: The smallest denormal; a product of it is zero where they are zeros.
_TINY: Final = 5e-324

#: Takes the address of an environment.
_Call: TypeAlias = Callable[[int], int]
_Result = TypeVar("_Result")


class _Switch(NamedTuple):
    """How to read and write the environment of the thread that asks."""

    get: _Call
    set: _Call
    offset: int
    bits: int


#: Functions that read and write, and where the switch is, by system and processor; those that
#: are preferred first.
_PLACES: Final[dict[tuple[str, str], tuple[tuple[str, str, int, int], ...]]] = {
    ("linux", "x86_64"): (
        ("fegetmode", "fesetmode", 4, _X86),
        ("fegetenv", "fesetenv", 28, _X86),
    ),
    ("linux", "aarch64"): (("fegetenv", "fesetenv", 0, _ARM),),
    ("darwin", "x86_64"): (("fegetenv", "fesetenv", 4, _X86),),
    ("darwin", "arm64"): (("fegetenv", "fesetenv", 8, _ARM),),
}


def _find() -> _Switch | None:
    """The switch of this machine, if there is one that works."""
    for reader, writer, offset, bits in _PLACES.get((sys.platform, platform.machine()), ()):
        for name in (None, "libm.so.6"):
            try:
                library = ctypes.PyDLL(name)  # keeps Python's lock: these take no time
                get, set_ = library[reader], library[writer]
            except (AttributeError, OSError):
                continue
            for function in (get, set_):
                function.argtypes, function.restype = (ctypes.c_void_p,), ctypes.c_int
            switch = _Switch(get, set_, offset, bits)
            if _works(switch):
                return switch
    return None


def _works(switch: _Switch) -> bool:
    """Whether it makes denormals zeros, and back."""
    own = _DenormalSetting()
    if switch.get(own.before) or not _denormals_count():
        return False  # someone wants it for good: so be it
    own.turn_on(switch)
    is_on = not _denormals_count()
    return switch.set(own.before) == 0 and is_on and _denormals_count()


def _denormals_count() -> bool:
    return _TINY * float(len("1")) != 0.0  # not folded by Python's compiler


class _DenormalSetting(threading.local):
    """What is known of each thread."""

    def __init__(self) -> None:
        self._buffers = (ctypes.c_char * _BYTES)(), (ctypes.c_char * _BYTES)()
        #: Addresses of its own environment, and of the same with the switch on.
        self.before, self._on = map(ctypes.addressof, self._buffers)
        #: The words in them that hold the switch; made when they are first needed.
        self._words: tuple[ctypes.c_uint32, ctypes.c_uint32] | None = None
        #: Whether the switch is on by our doing; ``before`` is then what to go back to.
        self.is_on = False

    def turn_on(self, switch: _Switch) -> None:
        """Note the environment, and turn the switch on."""
        switch.get(self.before)
        switch.get(self._on)
        _, word = self._words or self._make_words(switch)
        word.value |= switch.bits
        switch.set(self._on)

    def turn_off(self, switch: _Switch) -> None:
        """Turn the switch off, whoever turned it on."""
        switch.get(self.before)
        word, _ = self._words or self._make_words(switch)
        word.value &= ~switch.bits
        switch.set(self.before)

    def _make_words(self, switch: _Switch) -> tuple[ctypes.c_uint32, ctypes.c_uint32]:
        before, on = (ctypes.c_uint32.from_buffer(b, switch.offset) for b in self._buffers)
        self._words = before, on
        return self._words


_switch: Final = _find()
_thread: Final = _DenormalSetting()


def is_supported() -> bool:
    """Whether this machine has a switch that can be reached."""
    return _switch is not None


def is_flushing() -> bool:
    """Whether this thread takes denormals for zeros by our doing."""
    return _thread.is_on


class flushing:  # noqa: N801  (used as a context, like ``np.errstate``)
    """In this context, the thread takes denormals for zeros, if that is wanted."""

    __slots__ = ("_is_mine", "_is_wanted")

    def __init__(self, is_wanted: bool) -> None:  # noqa: FBT001  (the only thing to say)
        self._is_wanted = is_wanted and _switch is not None
        #: Whether it was turned on here, and so is turned off here.
        self._is_mine = False

    def __enter__(self) -> None:
        if self._is_wanted and not _thread.is_on:
            assert _switch is not None
            _thread.turn_on(_switch)
            self._is_mine = _thread.is_on = True

    def __exit__(self, *_: object) -> None:
        if self._is_mine:
            assert _switch is not None
            _thread.is_on = False
            _switch.set(_thread.before)


def settle() -> None:
    """Have denormals in a new thread, which begins with the setting of whoever started it."""
    if _switch is not None and not _denormals_count():
        _thread.turn_off(_switch)


def in_own_setting(function: Callable[..., _Result], *args: Any) -> _Result:
    """``function(*args)``, for which the thread has its own setting: it is somebody else's code."""
    if not _thread.is_on or _switch is None:
        return function(*args)
    _thread.is_on = False
    _switch.set(_thread.before)
    try:
        return function(*args)
    finally:
        _thread.turn_on(_switch)
        _thread.is_on = True
