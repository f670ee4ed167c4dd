"""The choice between numpy's kernel and a faster one; PyTorch need not be installed."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.kernels.accelerated import contest, library
from penstock.kernels.accelerated.choice import PRIORITY, Offer, choosing, plain_kernel
from penstock.kernels.api.registry import get_kernel, kernels_of, ops_with_kernels
from penstock.kernels.parallel.contention import contention
from support.ops import node_of, run_op

SMALL, LARGE = np.float32([1]), np.ones(100, np.float32)


def plain(_x: Any) -> str:
    return "plain"


def offer_of(fast: Any) -> Offer:
    return Offer(lambda x: x.size > 10, lambda _torch: fast)


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Something that is loaded in PyTorch's place, and a note of each time."""
    notes: list[str] = []

    def load() -> object:
        notes.append("loaded")
        return object()

    monkeypatch.setattr(library, "load", load)
    return notes


def test_small_inputs_go_to_numpy_and_load_nothing(pretended: list[str]) -> None:
    """As long as the faster way does not pay, PyTorch is not imported."""
    kernel = choosing(plain, offer_of(lambda _x: "fast"))
    assert kernel(SMALL) == "plain"
    assert pretended == []


def test_large_inputs_go_the_faster_way_which_is_built_once(pretended: list[str]) -> None:
    """The choice is made in each call, the function once."""
    kernel = choosing(plain, offer_of(lambda _x: "fast"))
    assert [kernel(LARGE), kernel(SMALL), kernel(LARGE)] == ["fast", "plain", "fast"]
    assert pretended == ["loaded"]


@pytest.mark.parametrize("error", [RuntimeError, ValueError, TypeError])
def test_an_error_of_the_faster_way_is_left_to_numpy(
    pretended: list[str], error: type[Exception]
) -> None:
    """PyTorch's words never reach the user: numpy's kernel gives the result or the error."""

    def fail(_x: Any) -> None:
        raise error

    assert choosing(plain, offer_of(fail))(LARGE) == "plain"
    assert pretended == ["loaded"]


def test_the_faster_way_may_decline(pretended: list[str]) -> None:
    """NotImplemented means that numpy is to do it."""
    assert choosing(plain, offer_of(lambda _x: NotImplemented))(LARGE) == "plain"
    assert pretended == ["loaded"]


def test_a_broken_installation_is_like_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """If PyTorch is found but cannot be imported, numpy computes, and its errors are its own."""
    monkeypatch.setattr(library, "load", lambda: None)

    def refuse(_x: Any) -> None:
        raise ValueError("mine")

    assert choosing(plain, offer_of(lambda _x: "fast"))(LARGE) == "plain"
    with pytest.raises(ValueError, match="mine"):
        choosing(refuse, offer_of(lambda _x: "fast"))(LARGE)


def test_a_build_that_lacks_something_is_like_none(pretended: list[str]) -> None:
    """Not every PyTorch has oneDNN inside."""
    offer = Offer(lambda _x: True, lambda torch: torch.ops.mkldnn)
    kernel = choosing(plain, offer)
    assert [kernel(LARGE), kernel(LARGE)] == ["plain", "plain"]
    assert pretended == ["loaded"]


def accelerated_ops() -> list[str]:
    every = (k for op in ops_with_kernels() for k in kernels_of(op))
    return sorted({k.op for k in every if k.make.__module__.startswith(library.__package__)})


def test_for_every_faster_kernel_numpy_has_one_for_the_same_types() -> None:
    """Nothing can be run with PyTorch that cannot be run without."""
    assert len(accelerated_ops()) > 20
    for op in accelerated_ops():
        if op.startswith(("_Fused", "_Onnx")):
            continue  # done by the kernels of its steps, or of the nodes that it stands for
        ours, *others = sorted(kernels_of(op), key=lambda k: -k.priority)
        assert ours.priority == PRIORITY
        for name, types in ours.types.items():
            assert types <= set().union(*(k.types.get(name, types) for k in others)), op


@pytest.mark.parametrize("is_installed", [True, False])
@pytest.mark.parametrize("accelerate", [True, False])
def test_numpys_kernel_is_made_unless_both_want_pytorch(
    monkeypatch: pytest.MonkeyPatch, is_installed: bool, accelerate: bool
) -> None:
    """A session that says no, or a machine without PyTorch, gets numpy's kernel itself."""
    monkeypatch.setattr(library, "is_installed", lambda: is_installed)
    facts, _ = node_of("Relu", [LARGE], {})
    facts = dataclasses.replace(facts, accelerate=accelerate)
    made = get_kernel("Relu", "CPU", facts.values).make(facts)
    is_plain = made.__qualname__ == plain_kernel(facts).__qualname__
    assert is_plain == (not is_installed or not accelerate)


