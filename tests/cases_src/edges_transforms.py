"""Fourier transforms of nothing, of lengths that do not fit, and between types that do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import c64, c128, f32, f64, i32, normal, op

#: Axes by the end of the ops' names.
_KINDS = {"": 1, "2D": 2, "3D": 3}


def of_nothing() -> list[Any]:
    """Inputs without elements, and lengths of zero; where TensorFlow has an answer at all."""
    cases = []
    for kind, rank in _KINDS.items():
        none = (0,) * rank
        cases += [
            op(f"{inverse}FFT{kind}", input=c64(np.zeros(shape)))
            for inverse in ("", "I")
            for shape in (none, (2, *none), (0, *(3,) * rank))
        ]
        for shape in (none, (2, *none), (0, *(3,) * rank)):
            to_complex = {"fft_length": i32(none), "Tcomplex": "complex64"}
            cases += [
                op(f"RFFT{kind}", input=f32(np.zeros(shape)), **to_complex),
                op(f"IRFFT{kind}", input=c64(np.zeros(shape)), fft_length=i32(none)),
            ]
        none_of_three = {"fft_length": i32((3,) * rank)}
        batch = np.zeros((0, *(3,) * rank))
        cases += [
            op(f"RFFT{kind}", input=f64(batch), **none_of_three, Tcomplex="complex128"),
            op(f"IRFFT{kind}", input=c128(batch), **none_of_three, Treal="float64"),
        ]
    return cases


def of_lengths() -> list[Any]:
    """Lengths that cut the input off, odd ones and even ones, and those that are too large."""
    cases = []
    for kind, rank in _KINDS.items():
        x = normal(2, *(4,) * rank)
        for length in (1, 2, 3, 4):
            lengths = i32((length,) * rank)
            cases += [
                op(f"RFFT{kind}", input=x, fft_length=lengths),
                op(f"IRFFT{kind}", input=c64(x + 1j * x[::-1]), fft_length=lengths),
            ]
        says = "Input dimension 1 must have length of at least 5 but got: 4"
        cases += [
            op(f"RFFT{kind}", input=x, fft_length=i32((5,) * rank), says=says),
            op(
                f"IRFFT{kind}",
                input=c64(x),
                fft_length=i32((5,) * (rank - 1) + (8,)),
                says="must have length of at least 5 but got: 4",
            ),
            op(f"RFFT{kind}", input=x, fft_length=i32((-1,) * rank), says="must >= 0, but got: -1"),
            op(f"RFFT{kind}", input=x, fft_length=i32([4] * 4), says="fft_length must have shape"),
            op(
                f"FFT{kind}",
                input=c64(np.ones((2,) * (rank - 1))),
                says=f"rank of at least {rank} but got: [{','.join('2' * (rank - 1))}]",
            ),
        ]
    return cases


def of_types() -> list[Any]:
    """Real and complex numbers that are not of one precision are refused when they come."""
    cases = []
    for kind, rank in _KINDS.items():
        x, lengths = normal(*(4,) * rank), i32((4,) * rank)
        cases += [
            op(
                f"RFFT{kind}",
                input=f32(x),
                fft_length=lengths,
                Tcomplex="complex128",
                says="Wrong types for forward real FFT: in=1 out=18",
            ),
            op(
                f"RFFT{kind}",
                input=f64(x),
                fft_length=lengths,
                Tcomplex="complex64",
                says="Wrong types for forward real FFT: in=2 out=8",
            ),
            op(
                f"IRFFT{kind}",
                input=c64(x),
                fft_length=lengths,
                Treal="float64",
                says="Wrong types for backward real FFT: in=8 out=2",
            ),
        ]
    return cases


CASES = [*of_nothing(), *of_lengths(), *of_types()]
