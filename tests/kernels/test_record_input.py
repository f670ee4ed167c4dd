"""Records in an order that looks random: TensorFlow's answers where it has only one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Session, errors
from penstock.defs.record_file import framed
from penstock.kernels.random.twister import below, twister
from support.sketch import sketch


def write(path: Path, records: Sequence[Any]) -> None:
    """A file of records."""
    path.write_bytes(b"".join(framed(str(record).encode()) for record in records))


def session(pattern: Path, **attrs: Any) -> Session:
    """A session with one node ``y``."""
    given = " ".join(f"{name}={value!r}" for name, value in attrs.items())
    return Session(sketch(f"y = RecordInput() file_pattern='{pattern}' {given}"))


def batches(pattern: Path, number: int, **attrs: Any) -> list[list[Any]]:
    """The first batches, of numbers."""
    with session(pattern, **attrs) as opened:
        return [[int(record) for record in opened.run("y:0")] for _ in range(number)]


def test_words_of_the_twister() -> None:
    """The C++ standard says what the ten thousandth word of the usual seed is."""
    assert next(islice(twister(5489), 9999, None)) == 9981545732273789042


def test_numbers_below_a_bound_are_even() -> None:
    """Words that would favour small numbers are passed over."""

    def words() -> Iterator[int]:
        yield from (0, 1 << 63)

    assert below(3, words()) == 1


#: Seed, number of files of one record, and the records of epochs as TensorFlow 2.21 gave them;
#: files are numbered in the order of their folder.
EPOCHS = [
    (301, 2, [[1, 0], [1, 0], [1, 0], [1, 0], [1, 0]]),
    (7, 2, [[0, 1], [0, 1], [1, 0], [1, 0], [1, 0]]),
    (301, 3, [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 2, 0], [0, 1, 2]]),
    (7, 3, [[2, 0, 1], [2, 0, 1], [2, 1, 0], [2, 1, 0], [1, 2, 0]]),
    (-5, 3, [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 0, 1], [1, 2, 0]]),
    (301, 5, [[3, 4, 0, 1, 2], [0, 1, 2, 3, 4], [3, 1, 4, 2, 0], [2, 0, 1, 4, 3],
              [0, 4, 3, 1, 2]]),
    (0, 5, [[2, 0, 3, 4, 1], [3, 1, 0, 4, 2], [2, 0, 4, 3, 1], [1, 4, 0, 2, 3],
            [1, 0, 2, 3, 4]]),
]  # fmt: skip


@pytest.mark.parametrize(("seed", "size", "epochs"), EPOCHS)
def test_files_are_shuffled_anew_each_epoch(
    seed: int, size: int, epochs: list[list[int]], tmp_path: Path
) -> None:
    """By the number of the epoch and the seed."""
    for number in range(size):
        write(tmp_path / f"f{number}", [number])
    attrs = {"file_parallelism": 1, "file_buffer_size": 1, "file_random_seed": seed}
    assert batches(tmp_path / "f*", 5, batch_size=size, **attrs) == epochs


FORTY = {
    1: [[*range(15, 40), *range(14, -1, -1)]] * 2,
    200: [
        [1, 25, 2, 12, 4, 35, 8, 26, 32, 3, 9, 38, 37, 7, 33, 36, 17, 22, 13, 15, 6, 27, 20, 30,
         34, 0, 10, 18, 23, 21, 5, 31, 24, 19, 28, 29, 39, 16, 11, 14],
        [33, 2, 19, 32, 31, 13, 14, 23, 24, 17, 18, 5, 28, 16, 9, 36, 6, 35, 7, 10, 25, 39, 15, 29,
         1, 27, 34, 37, 0, 21, 26, 4, 38, 12, 30, 3, 20, 11, 8, 22],
    ],
}  # fmt: skip


@pytest.mark.parametrize(("room", "epochs"), FORTY.items())
def test_records_are_mixed_in_the_buffer(
    room: int, epochs: list[list[int]], tmp_path: Path
) -> None:
    """Within a file sixteen are read ahead, and each goes to a random place in the buffer."""
    write(tmp_path / "f", range(40))
    attrs = {"file_parallelism": 1, "file_buffer_size": room, "batch_size": 40}
    assert batches(tmp_path / "f", 2, **attrs) == epochs


@pytest.mark.parametrize("shards", [1, 2, 16])
@pytest.mark.parametrize("room", [1, 5, 1000])
def test_each_epoch_has_each_record_once(shards: int, room: int, tmp_path: Path) -> None:
    """However the files are dealt out, and however much is mixed; the same every time."""
    for number in range(3):
        write(tmp_path / f"f{number}", range(20 * number, 20 * number + 20))
    attrs = {"file_parallelism": shards, "file_buffer_size": room, "batch_size": 60}
    found = batches(tmp_path / "f*", 3, file_shuffle_shift_ratio=0.5, **attrs)
    assert all(sorted(batch) == list(range(60)) for batch in found)
    assert found == batches(tmp_path / "f*", 3, file_shuffle_shift_ratio=0.5, **attrs)
    split = batches(tmp_path / "f*", 9, file_shuffle_shift_ratio=0.5, **attrs | {"batch_size": 20})
    assert np.ravel(split).tolist() == np.ravel(found).tolist()


def test_mistakes(tmp_path: Path) -> None:
    """What cannot be read is an error of every run; so is what never ends."""
    with session(tmp_path / "none*") as opened:
        for _ in range(2):
            with pytest.raises(errors.NotFoundError, match=r"Found no files at .*none"):
                opened.run("y:0")
    (tmp_path / "bad").write_bytes(b"nonsense-nonsense")
    with session(tmp_path / "bad") as opened:
        for _ in range(2):
            with pytest.raises(errors.DataLossError):
                opened.run("y:0")
    (tmp_path / "empty").write_bytes(b"")
    with session(tmp_path / "empty") as opened, pytest.raises(errors.OutOfRangeError):
        opened.run("y:0")
    for attrs in ({"file_parallelism": 0}, {"file_buffer_size": 0}, {"batch_size": -1}):
        refused = pytest.raises(errors.InvalidArgumentError, match="RecordInput needs")
        with session(tmp_path / "f", **attrs) as opened, refused:
            opened.run("y:0")
    with session(tmp_path / "none", batch_size=0) as opened:
        assert opened.run("y:0").shape == (0,)
