"""Random numbers, bit by bit against answers recorded from TensorFlow."""

from __future__ import annotations

from threading import Thread
from typing import Any

import numpy as np
import pytest

from penstock.catalogue.registry import get_op
from penstock.core.dtypes import as_dtype
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, get_kernel
from penstock.kernels.random.philox import Philox
from penstock.kernels.random.random_numbers import normal, uniform
from support.ops import run_op

SEED = np.array([3, 5])
#: The normal numbers of the seed, in the order of the stream.
NORMALS = [0.8695505, 1.2628788, 0.8731732, -1.106378]


def sizes(*numbers: int) -> Any:
    """A shape."""
    return np.array(numbers, np.int32)


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [
        (0, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        (2**64 - 1, 2**128 - 1, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            0x299F31D0A4093822,
            0x0370734413198A2E85A308D3243F6A88,
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_words_of_its_authors(key: int, counter: int, words: list[int]) -> None:
    """The known answers that come with Random123."""
    assert Philox(key, counter).blocks(1).tolist() == [words]


def test_counters_carry() -> None:
    """The low half of the counter runs over into the high one, and that to zero."""
    stream = Philox(7, 2**128 - 2)
    assert stream.blocks(4)[2:].tolist() == Philox(7, 0).blocks(2).tolist()
    assert stream.blocks(4)[3].tolist() == stream.skip(3).blocks(1)[0].tolist()
    assert stream.blocks(20_000)[-1].tolist() == stream.skip(19_999).blocks(1)[0].tolist()


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        (
            "StatelessRandomUniform",
            "float32",
            [0.30866754055023193, 0.0959700345993042, 0.37037038803100586, 0.39366352558135986],
        ),
        (
            "StatelessRandomUniform",
            "float64",
            [0.469340566724483, 0.9629636265219441, 0.1070694083810797],
        ),
        ("StatelessRandomUniform", "float16", [0.6044921875, 0.1865234375, 0.07421875]),
        ("StatelessRandomUniform", "bfloat16", [0.8359375, 0.4921875, 0.59375]),
        ("StatelessRandomUniformFullInt", "int32", [-1045986709, 1091324095, 145713228]),
        (
            "StatelessRandomUniformFullInt",
            "uint64",
            [4687201300610777707, 10102246388712564812, 7599368635277227662],
        ),
    ],
)
def test_uniform_numbers(op: str, dtype: str, expected: list[float]) -> None:
    """Each type takes its own bits; fractions have as many as its mantissa."""
    result = run_op(op, sizes(len(expected)), SEED, dtype=as_dtype(dtype))
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, np.array(expected, result.dtype))


@pytest.mark.parametrize("low", [-10, -(2**31)])
def test_uniform_integers(low: int) -> None:
    """Integers are remainders of the bits, counted from the lower limit on."""
    result = run_op("StatelessRandomUniformInt", sizes(5), SEED, np.int32(-10), np.int32(10))
    assert result.tolist() == [-3, 5, -2, -1, -8]
    wide = run_op("StatelessRandomUniformInt", sizes(3), SEED, np.int64(-10), np.int64(10**12))
    assert wide.tolist() == [300563905687, 388611542342, 635201233972]
    huge = run_op("StatelessRandomUniformInt", sizes(99), SEED, np.int32(low), np.int32(2**31 - 1))
    assert low <= huge.min() < huge.max() < 2**31 - 1


def test_normal_numbers() -> None:
    """Normal numbers come in pairs; those of half precision are the rounded ones."""
    result = run_op("StatelessRandomNormal", sizes(4), SEED)
    np.testing.assert_allclose(result, np.array(NORMALS, np.float32), rtol=3e-7)
    half = run_op("StatelessRandomNormal", sizes(4), SEED, dtype=as_dtype("float16"))
    np.testing.assert_array_equal(half, result.astype(np.float16))
    double = run_op("StatelessRandomNormal", sizes(3), SEED, dtype=as_dtype("float64"))
    expected = [-0.2836481473256537, 1.196827876726958, -2.0991036649129473]
    np.testing.assert_allclose(double, expected, rtol=1e-14)


