"""The library in C: who builds it, and which one is used."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.kernels.c import library
from penstock.kernels.c.convolution import Convolver
from penstock.kernels.values.windows import Window

ROOT = Path(__file__).parents[3]
_TOOL = runpy.run_path(str(ROOT / "tools" / "build_kernels.py"))
build, BUILT = _TOOL["build"], _TOOL["LIBRARY"]

#: What it makes are the commands that made it.
_COMPILER = """\
#!/bin/sh
if [ "$2" = --version ]; then cat "$0.version"; exit; fi
echo "$*" >> "$0.calls"
for made; do :; done
echo "$*" > "$made"
[ "$2" != -shared ] || cat "${made%/*}"/*.o > "$made"
"""


def test_without_a_compiler_it_is_said(tmp_path: Path) -> None:
    """And what an earlier build left is taken away."""
    left = tmp_path / "left"
    left.write_bytes(b"old")
    assert build("no-such-compiler -x", left) == "there is no C compiler no-such-compiler -x"
    assert not left.exists()


@pytest.mark.skipif(library.loaded() is None, reason="there was no C compiler")
def test_a_compiler_that_fails_is_said(tmp_path: Path) -> None:
    """With what it said, and nothing is left."""
    assert "no-such-option" in build("cc -fno-such-option", tmp_path / "made")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(library.loaded() is None, reason="there was no C compiler")
def test_a_library_of_other_sources_is_not_used(tmp_path: Path) -> None:
    """Its structure would be another one."""
    assert library.load(BUILT) is not None
    assert library.load(BUILT, layout=0) is None
    assert library.load(ROOT / "README.md") is None
    assert library.load(tmp_path / "nothing") is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no shell")
def test_what_cannot_be_run_is_said(tmp_path: Path) -> None:
    """A command that is there, but is no program."""
    compiler = tmp_path / "compiler"
    compiler.write_bytes(b"\x7fELF")
    compiler.chmod(0o700)
    assert "compiler" in build(str(compiler), tmp_path / "made")


def _some_compiler(folder: Path) -> tuple[Path, Callable[[], int]]:
    """A command, and how often it was called since this was asked for the last time."""
    compiler, calls = folder / "compiler", folder / "compiler.calls"
    compiler.write_text(_COMPILER)
    compiler.chmod(0o700)
    compiler.with_suffix(".version").write_text("1")

    def count() -> int:
        lines = calls.read_text().splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        return len(lines)

    return compiler, count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no shell")
def test_a_library_of_the_same_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever installs again does not wait for the compiler; of anything else there is another."""
    compiler, calls = _some_compiler(tmp_path)
    sources = Path(shutil.copytree(_TOOL["SOURCES"], tmp_path / "sources"))
    monkeypatch.setitem(build.__globals__, "SOURCES", sources)
    made = tmp_path / "made"

    def built(options: str) -> int:
        assert build(f"{compiler} {options}", made) == ""
        return calls()

    in_all = built("-O1")
    assert in_all > 10
    assert built("-O1") == 0
    assert built("-O2") == in_all
    compiler.with_suffix(".version").write_text("2")
    assert built("-O2") == in_all
    with (sources / "pool.h").open("a") as file:
        file.write("/* More. */")
    assert built("-O2") == in_all
    assert built("-O2") == 0


def test_the_package_is_built_with_it() -> None:
    """By the hook that pyproject.toml names."""
    facts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert facts["tool"]["hatch"]["build"]["hooks"] == {"custom": {}}
    assert "tools/build_kernels.py" in (ROOT / "hatch_build.py").read_text("utf-8")


@pytest.mark.skipif(
    os.environ.get("CI") != "true", reason="whoever develops may have no C compiler"
)
def test_it_is_there_where_all_tests_run() -> None:
    """So that they test it."""
    assert library.library() is not None


def convolved() -> bytes:
    """A result for which threads help."""
    images = np.ones((1, 40, 40, 32), np.float32)
    filters = np.ones((3, 3, 32, 32), np.float32)
    result = Convolver(lambda _sizes: (Window(3), Window(3)))(images, filters)
    return b"" if result is None else result.tobytes()


def _tell(queue: object) -> None:
    queue.put(convolved())  # type: ignore[attr-defined]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of threads and forks
def test_the_child_of_a_fork_has_threads_of_its_own() -> None:
    """It does not wait for those of its parent."""
    before = convolved()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_tell, args=(queue,), daemon=True)
    child.start()
    assert queue.get(timeout=60) == before
    child.join(60)
    assert child.exitcode == 0


def test_numpy_does_the_same_without_it() -> None:
    """To the last bits but a few."""
    graph = ps.Graph()
    rng = np.random.default_rng(3)
    filters = rng.standard_normal((3, 3, 8, 24)).astype(np.float32)
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [None, None, None, 8], name="x")
        conv = ps.ops.conv_2d(x, ps.constant(filters), strides=[1, 2, 2, 1], padding="SAME")
        y = ps.ops.relu(ps.ops.bias_add(conv, ps.constant(np.float32(range(24)))))
    images = rng.standard_normal((2, 17, 13, 8)).astype(np.float32)
    found = []
    for accelerate in (False, True):
        with ps.Session(graph, config=ps.Config(accelerate=accelerate)) as session:
            found.append(session.run(y, {x: images}))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-5)


def test_it_is_not_loaded_before_it_is_needed() -> None:
    """Importing and small graphs do without."""
    program = (
        "import penstock as ps\n"
        "from penstock.kernels.c import library\n"
        "graph = ps.Graph()\n"
        "with graph.as_default():\n"
        "    total = ps.constant(1.0) + ps.placeholder(ps.dtypes.float32, [], name='x')\n"
        "with ps.Session(graph) as session:\n"
        "    session.run(total, {'x:0': 2.0})\n"
        "print(library.loaded.cache_info().currsize)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"0"
