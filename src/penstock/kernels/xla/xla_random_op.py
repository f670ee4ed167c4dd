"""XLA's random bits: a state goes in, and comes out advanced.

In:   an algorithm's number, a state, a shape.
Out:  the next state, and bits as unsigned integers.
Not:  knows no seeds and no distributions.

A state is a key and a counter.  Philox counts with 128 bits; where the state has 64 only, the
key stands for the others.  Threefry gives pairs of words, whose halves lie apart along one axis.
"""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.random.philox import Philox
from penstock.kernels.random.threefry import threefry
from penstock.kernels.values.arrays import as_array, check_new, number_in, shape_text, sizes_in

_PHILOX: Final = (1, 3)  # The second is the one that XLA chooses itself.
_THREEFRY: Final = 2
_WORD: Final = 64
_LOW: Final = (1 << _WORD) - 1
_BITS: Final = (dtypes.uint8, dtypes.uint32, dtypes.uint64)


@kernel("XlaRngBitGenerator", types={"dtype": _BITS})
def make_xla_rng_bit_generator(attrs: Attrs) -> Kernel:
    """The next state, and bits of Philox or Threefry, as XLA counts and orders them."""
    dtype = attrs.dtype("dtype").numpy

    def generate(algorithm: Value, state: Value, shape: Value) -> tuple[Array, Value]:
        sizes, words = sizes_in(shape), as_array(state)
        check_new(sizes, dtype)
        chosen = number_in(algorithm, "algorithm must be a scalar")
        wide = dtype.itemsize == np.dtype(np.uint64).itemsize
        if chosen in _PHILOX:
            _check(words, (2, 3))
            used, bits = _philox(words, sizes, 2 if wide else 4)
        elif chosen == _THREEFRY:
            _check(words, (2,))
            used, bits = _whole_pairs(words, sizes) if wide else _halves(words, sizes)
        else:
            raise InvalidArgumentError(f"XlaRngBitGenerator: unknown algorithm {chosen}")
        return _advanced(words, used), as_value(bits.astype(dtype))

    return generate


def _check(state: Array, lengths: tuple[int, ...]) -> None:
    if state.ndim != 1 or len(state) not in lengths:
        raise InvalidArgumentError(
            f"initial_state must have {' or '.join(map(str, lengths))} elements, but has shape "
            f"{shape_text(state.shape)}"
        )


def _advanced(state: Array, used: int) -> Array:
    """The state after so many values of its counter."""
    numbers = state.tolist()
    counter = sum(word << _WORD * place for place, word in enumerate(numbers[1:])) + used
    words = [counter >> _WORD * place & _LOW for place in range(len(numbers) - 1)]
    return np.array([numbers[0], *words], np.uint64)


def _philox(state: Array, sizes: list[int], per_block: int) -> tuple[int, Array]:
    """How many counters were used, and the bits: blocks one after the other."""
    key, low, high = [*state.tolist(), int(state[0])][:3]
    size = prod(sizes)
    used = -(-size // per_block)
    words = Philox(key, low | high << _WORD).blocks(used)
    if per_block == words.shape[1] // 2:
        words = words.view("<u8")
    return used, words.reshape(-1)[:size].reshape(sizes)


def _pairs(state: Array, count: int) -> tuple[Array, Array]:
    key, start = state.tolist()
    return threefry(key, np.uint64(start) + np.arange(count, dtype=np.uint64))


def _whole_pairs(state: Array, sizes: list[int]) -> tuple[int, Array]:
    """A pair of words for each element."""
    first, second = _pairs(state, prod(sizes))
    return first.size, (first | second.astype(np.uint64) << np.uint64(32)).reshape(sizes)


def _halves(state: Array, sizes: list[int]) -> tuple[int, Array]:
    """A word for each element: along one axis, first and second words take turns."""
    shape = sizes or [1]
    axis = _halved(shape)
    half = [*shape]
    half[axis] = (shape[axis] + 1) // 2
    first, second = (words.reshape(half) for words in _pairs(state, prod(half)))
    both = np.stack([first, second], axis + 1)
    doubled = [*half[:axis], 2 * half[axis], *half[axis + 1 :]]
    kept = tuple(slice(size) for size in shape)
    return first.size, both.reshape(doubled)[kept].reshape(sizes)


def _halved(shape: list[int]) -> int:
    """The axis that is cut in halves: the first even one, or else the longest."""
    even = [axis for axis, size in enumerate(shape) if size % 2 == 0]
    return even[0] if even else shape.index(max(shape))