def test_cut_normal_numbers() -> None:
    """Numbers from 2 on are left out; each group of four draws from bits of its own."""
    result = run_op("StatelessTruncatedNormal", sizes(6), SEED)
    np.testing.assert_allclose(result, [*NORMALS, -0.35297453, 0.12548243], rtol=3e-7)
    double = run_op("StatelessTruncatedNormal", sizes(5), SEED, dtype=as_dtype("float64"))
    expected = [
        -0.2836481473256537,
        1.196827876726958,
        -1.310842930631724,
        0.5586841894869352,
        0.19323684817252146,
    ]
    np.testing.assert_allclose(double, expected, rtol=1e-14)
    many = run_op("StatelessTruncatedNormal", sizes(20_000), SEED)
    assert abs(many).max() < 2
    assert abs(many.mean()) < 0.03


def test_second_forms_agree_with_the_first() -> None:
    """A key and a counter made of a seed give what the seed gives."""
    key, counter = run_op("StatelessRandomGetKeyCounter", SEED)
    assert (key.tolist(), counter.tolist()) == ([4551124392215935721], [0, 13892792660983712975])
    assert run_op("StatelessRandomGetKeyCounterAlg", SEED)[2] == run_op("StatelessRandomGetAlg")
    for op in ("RandomUniform", "RandomNormal", "TruncatedNormal", "RandomUniformFullInt"):
        first = run_op(f"Stateless{op}", sizes(2, 3), SEED)
        second = run_op(f"Stateless{op}V2", sizes(2, 3), key, counter, np.int32(3))
        np.testing.assert_array_equal(first, second)
    limits = np.int32(0), np.int32(9)
    first = run_op("StatelessRandomUniformInt", sizes(7), SEED, *limits)
    second = run_op("StatelessRandomUniformIntV2", sizes(7), key, counter, np.int32(1), *limits)
    np.testing.assert_array_equal(first, second)


def test_samples_of_distributions() -> None:
    """Samples that take several numbers each are TensorFlow's too."""
    classes = run_op("StatelessMultinomial", np.float32([[0, 1, 2], [3, 0, 0]]), np.int32(5), SEED)
    assert classes.tolist() == [[2, 2, 1, 2, 2], [0, 0, 0, 0, 0]]
    gammas = run_op("StatelessRandomGammaV2", sizes(2, 3), SEED, np.float32([0.5, 1, 4]))
    expected = [[0.03434157, 1.6453378, 2.598643], [1.6419003, 0.73590004, 4.1534066]]
    np.testing.assert_allclose(gammas, expected, rtol=1e-6)
    rates = np.float32([2, 40])
    poissons = run_op("StatelessRandomPoisson", sizes(4, 2), SEED, rates, dtype=as_dtype("int32"))
    assert poissons.tolist() == [[3, 38], [0, 46], [3, 38], [2, 40]]
    counts, chances = np.float32([10, 100, 30]), np.float32([0.5, 0.5, 0.9])
    kind = as_dtype("int32")
    binomials = run_op("StatelessRandomBinomial", sizes(4, 3), SEED, counts, chances, dtype=kind)
    assert binomials.tolist() == [[6, 49, 26], [7, 55, 30], [3, 49, 28], [7, 50, 28]]
    key, counter = run_op("StatelessRandomGetKeyCounter", SEED)
    shuffled = run_op("StatelessShuffle", np.arange(8), key, counter, np.int32(1))
    assert shuffled.tolist() == [3, 2, 1, 7, 6, 5, 0, 4]


@pytest.mark.parametrize(
    ("count", "chance", "expected"),
    [(10, 0, 0), (10, 1, 10), (10, 1.5, 10), (-1, 0.5, 0), (0, 0.5, 0), (10, np.nan, np.nan)],
)
def test_binomial_limits(count: float, chance: float, expected: float) -> None:
    """Chances outside of 0 and 1 are as good as those limits."""
    kind = as_dtype("float32")
    arguments = sizes(2), SEED, np.float32(count), np.float32(chance)
    result = run_op("StatelessRandomBinomial", *arguments, dtype=kind)
    np.testing.assert_array_equal(result, [expected] * 2)


