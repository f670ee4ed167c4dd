"""Packages bring ops by an entry point, and nobody has to import them."""

from __future__ import annotations

import importlib.metadata
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.catalogue import plugins
from penstock.catalogue.registry import find_op
from penstock.kernels.api import registry as kernels
from penstock.kernels.api.registry import kernels_of, ops_with_kernels
from support.custom import custom_kernels
from support.graphs import graph_def

PACKAGE = Path(__file__).parents[2] / "examples" / "custom_op_package"
MODULE = "penstock_polynomial"


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process that has not looked for packages yet; and forget their ops afterwards."""
    with custom_kernels():
        monkeypatch.setattr(plugins, "_loaded", [])
        monkeypatch.setattr(kernels, "_loaded_ops", set())
        yield
    sys.modules.pop(MODULE, None)


def install(monkeypatch: pytest.MonkeyPatch, *entry_points: EntryPoint) -> list[str]:
    """Let the given entry points be all there are; returns the groups that are asked for."""
    asked: list[str] = []

    def found(*, group: str) -> tuple[EntryPoint, ...]:
        asked.append(group)
        return tuple(e for e in entry_points if e.group == group)

    monkeypatch.setattr(importlib.metadata, "entry_points", found)
    return asked


def example(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Install the example package, as its own pyproject.toml says."""
    monkeypatch.syspath_prepend(str(PACKAGE / "src"))
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text("utf-8"))["project"]
    ((name, value),) = project["entry-points"]["penstock.ops"].items()
    return install(monkeypatch, EntryPoint(name, value, "penstock.ops"))


def test_a_graph_with_the_op_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is imported when the graph is: 1 + 2x at 3 is 7."""
    example(monkeypatch)
    proto = graph_def("x = Placeholder")
    node = proto.node.add(name="y", op="Polynomial", input=["x"])
    node.attr["T"].type = 1
    node.attr["coefficients"].list.f.extend([1.0, 2.0])

    with ps.Session(proto) as session:
        assert session.run("y:0", {"x:0": np.float32([3])}).tolist() == [7]


def test_the_builder_finds_the_op(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's own test passes."""
    example(monkeypatch)
    names: dict[str, object] = {"__name__": "test_of_the_package"}
    exec((PACKAGE / "tests" / "test_polynomial.py").read_text("utf-8"), names)

    names["test_polynomial_of_each_element"]()  # type: ignore[operator]


def test_known_ops_import_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that needs no stranger looks for no packages."""
    asked = example(monkeypatch)
    with ps.Session(graph_def("x = Placeholder\ny = Neg(x)")) as session:
        session.run("y:0", {"x:0": np.float32(1)})

    assert asked == []
    assert find_op("Polynomial") is None


def test_packages_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second unknown op does not search again."""
    asked = example(monkeypatch)
    for _ in range(2):
        with pytest.raises(ps.errors.NotFoundError, match="Nobody"):
            _import("Nobody")

    assert asked == ["penstock.ops"]


def _import(op: str) -> None:
    proto = graph_def("x = Placeholder")
    proto.node.add(name="y", op=op)
    ps.Session(proto)


def test_listing_the_ops_brings_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """``penstock ops`` lists what packages bring."""
    example(monkeypatch)

    assert "Polynomial" in ops_with_kernels()


def test_a_kernel_for_an_op_of_tensorflow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A package may bring the kernel of an op that is known and has none."""
    code = "import penstock as ps\nps.kernel('XlaAllReduce')(lambda attrs: lambda *args: ())\n"
    (tmp_path / f"{MODULE}.py").write_text(code, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    install(monkeypatch, EntryPoint("collectives", MODULE, "penstock.ops"))

    assert [kernel.is_builtin for kernel in kernels_of("XlaAllReduce")] == [False]


def test_a_broken_package_does_not_break_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is warned about by name, and the next one is imported."""
    monkeypatch.syspath_prepend(str(PACKAGE / "src"))
    broken = EntryPoint("broken", "no_such_module_at_all", "penstock.ops")
    install(monkeypatch, broken, EntryPoint("polynomial", MODULE, "penstock.ops"))

    with pytest.warns(RuntimeWarning, match="no_such_module_at_all"):
        assert "Polynomial" in ops_with_kernels()
