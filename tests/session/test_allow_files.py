"""Graphs that may use neither files nor Python: each op that would is refused, the others run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import penstock as ps
from penstock import errors
from penstock.kernels.api.registry import kernels_of, ops_with_kernels
from support.file_ops import GIVEN, USES
from support.sketch import sketch


@pytest.fixture
def called() -> Iterator[list[Any]]:
    """What the registered function was called with."""
    calls: list[Any] = []
    ps.register_py_func({"a/token": calls.append})
    yield calls
    ps.register_py_func({"a/token": None})


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("op", USES)
def test_what_would_use_them_is_refused(
    op: str, tier: ps.Tier, tmp_path: Path, called: list[Any]
) -> None:
    """The error says which op, which file or token, and what would allow it; nothing happened."""
    (tmp_path / "file").write_bytes(b"abcd")
    graph = sketch((GIVEN + USES[op]).replace("$", str(tmp_path)))
    config = ps.Config(allow_files=False, tier=tier)
    with ps.Session(graph, config=config) as session:
        with pytest.raises(errors.PermissionDeniedError) as caught:
            session.run("y")
        assert session.run("number:0") == 1

    error = caught.value
    wanted = "'a/token'" if "PyFunc" in op else str(tmp_path)
    assert (error.node_name, wanted in error.reason) == ("y", True)
    assert (error.op_type or "").startswith("ReaderRead" if "Reader" in op else op)
    assert "Config(allow_files=True)" in error.message
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"abcd"
    assert called == []


#: Ops of the same families that touch neither: they read what others opened, or make names.
HARMLESS: Final = {
    "Print", "ShardedFilename", "ShardedFilespec", "SummaryWriter", "FlushSummaryWriter",
    "CloseSummaryWriter", "ImportEvent",
    *(f"Write{kind}Summary" for kind in ("", "Audio", "Graph", "Histogram", "Image", "RawProto",
                                         "Scalar")),
    *(f"{op}{version}" for version in ("", "V2") for op in (
        "IdentityReader", "ReaderRead", "ReaderReadUpTo", "ReaderReset",
        "ReaderNumRecordsProduced", "ReaderNumWorkUnitsCompleted", "ReaderRestoreState",
        "ReaderSerializeState",
    )),
}  # fmt: skip


def test_no_op_is_forgotten() -> None:
    """All ops of the families that ask for a host stand above, or are known to be harmless."""
    package = Path(ps.__file__).parent / "kernels"
    asking = {path for path in package.rglob("*_op*.py") if ".host." in path.read_text("utf-8")}
    ops = {
        op
        for op in ops_with_kernels()
        if any(Path(kernel.make.__code__.co_filename) in asking for kernel in kernels_of(op))
    }

    assert ops == set(USES) | HARMLESS


def test_a_branch_that_is_not_taken_does_no_harm() -> None:
    """What may not run may be there: only what would touch a file is refused."""
    graph = sketch("""
        p = Placeholder() dtype=bool
        path = Const() value='/etc/hostname'
        s = Switch(path, p)
        y = ReadFile(s:1)
        m = Merge(s:0, y)
    """)
    with ps.Session(graph, config=ps.Config(allow_files=False)) as session:
        assert session.run("m:0", {"p": False}) == b"/etc/hostname"
        with pytest.raises(errors.PermissionDeniedError, match=re.escape("/etc/hostname; the")):
            session.run("m:0", {"p": True})


def test_functions_are_no_way_around() -> None:
    """What a function's body does, the graph does."""
    graph = ps.Graph()
    with graph.as_default():
        made = ps.cond(
            ps.placeholder(ps.dtypes.bool_, name="p"),
            lambda: ps.ops.read_file(b"/etc/hostname"),
            lambda: ps.constant(b"no"),
        )
    with ps.Session(graph, config=ps.Config(allow_files=False)) as session:
        assert session.run(made, {"p:0": False}) == b"no"
        with pytest.raises(errors.PermissionDeniedError):
            session.run(made, {"p:0": True})


def test_before_the_run_nothing_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimiser folds constants, and has no files: not even those that are allowed."""
    from penstock.passes import graph_rewriter

    monkeypatch.setattr(graph_rewriter, "_is_pure_op", lambda _node: True)
    graph = sketch("path = Const() value='no/such/file'\ny = ReadFile(path)\nn = NoOp(^path)")
    with ps.Session(graph) as session:
        session.run("n")
        with pytest.raises(errors.NotFoundError, match="no/such/file; No such file"):
            session.run("y:0")


def test_ones_own_ops_are_ones_own() -> None:
    """Kernels that the caller registered run, and find the same host in their attributes."""
    ps.register_op("ReadsByItself() -> (y: string)")

    @ps.kernel("ReadsByItself")
    def make(attrs: Any) -> Any:
        def read() -> Any:
            with pytest.raises(errors.PermissionDeniedError):
                attrs.host.files.read("/etc/hostname")
            return Path(__file__).read_bytes()[:3]

        return read

    graph = sketch("y = ReadsByItself()")
    with ps.Session(graph, config=ps.Config(allow_files=False)) as session:
        assert session.run("y:0") == b'"""'


def test_by_default_files_are_allowed(tmp_path: Path) -> None:
    """Whoever says nothing runs graphs as TensorFlow does."""
    (tmp_path / "file").write_bytes(b"abc")
    assert ps.Config().allow_files
    with ps.Session(sketch("p = Placeholder() dtype=string\ny = ReadFile(p)")) as session:
        assert session.run("y:0", {"p": str(tmp_path / "file")}) == b"abc"