def test_gamma_and_poisson_limits() -> None:
    """Shapes that are none give NaN, rates that are none 0 or an error; nothing hangs."""
    alphas = np.float32([-1, 0, np.nan, np.inf])
    result = run_op("StatelessRandomGammaV2", sizes(1, 4), SEED, alphas)
    np.testing.assert_array_equal(result, [[np.nan, 0, np.nan, np.inf]])
    kind = as_dtype("float32")
    rates = np.float32([-1, 0])
    assert not run_op("StatelessRandomPoisson", sizes(3, 2), SEED, rates, dtype=kind).any()
    for rate in (np.nan, np.inf):
        with pytest.raises(InvalidArgumentError, match="rates must be finite"):
            run_op("StatelessRandomPoisson", sizes(1), SEED, np.float32(rate), dtype=kind)


def test_classes_that_are_never_chosen() -> None:
    """Logits that are not finite have no chance."""
    logits = np.float32([[0, -np.inf, 1, np.nan]] * 3)
    for count in (2, 50):
        chosen = run_op("StatelessMultinomial", logits, np.int32(count), SEED)
        assert set(chosen.reshape(-1).tolist()) <= {0, 2}


def test_scalars_and_nothing() -> None:
    """An empty shape gives a scalar, a size of 0 an empty array."""
    assert type(run_op("StatelessRandomUniform", sizes(), SEED)) is np.float32
    assert run_op("StatelessTruncatedNormal", sizes(0, 3), SEED).shape == (0, 3)
    same = np.int32(5)
    assert run_op("StatelessRandomUniformInt", sizes(0), SEED, same, same).shape == (0,)
    assert run_op("RandomShuffle", np.float32(3)) == 3