def test_other_types_never_come_here() -> None:
    """Kernels for PyTorch are for float32; for float64 numpy's is found at once."""
    facts, _ = node_of("MatMul", [np.ones((2, 2)), np.ones((2, 2))], {})
    assert get_kernel("MatMul", "CPU", facts.values).priority == 0
    np.testing.assert_array_equal(run_op("MatMul", np.eye(2), np.eye(2)), np.eye(2))


def test_there_are_as_many_pieces_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """They follow from the cores that there are, since the last bits may follow from them."""
    monkeypatch.setattr(library, "HELPERS", 3)
    monkeypatch.setattr(contention, "_busy_until", float("inf"))

    class Alone:
        """PyTorch that keeps to the thread that calls it."""

        get_num_threads = staticmethod(lambda: 1)

    assert library.threads(Alone) == 4


def test_looking_up_all_kernels_imports_no_pytorch(tmp_path: Path) -> None:
    """Whoever has PyTorch does not wait for it unless a node is heavy."""
    (tmp_path / "torch.py").write_text("")  # there is one to be imported, whatever is installed
    program = (
        "import importlib.util, sys; assert importlib.util.find_spec('torch'); "
        "from penstock.kernels.api.registry import ops_with_kernels; "
        "ops_with_kernels(); assert 'torch' not in sys.modules"
    )
    found = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(found)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def timed(seconds: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A kernel of two ways that take so long by a clock of its own."""
    now = [0.0]
    monkeypatch.setattr(contest, "perf_counter", lambda: now[0])

    def way(name: str) -> Any:
        def compute(_x: Any) -> str:
            now[0] += seconds[name]
            return name

        return compute

    return choosing(way("plain"), offer_of(way("fast")), by_trial=True)


def test_without_trials_each_call_is_computed_the_same_way(
    pretended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless a session allows trials, sizes decide, however long either way takes."""
    seconds, now = {"fast": 5.0, "plain": 1.0}, [0.0]
    monkeypatch.setattr(contest, "perf_counter", lambda: now[0])

    def way(name: str) -> Any:
        def compute(_x: Any) -> str:
            now[0] += seconds[name]
            return name

        return compute

    kernel = choosing(way("plain"), offer_of(way("fast")))
    assert {kernel(LARGE) for _ in range(5000)} == {"fast"}
    assert {kernel(SMALL) for _ in range(50)} == {"plain"}
    assert pretended == ["loaded"]


@pytest.mark.parametrize("better", ["fast", "plain"])
def test_the_faster_way_is_the_one_that_was_faster(
    better: str, pretended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a few calls of both, the promise does not count any more."""
    kernel = timed({"fast": 2.0, "plain": 2.0, better: 1.0}, monkeypatch)
    assert [kernel(LARGE) for _ in range(10)] == ["fast"] * 4 + ["plain"] * 3 + [better] * 3
    assert kernel(SMALL) == "plain"
    assert pretended == ["loaded"]


def test_a_verdict_is_changed_when_times_are(
    pretended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the faster way was held up in the first calls, it gets other chances."""
    seconds = {"fast": 5.0, "plain": 2.0}
    kernel = timed(seconds, monkeypatch)
    assert [kernel(LARGE) for _ in range(10)][7:] == ["plain"] * 3
    seconds["fast"] = 1.0
    taken = [kernel(LARGE) for _ in range(100)]
    assert taken[-1] == "fast"
    assert taken.count("plain") < 18
    assert len(pretended) == 1


def test_a_way_is_not_judged_by_its_first_call_in_a_row(
    pretended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes back has lost memory and caches to the other way, and gets them again."""
    now, last, seconds = [0.0], [""], {"fast": 5.0, "plain": 2.0}
    monkeypatch.setattr(contest, "perf_counter", lambda: now[0])

    def way(name: str) -> Any:
        def compute(_x: Any) -> str:
            now[0] += seconds[name] if last[0] == name else 10.0
            last[0] = name
            return name

        return compute

    kernel = choosing(way("plain"), offer_of(way("fast")), by_trial=True)
    assert [kernel(LARGE) for _ in range(10)][7:] == ["plain"] * 3
    seconds["fast"] = 1.0
    assert [kernel(LARGE) for _ in range(200)].count("fast") > 150
    assert len(pretended) == 1


def test_short_work_keeps_its_verdict(
    pretended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where little can be won, results do not change from call to call either."""
    kernel = timed({"fast": 5e-5, "plain": 2e-5}, monkeypatch)
    assert [kernel(LARGE) for _ in range(200)][7:] == ["plain"] * 193
    assert len(pretended) == 1


def test_other_shapes_are_another_trial(
    pretended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is faster for one size may be slower for another."""
    kernel = timed({"fast": 2.0, "plain": 1.0}, monkeypatch)
    assert [kernel(LARGE) for _ in range(8)][-1] == "plain"
    assert kernel(np.ones(101, np.float32)) == "fast"
    assert len(pretended) == 1
