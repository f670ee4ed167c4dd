"""PyTorch does what a thread asks for on that thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.kernels.accelerated import library
from penstock.kernels.accelerated.library import stay_alone


class FakeTorch:
    """Counts how often it is told."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def set_num_threads(self, count: int) -> None:
        """Note the number."""
        self.told.append(count)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    """A module that Penstock was the first to import."""
    fake = FakeTorch()
    monkeypatch.setattr(library, "_own", [fake])
    monkeypatch.setattr(library, "_thread", library._TorchThread())
    return fake


def test_every_thread_says_once_that_it_works_alone(torch: FakeTorch) -> None:
    """PyTorch remembers it by thread."""
    stay_alone()
    stay_alone()
    assert torch.told == [1]
    for _ in range(3):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(stay_alone).result()
            pool.submit(stay_alone).result()
    assert torch.told == [1] * 4


def test_pieces_are_done_alone(torch: FakeTorch) -> None:
    """Whatever thread a piece comes to has said so before."""
    told: list[int] = []
    library.in_pieces(4, lambda _number: told.append(len(torch.told)))
    assert len(told) == 4
    assert min(told) >= 1


def test_whoever_imported_it_before_decides(
    torch: FakeTorch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program's own PyTorch keeps its threads."""
    monkeypatch.setattr(library, "_own", [])
    stay_alone()
    assert torch.told == []