@pytest.mark.parametrize(
    ("op", "arguments", "complaint"),
    [
        ("StatelessRandomUniform", (sizes(2), sizes(1, 2, 3)), r"seed must have shape \[2\], not"),
        ("StatelessRandomUniform", (sizes(-1), SEED), "Dimension -1 must be >= 0"),
        ("StatelessRandomUniform", (np.int32(2), SEED), r"shape must be a vector .* shape \[\]"),
        ("StatelessRandomUniform", (np.array([2**40, 2**40]), SEED), r"more than 2\*\*63 - 1"),
        (
            "StatelessRandomUniformInt",
            (sizes(2), SEED, np.int32(5), np.int32(5)),
            "Need minval < maxval, got 5 >= 5",
        ),
        ("StatelessRandomUniformInt", (sizes(2), SEED, sizes(5), np.int32(5)), "must be 0-D"),
        (
            "StatelessRandomUniformV2",
            (sizes(2), np.uint64([1]), np.uint64([0, 0]), np.int32(2)),
            "Unsupported algorithm id: 2",
        ),
        (
            "StatelessRandomUniformV2",
            (sizes(2), np.uint64([1, 2]), np.uint64([0, 0]), np.int32(1)),
            r"key must have shape \[1\], not \[2\]",
        ),
        (
            "StatelessMultinomial",
            (np.zeros((2, 0), np.float32), np.int32(1), SEED),
            "num_classes should be positive",
        ),
        (
            "StatelessRandomGammaV2",
            (sizes(3), SEED, np.float32([1, 2])),
            "must end with broadcasted shape",
        ),
    ],
)
def test_wrong_arguments(op: str, arguments: Any, complaint: str) -> None:
    """Shapes, seeds, limits and algorithms are checked before anything is drawn."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op(op, *arguments)


def made(op_name: str, **given: Any) -> Kernel:
    """The kernel of a node with these attributes."""
    op = get_op(op_name)
    values = {name: attr.default for name, attr in op.attrs.items() if attr.default is not None}
    values |= {name: as_dtype(v) if isinstance(v, str) else v for name, v in given.items()}
    facts = Attrs(op, values, op.input_types(values), op.output_types(values))
    return get_kernel(op_name, "CPU", values).make(facts)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        (
            "RandomUniform",
            {"dtype": "float32", "T": "int32"},
            (sizes(3),),
            [[0.3976692, 0.84256816, 0.004518986], [0.31516445, 0.12238419, 0.36476684]],
        ),
        (
            "RandomStandardNormal",
            {"dtype": "float32", "T": "int32"},
            (sizes(3),),
            [[-1.1347394, 0.7460806, -1.9681302], [1.0567462, 1.0920664, -1.3633281]],
        ),
        (
            "TruncatedNormal",
            {"dtype": "float32", "T": "int32"},
            (sizes(3),),
            [[-1.1347394, 0.7460806, -1.9681302], [1.0567462, 1.0920664, -1.3633281]],
        ),
        (
            "RandomUniformInt",
            {"Tout": "int32", "T": "int32"},
            (sizes(3), np.int32(0), np.int32(1000)),
            [[851, 798, 796], [519, 857, 894]],
        ),
        (
            "RandomShuffle",
            {"T": "int32"},
            (np.arange(8, dtype=np.int32),),
            [[3, 0, 2, 5, 4, 7, 1, 6], [2, 1, 5, 4, 7, 3, 0, 6]],
        ),
        (
            "Multinomial",
            {"T": "float32"},
            (np.float32([[0, 1, 2], [3, 0, 0]]), np.int32(5)),
            [[[1, 0, 2, 2, 2], [0] * 5], [[2, 2, 2, 2, 2], [2, 0, 0, 0, 0]]],
        ),
        (
            "RandomGamma",
            {"S": "int32", "T": "float32"},
            (sizes(2), np.float32([0.5, 4])),
            [
                [[0.78258675, 5.9152532], [0.41332957, 5.9175987]],
                [[0.335362, 4.4858212], [0.29228377, 1.7088287]],
            ],
        ),
        (
            "RandomPoissonV2",
            {"S": "int32", "R": "float32", "dtype": "int32"},
            (sizes(2), np.float32([2, 40])),
            [[[0, 46], [2, 51]], [[3, 46], [1, 40]]],
        ),
    ],
)
def test_streams_go_on(op: str, attrs: Any, inputs: Any, expected: Any) -> None:
    """The second call of a kernel goes on where TensorFlow's goes on."""
    compute = made(op, seed=3, seed2=5, **attrs)
    with np.errstate(all="ignore"):
        for wanted in expected:
            np.testing.assert_allclose(compute(*inputs), wanted, rtol=1e-6)


def test_without_seed_every_kernel_has_a_stream_of_its_own() -> None:
    """Two unseeded kernels agree with a chance of none."""
    first, second = (made("RandomUniform", dtype="float32", T="int32") for _ in range(2))
    assert first(sizes(9)).tolist() != second(sizes(9)).tolist()


def test_no_two_threads_get_the_same_numbers() -> None:
    """Calls at the same time reserve different parts of the stream."""
    compute = made("RandomUniformInt", seed=1, seed2=2, Tout="int64", T="int32")
    drawn: list[int] = []

    def draw() -> None:
        for _ in range(50):
            drawn.extend(compute(sizes(4), np.int64(0), np.int64(2**62)).tolist())

    threads = [Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 4 * 50 * 4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("op", ["RandomUniform", "RandomStandardNormal"])
def test_each_call_goes_on_in_the_stream(op: str, dtype: str) -> None:
    """Whatever calls ask for, each begins as far on in the stream as the one before reserved."""
    compute = made(op, seed=3, seed2=5, dtype=dtype, T="int32")
    draw = (uniform if op == "RandomUniform" else normal)(as_dtype(dtype))
    counts = [5] * 9 + [6, 5, 5, 0, 5, 7, 7, 7, 1, 40_000, 7, 7] + [896] * 70 + [5, 896, 896]
    stream = Philox(3, 5 << 64)
    with np.errstate(all="ignore"):
        for count in counts:
            got = compute(sizes(count))
            assert got.tobytes() == draw(stream, count).tobytes()
            stream = stream.skip(256 * count)
