"""Large arrays get the memory of those before them, and nobody else notices."""

from __future__ import annotations

import contextvars
import ctypes
import os
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, permutations
from typing import Any, Final

import numpy as np
import pytest

import penstock as ps
from penstock.kernels.c import blocks
from penstock.kernels.c.blocks import MOST_KEPT, block_bytes, handler_name, keep_large_memory
from penstock.kernels.c.library import library, loaded
from penstock.kernels.c.numpy_tables import pointer_in, table_of
from support.graphs import graph_def

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

#: From this size on arrays are large; ranges are whole pages of the other size.
LARGE, PAGE = 32 << 20, 2 << 20
#: A name, a version, and five pointers.
_HANDLER_BYTES: Final = 128 + 5 * ctypes.sizeof(ctypes.c_void_p)


def in_context(function: Callable[[], Any]) -> Any:
    """What a function returns in a context where large memory is kept."""

    def run() -> Any:
        keep_large_memory()
        return function()

    return contextvars.copy_context().run(run)


def large(size: int = LARGE) -> Any:
    """Bytes nobody has written to."""
    return in_context(lambda: np.empty(size, np.uint8))


def place(array: Any) -> int:
    """Where an array's memory is."""
    address: int = array.ctypes.data
    return address


def counted() -> blocks.BlockBytes:
    """Bytes of large arrays."""
    bytes_ = block_bytes()
    assert bytes_ is not None
    return bytes_


def test_the_next_array_has_the_memory_of_the_last_one() -> None:
    """So no page has to be cleared for it."""
    first = large()
    first[:] = 7
    where = place(first)
    del first
    second = large()
    assert place(second) == where
    assert second[0] == second[-1] == 7


def test_small_arrays_are_nobodys_business() -> None:
    """They come from where numpy always had them."""
    before = counted()
    array = large(LARGE - 1)
    assert counted() == before
    assert array.size == LARGE - 1


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_range_is_cut_and_joined_again(order: tuple[int, ...]) -> None:
    """Three arrays lie where a larger one was, and the larger one again when all are gone."""
    whole = large(12 * LARGE)
    whole[:PAGE] = whole[-PAGE:] = 7
    del whole
    mapped = counted().used + counted().idle
    parts = {number: large(4 * LARGE) for number in range(3)}
    assert counted().used + counted().idle == mapped
    for number in order:
        del parts[number]
    again = large(12 * LARGE)
    assert (again[:PAGE] == 7).all()
    assert (again[-PAGE:] == 7).all()


def test_zeros_are_zeros() -> None:
    """Though what was there before was not."""
    dirty = large()
    dirty[:] = 7
    del dirty
    assert not in_context(lambda: np.zeros(LARGE, np.uint8)).any()


@pytest.mark.parametrize("size", [PAGE, LARGE, 3 * LARGE])
def test_an_array_keeps_its_bytes_when_its_size_changes(size: int) -> None:
    """Whether it is large afterwards or not."""

    def resized() -> Any:
        array = np.empty(2 * LARGE, np.uint8)
        array[:PAGE], array[-1] = 5, 9
        array.resize(size, refcheck=False)
        return array

    array = in_context(resized)
    assert array.size == size
    assert (array[:PAGE] == 5).all()
    if size > 2 * LARGE:
        assert array[2 * LARGE - 1] == 9


@pytest.mark.parametrize("seed", range(4))
def test_no_two_arrays_share_memory_and_no_more_is_mapped_than_was_used(seed: int) -> None:
    """With sizes and an order that chance decides."""
    draw = random.Random(seed)
    arrays: dict[int, Any] = {}
    start = counted().used
    for number in range(200):
        if arrays and draw.random() < 0.5:
            key = draw.choice(list(arrays))
            array = arrays.pop(key)
            assert array[0] == array[-1] == key % 251
            del array
        else:
            array = arrays[number] = large(draw.randrange(LARGE, 6 * LARGE))
            array[0] = array[-1] = number % 251
        used, idle, most = counted()
        assert used - start == sum(-(-a.size // PAGE) * PAGE for a in arrays.values())
        assert used + idle <= most
        assert idle <= MOST_KEPT
    ends = sorted((place(a), place(a) + a.size) for a in arrays.values())
    assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))


