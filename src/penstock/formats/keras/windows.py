"""How large the results of sliding windows are, and where channels stand.

In:   sizes of inputs and windows, strides, dilations, Keras' words for padding.
Out:  sizes of outputs; None where those of the inputs are not known.

The formulas are those of TensorFlow's ``tf.nn.convolution`` ("VALID" and "SAME").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.formats.keras.symbol import Symbol, transpose


def window_size(
    size: int | None, window: int, stride: int, padding: str, dilation: int = 1
) -> int | None:
    """How many places a window has along one dimension."""
    if size is None:
        return None
    if padding != "valid":
        return -(-size // stride)
    reach = dilation * (window - 1) + 1
    return max(-(-(size - reach + 1) // stride), 0)


def window_sizes(
    sizes: Sequence[int | None],
    windows: Sequence[int],
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int] | None = None,
) -> list[int | None]:
    """The same along several dimensions."""
    spread = dilations or [1] * len(windows)
    four = zip(sizes, windows, strides, spread, strict=True)
    return [window_size(size, w, s, padding, d) for size, w, s, d in four]


def channels_last(x: Symbol) -> Symbol:
    """The same with the channels moved from behind the batch to the end."""
    return transpose(x, [0, *range(2, x.rank), 1])


def channels_first(x: Symbol) -> Symbol:
    """The same with the channels moved from the end to behind the batch."""
    return transpose(x, [0, x.rank - 1, *range(1, x.rank - 1)])


def in_channels_last(
    x: Symbol, function: Callable[[Symbol], Symbol], *, is_channels_first: bool
) -> Symbol:
    """What ``function`` makes of ``x``, which it is given with the channels at the end.

    TensorFlow's kernels for processors know hardly anything else, and Keras does the same.
    """
    if not is_channels_first:
        return function(x)
    y = function(channels_last(x))
    return channels_first(y) if y.rank > 2 else y
