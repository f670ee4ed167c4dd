"""Hashes of strings; expected values were recorded from TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.kernels.values.fingerprints import farmhash64, farmhash64_of_each
from support.ops import run_op

ALL_SIZES = [
    *(0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 100, 127, 128, 129),
    *(191, 192, 193),
]
TEXTS = [(f"{at}abcdefghijk" * 20)[:size].encode() for at, size in enumerate(ALL_SIZES)]
FAST = [
    1936946117179621456,
    80785766752259042,
    2642065018023992748,
    5230078251602361207,
    8208861918924370743,
    6100258873198904157,
    3818979441087710388,
    8956100489478285654,
    1468297665056079744,
    228162323713745002,
    2279100312942739819,
    8514525201205713566,
    5353175850570553617,
    8752391929318490355,
    5907147450649720665,
    9049512726161621806,
    4949143773311516476,
    718439586950912050,
    8795828371108214659,
    421384956910804536,
    1830059875001811811,
    7224913024744612169,
    2549195934225962548,
    4558226224439913828,
    4714552660824322719,
    5417366757244098412,
    7398846850169988510,
]
OLD = [
    105434511174508092,
    720586619158246526,
    4179258166958954872,
    7338570522803820290,
    3188933125835747315,
    2893638548264237724,
    8244183433006945664,
    1314580287779250420,
    5359484235611663051,
    957618322501945114,
    1346445242580674957,
    9196093705300672582,
    3869791138210923229,
    2220863897085877797,
    6907200873956987953,
    7601596743049802839,
    4032938991856172263,
    3628091142654296763,
    4262521630100041344,
    5056154289636331910,
    8813687207337757814,
    3705998103922407086,
    4123913648087892124,
    8792834634386719898,
    3760260321449743546,
    310370035696159327,
    531500251868706769,
]
STRONG = [
    4751507944081487622,
    6391519721179382561,
    8217833391782782083,
    8837835807430225583,
    4036733856414604552,
    5131811881593302874,
    2816771943972559926,
    8431488827660468008,
    2625201093694101045,
    8274990238607096191,
    8414730257611737231,
    3179650550536798486,
    5786266903425586456,
    2350107532149046595,
    3912214345852891637,
    1442299172634597637,
    3523223314568849679,
    8918332411199765148,
    5077432493322295327,
    7328743306211895304,
    6584398868022845215,
    7585921900515486909,
    7992801023416387123,
    4841858823359270459,
    5680754133349647183,
    1744066468970290511,
    6536669190727297864,
]
BUCKETS = 2**63 - 1


def texts() -> Any:
    """Strings of all lengths at which a hash changes its ways."""
    return np.array(TEXTS, object)


@pytest.mark.parametrize(
    ("op", "attrs", "expected"),
    [
        ("StringToHashBucketFast", {}, FAST),
        ("StringToHashBucket", {}, OLD),
        ("StringToHashBucketStrong", {"key": (123, -456)}, STRONG),
    ],
)
def test_every_bit(op: str, attrs: dict[str, Any], expected: list[int]) -> None:
    """Whatever its length, a string's hash is TensorFlow's to the last bit."""
    assert run_op(op, texts(), num_buckets=BUCKETS, **attrs).tolist() == expected


@pytest.mark.parametrize("most", [16, 1000])
def test_many_at_once(most: int) -> None:
    """Short ones, between which there may be long ones, have the buckets that each has alone."""
    pairs = [pair for pair in zip(TEXTS, FAST, strict=True) if len(pair[0]) <= most]
    texts, buckets = zip(*pairs * 10, strict=True)
    value = np.array(texts, object).reshape(10, -1)

    found = run_op("StringToHashBucketFast", value, num_buckets=BUCKETS)

    np.testing.assert_array_equal(found, np.array(buckets).reshape(10, -1))


@pytest.mark.parametrize("sizes", [range(17), range(1, 4), range(4, 8), [8, 16], [0], [16, 17]])
def test_many_of_any_bytes(sizes: Sequence[int]) -> None:
    """Whatever the bytes, and whichever sizes there are."""
    rng = np.random.default_rng(7)
    texts = [rng.bytes(size) for size in sizes for _ in range(120)]

    found = farmhash64_of_each(texts)

    assert found.dtype == np.uint64
    assert found.tolist() == [farmhash64(text) for text in texts]


def test_few_buckets() -> None:
    """A bucket is the hash modulo the number of buckets, and keeps the shape."""
    buckets = run_op("StringToHashBucketFast", texts().reshape(3, 9), num_buckets=1)
    assert buckets.dtype == np.int64
    assert buckets.tolist() == np.zeros((3, 9)).tolist()


def test_key_of_another_size() -> None:
    """A key has two words."""
    with pytest.raises(errors.InvalidArgumentError, match="Key must have 2 elements"):
        run_op("StringToHashBucketStrong", b"", num_buckets=3, key=(1,))


@pytest.mark.parametrize(
    ("data", "digests"),
    [
        (
            np.array([b"ab", b"c"], object),
            [[30, 165, 173, 66, 82, 110, 141, 170], [40, 123, 203, 224, 169, 24, 161, 158]],
        ),
        (
            np.array([[b"ab", b"c"], [b"", b"d"]], object),
            [[65, 83, 39, 149, 164, 245, 170, 22], [8, 35, 170, 152, 214, 154, 58, 109]],
        ),
        (
            np.array([[1, 2], [3, 4]], np.int32),
            [[76, 18, 253, 133, 168, 204, 240, 10], [254, 162, 60, 240, 103, 244, 53, 255]],
        ),
        (np.zeros((2, 0)), [[79, 64, 144, 47, 59, 106, 225, 154]] * 2),
        (np.zeros((0, 3)), []),
    ],
)
def test_fingerprint(data: Any, digests: Any) -> None:
    """A row's fingerprint is that of its bytes, or of its strings' fingerprints."""
    found = run_op("Fingerprint", data, b"farmhash64")
    assert found.shape == (len(data), 8)
    assert found.tolist() == digests


@pytest.mark.parametrize(
    ("data", "method", "message"),
    [
        (b"ab", b"farmhash64", "at least one dimension"),
        (np.zeros(1), b"x", "Unsupported fingerprint method: x"),
    ],
)
def test_fingerprint_refused(data: Any, method: bytes, message: str) -> None:
    """Scalars have no rows, and there is one method only."""
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run_op("Fingerprint", data, method)