def test_what_is_kept_can_be_given_back() -> None:
    """To the system, which has nothing of it afterwards but what is in use."""
    array = large()
    array[:PAGE] = 7
    del array
    assert counted().idle >= LARGE
    loaded().penstock_give_array_memory_back()
    assert counted().idle == 0
    assert not large()[:PAGE].any()


#: Leaves room for an array only if all that is kept goes back to the system.
_WITH_LITTLE_ROOM: Final = """
import resource
import numpy as np
from penstock.kernels.c.blocks import block_bytes, keep_large_memory
from penstock.kernels.c.library import library, loaded

MIB = 1 << 20
library()
keep_large_memory()
arrays = [np.empty(300 * MIB, np.uint8) for _ in range(2)]
del arrays
idle = block_bytes().idle
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() - idle + 570 * MIB
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
np.empty(560 * MIB, np.uint8)
print(idle // MIB)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system bounds no addresses")
def test_what_is_kept_makes_room() -> None:
    """Where the system has no more, though the law would let some stay."""
    command = [sys.executable, "-c", _WITH_LITTLE_ROOM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 40


def test_threads_take_and_give_at_the_same_time() -> None:
    """And each finds in its arrays what it wrote."""

    def work(thread: int) -> bool:
        keep_large_memory()
        draw, arrays, is_right = random.Random(thread), [], True
        for _ in range(100):
            array = np.empty(draw.randrange(LARGE, 3 * LARGE), np.uint8)
            array[0] = array[array.size // 2] = array[-1] = thread
            arrays.append(array)
            if len(arrays) > 3:
                gone = arrays.pop(draw.randrange(3))
                is_right &= gone[0] == gone[gone.size // 2] == gone[-1] == thread
        return is_right

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_an_array_may_end_on_another_thread() -> None:
    """Which has never heard of such memory."""
    arrays = [large()]
    before = counted()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(arrays.clear).result()
    assert counted().used == before.used - LARGE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_child_of_a_fork_has_its_own() -> None:
    """What it writes is not what its parent reads."""
    array = large()
    array[:] = 1
    child = os.fork()
    if child == 0:
        array[:] = 2
        del array
        other = large()
        os._exit(0 if other[0] == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (array == 1).all()


def test_a_step_keeps_what_it_allocates() -> None:
    """On whichever thread, tier and context it runs."""

    def second_result(tier: ps.Tier) -> int:
        text = "x = Placeholder\n y = Softplus(x)"
        with ps.Session(graph_def(text), config=ps.Config(tier=tier)) as session:
            values = np.ones(LARGE // 4, np.float32)
            where = place(session.run("y:0", {"x:0": values}))
            assert place(session.run("y:0", {"x:0": values})) == where
        return where

    for tier in ps.Tier:
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(second_result, tier).result() % PAGE == 0


def test_functions_of_somebody_else_are_left_alone() -> None:
    """Who has told numpy how to allocate knows why."""
    name = ctypes.create_string_buffer(b"mem_handler")
    table = table_of("_ARRAY_API")
    capsule = ctypes.PYFUNCTYPE(ctypes.py_object)(table[305])()
    numpys = ctypes.string_at(pointer_in(capsule, name.value), _HANDLER_BYTES)
    theirs = ctypes.create_string_buffer(numpys, _HANDLER_BYTES)
    theirs[:7] = b"theirs\0"
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p,) * 3
    own = new(ctypes.addressof(theirs), ctypes.addressof(name), None)

    def run() -> str:
        ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])(own)
        keep_large_memory()
        return handler_name()

    assert contextvars.Context().run(run) == "theirs"


def test_it_is_asked_for_once_in_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a step pays for one look at a variable."""
    asked: list[str] = []
    monkeypatch.setattr(blocks, "handler_name", lambda: asked.append("asked") or "")

    def run() -> None:
        keep_large_memory()
        keep_large_memory()

    contextvars.Context().run(run)
    assert asked == ["asked"]
