"""Random programs full of races, functions and devices: replayed as recorded, and shrunk."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import penstock as ps
from support.random_functions import RandomFunctions
from support.sampling import sampled

_FEEDS = {"p:0": True, "i:0": 1, "x:0": np.float32(2), "y:0": np.float32(3)}


@pytest.mark.parametrize("seed", sampled(range(24), 4))
def test_functions_on_several_devices_are_replayed(seed: int, tmp_path: Path) -> None:
    """Whatever calls what, and wherever it lies: calls are executors of their own."""
    config = ps.Config(device_count={"CPU": 3})
    with ps.Session(RandomFunctions(seed).graph_def(), config=config) as session:
        session.run("init")
        want = session.run("out:0", _FEEDS)
        for how in ({"seed": seed}, {"threads": 3}, {}):
            recording = ps.record(session, "out:0", _FEEDS, tmp_path / "step", **how)
            assert recording.results["out:0"] == pytest.approx(want)
            assert ps.replay(tmp_path / "step", times=3)["out:0"] == recording.results["out:0"]


class RacyProgram:
    """A few variables, which nodes read and set in no order but that of what they compute.

    Each access is a node ``VARIABLE_access…``, of which the name says the variable.
    """

    def __init__(self, seed: int, accesses: int) -> None:
        self._random = Random(seed)
        self.graph = ps.Graph()
        with self.graph.as_default():
            self._variables = [
                ps.Variable(np.float64(number + 1), name=f"v{number}") for number in range(3)
            ]
            ps.global_variables_initializer(name="init")
            self._values = [ps.constant(np.float64(2), name="two")]
            for number in range(accesses):
                self._access(number)
            if seed % 2:
                self._loop()
            ps.ops.AddN(self._values[1:], name="sum")

    def _access(self, number: int) -> None:
        chosen = self._random.randrange(3)
        variable, kind = self._variables[chosen], self._random.choice("rsa")
        value = self._random.choice(self._values)
        name = f"v{chosen}_access{number}"
        if kind == "r":
            read = ps.ops.ReadVariableOp(variable.handle, dtype=ps.dtypes.float64, name=name)
            self._values.append(read * (number + 1.5))
            return
        op = ps.ops.AssignVariableOp if kind == "s" else ps.ops.AssignAddVariableOp
        done = op(variable.handle, value + number, name=name)
        with ps.control_dependencies([done]):
            self._values.append(ps.identity(value, name=f"after{number}"))

    def _loop(self) -> None:
        """Its iterations race with one another, and with what is around it."""
        chosen = self._random.randrange(3)
        handle = self._variables[chosen].handle

        def body(i: Any, x: Any) -> tuple[Any, Any]:
            name = f"v{chosen}_access_in_loop"
            read = ps.ops.ReadVariableOp(handle, dtype=ps.dtypes.float64, name=name)
            ps.ops.AssignVariableOp(handle, read * 1.25 + x, name=f"v{chosen}_access_to_set")
            return i + 1, x + read

        start = [ps.constant(0), self._random.choice(self._values)]
        _, x = ps.while_loop(lambda i, _: i < 3, body, start)
        self._values.append(x)


@pytest.mark.parametrize("seed", sampled(range(32), 4))
def test_races_are_replayed_and_shrunk_to_accesses_of_one_variable(
    seed: int, tmp_path: Path
) -> None:
    """An order that gives another sum does so by pairs, each of which is about one variable."""
    with ps.Session(RacyProgram(seed, accesses=9).graph) as session:
        session.run("init")
        start = session.snapshot()
        usual = ps.record(session, "sum:0").results["sum:0"]
        for order in range(12):
            session.restore(start)
            recording = ps.record(session, "sum:0", path=tmp_path / "step", seed=order)
            assert ps.replay(tmp_path / "step", times=3) == recording.results
            if recording.results["sum:0"] == usual:
                continue
            found = ps.shrink(tmp_path / "step")
            assert found.is_minimal
            assert found.exchanges
            assert ps.replay(found.recording) == recording.results
            for first, second in found.exchanges:
                assert "_access" in first.node
                assert "_access" in second.node
                about = {run.node.rpartition("/")[2][:2] for run in (first, second)}
                assert len(about) == 1, f"{first} and {second} have nothing in common"
            return
    raise AssertionError("no order gives another sum")
