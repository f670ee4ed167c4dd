"""Shapes of transforms and sounds.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  looks into no file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.core.shapes import TensorShape
from penstock.kernels.api.partial_shapes import (
    Dim,
    at_least_rank,
    concat,
    dim,
    merge,
    part_of,
    shape,
    with_rank,
)
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures(
    {
        "BatchFFT BatchIFFT FFT IFFT": "[...,a] -> [...,a]",
        "BatchFFT2D BatchIFFT2D FFT2D IFFT2D": "[...,a,b] -> [...,a,b]",
        "BatchFFT3D BatchIFFT3D FFT3D IFFT3D": "[...,a,b,c] -> [...,a,b,c]",
        "EncodeWav": "[?,?], [] -> []",
        "Mfcc": "[a,b,?], [] -> [a,b,$dct_coefficient_count]",
    }
)

#: Over how many axes a transform goes.
_AXES: Final = {
    "RFFT": 1, "RFFT2D": 2, "RFFT3D": 3, "IRFFT": 1, "IRFFT2D": 2, "IRFFT3D": 3,
}  # fmt: skip


@shape_rule(*_AXES)
def real_transform(node: ShapeContext) -> TensorShape:
    """As long as asked for; of the last axis only half is needed where the numbers are complex."""
    axes = _AXES[node.attrs.op.name]
    given = at_least_rank(node.input(0), axes)
    merge(with_rank(node.input(1), 1), shape(axes))
    lengths = [None if n is None or n < 0 else n for n in node.some_numbers(1, axes)]
    if not node.attrs.op.name.startswith("I"):
        last = lengths[-1]
        lengths[-1] = None if last is None else last // 2 + 1 if last else 0
    return concat(part_of(given, 0, -axes), shape(*lengths))


@shape_rule("AudioSpectrogram")
def audio_spectrogram(node: ShapeContext) -> TensorShape:
    """Per channel one row per place of the window, and as many frequencies as it tells apart."""
    samples, channels = dim(node.input(0), 0), dim(node.input(0), 1)
    window, stride = node.attrs.int("window_size"), node.attrs.int("stride")
    places: Dim = None
    if samples is not None:
        places = 0 if samples < window else 1 + (samples - window) // stride
    # The next power of two holds the window.
    width = 1 << max(window - 1, 0).bit_length()
    return shape(channels, places, width // 2 + 1)


@shape_rule("DecodeWav")
def decode_wav(node: ShapeContext) -> Sequence[TensorShape]:
    """As many samples and channels as asked for, if they are, and the rate."""
    with_rank(node.input(0), 0)
    sizes = (node.attrs.int(name) for name in ("desired_samples", "desired_channels"))
    return shape(*(size if size >= 0 else None for size in sizes)), shape()
