"""Batches of images for PyTorch: the depth second, and some images for each thread.

In:   arrays with the batch first and the depth last; a function of them that PyTorch computes.
Out:  an array of what it gives for all images.
Not:  knows no ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.accelerated.library import (
    Tensor,
    Torch,
    given,
    in_pieces,
    tensor,
    threads,
)

#: Elements that are worth a thread.
_PIECE: Final = 1 << 17


def depth_second(torch: Torch, images: Array) -> Tensor:
    """Images as PyTorch has them, in the same memory."""
    return tensor(torch, images).permute(0, 3, 1, 2)


def depth_last(images: Tensor) -> Tensor:
    """The same the other way round."""
    return images.permute(0, 2, 3, 1)


def by_images(
    torch: Torch,
    compute: Callable[..., Any],
    shape: tuple[int, ...],
    *batches: Array,
    piece: int = 0,
) -> Any:
    """``compute(*batches)``, some images for each thread; the result has this shape.

    ``piece`` is how many elements are worth a thread, if not as many as usual.  What is computed
    is a tensor that nobody else has, or NotImplemented, and so is everything then.
    """
    if _pieces(torch, batches, piece) < 2:
        found = compute(*batches)
        return found if found is NotImplemented else np.ascontiguousarray(given(found))

    def fill(result: Array, *some: Array) -> Any:
        found = compute(*some)
        if found is NotImplemented:
            return found
        result[...] = found.numpy()
        return result

    return filled_by_images(torch, fill, shape, *batches, piece=piece)


def filled_by_images(
    torch: Torch,
    fill: Callable[..., Any],
    shape: tuple[int, ...],
    *batches: Array,
    piece: int = 0,
) -> Any:
    """What ``fill(result, *batches)`` writes into an array of this shape.

    If it returns NotImplemented for any of the images, so is everything.
    """
    result, size, declined = np.empty(shape, np.float32), shape[0], list[int]()
    step = -(-size // _pieces(torch, batches, piece))

    def body(number: int) -> None:
        where = slice(number * step, (number + 1) * step)
        if fill(result[where], *(x[where] for x in batches)) is NotImplemented:
            declined.append(number)

    in_pieces(-(-size // step), body)
    return NotImplemented if declined else result


def _pieces(torch: Torch, batches: Sequence[Array], piece: int) -> int:
    """How many threads to use: no more than there are images, each with enough to do."""
    heavy = max(x.size for x in batches) // (piece or _PIECE)
    return max(min(threads(torch), len(batches[0]), heavy), 1)
