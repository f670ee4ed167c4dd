"""There is one way to files, and none around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).parents[2] / "src" / "penstock"
#: The way itself, and those who have their own: the command line opens what its user names.
FREE: Final = {"core/files.py"}
MODULES: Final = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if (name := path.relative_to(SOURCE).as_posix()) not in FREE and not name.startswith("cli/")
]
#: Modules that reach files and processes.
BANNED: Final = {
    "fileinput", "glob", "linecache", "mmap", "multiprocessing", "pathlib", "pickle", "runpy",
    "shelve", "shutil", "sqlite3", "subprocess", "tarfile", "tempfile", "urllib", "zipfile",
}  # fmt: skip
#: What of ``os`` touches no file: names, numbers of processes and of cores, the environment.
HARMLESS: Final = {
    "PathLike", "cpu_count", "environ", "fsdecode", "fsencode", "fspath", "fstat", "getpid",
    "register_at_fork", "sched_getaffinity", "sysconf", "urandom",
    "path.basename", "path.dirname", "path.isabs", "path.join", "path.normpath", "path.split",
    "path.splitext",
}  # fmt: skip
#: Functions of numpy that read or write files.
NUMPY: Final = {
    "fromfile", "fromregex", "genfromtxt", "load", "loadtxt", "memmap", "save", "savetxt", "savez",
    "savez_compressed", "tofile",
}  # fmt: skip
#: Modules with harmless parts, whose ``open`` is not.
OPENERS: Final = {"bz2", "codecs", "gzip", "io", "lzma", "zlib"}
CALLS: Final = {"open", "eval", "exec", "compile", "__import__"}
#: Who does so all the same, and why that is no way around.
REASONS: Final = {
    ("defs/file_kinds.py", "tarfile"): "reads bytes",
    ("defs/file_kinds.py", "zipfile"): "reads bytes",
    ("formats/keras/archive.py", "zipfile"): "reads bytes",
    (
        "cluster/carriers/local_processes.py",
        "subprocess",
    ): "a task is a process that no graph names",
    ("cluster/carriers/local_processes.py", "pathlib"): "what tasks write to their output",
    ("cluster/carriers/local_processes.py", "shutil"): "the folder of that, in the end",
    ("cluster/carriers/local_processes.py", "tempfile"): "the folder of that",
    ("comparison/find_nan.py", "np.savez"): "writes bytes in memory",
    ("debugger/look_commands.py", "np.save"): "writes bytes in memory",
    ("core/forks.py", "os.write"): "tells stderr why a child ends",
    ("core/forks.py", "os._exit"): "ends a child in which nobody waits for anything",
    ("core/memory.py", "open"): "asks the system how much memory there is",
    ("kernels/parallel/blas.py", "pathlib"): "looks for the library that numpy brought along",
    ("defs/bundle_reader.py", "np.fromfile"): "reads a file that is open already",
    ("session/tree_file.py", "zipfile"): "reads and writes bytes",
    ("runtime/compiler/source.py", "linecache"): "shows generated code in tracebacks",
    ("runtime/compiler/source.py", "compile"): "compiles generated code",
    ("runtime/compiler/source.py", "exec"): "compiles generated code",
}


def reaches(tree: ast.Module) -> Iterator[str]:
    """Whatever in a module could reach a file."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from ({alias.name.partition(".")[0] for alias in names} & BANNED)
            case ast.ImportFrom(module=str(module), names=names):
                yield from {module.partition(".")[0]} & (BANNED | {"os"})
            case ast.Call(ast.Name(name)) if name in CALLS:
                yield name
            case ast.Attribute(ast.Name("os"), name) if name not in HARMLESS | {"path"}:
                yield f"os.{name}"
            case ast.Attribute(ast.Attribute(ast.Name("os"), "path"), name):
                yield from {f"path.{name}"} - HARMLESS
            case ast.Attribute(ast.Name(module), "open" | "FileIO") if module in OPENERS:
                yield f"{module}.open"
            case ast.Attribute(ast.Name("np"), name) if name in NUMPY:
                yield f"np.{name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_nothing_opens_files_by_itself(path: Path) -> None:
    """Kernels, and all that they are made of, reach files through ``core.files`` only."""
    name = path.relative_to(SOURCE).as_posix()
    found = {f"{name}: {what}" for what in reaches(ast.parse(path.read_text("utf-8")))}
    excused = {f"{name}: {what}" for module, what in REASONS if module == name}

    assert found == excused


@pytest.mark.parametrize(
    "text",
    [
        "import tempfile",
        "import numpy as np, mmap",
        "from pathlib import Path",
        "from os import listdir",
        "import urllib.request",
        "open('x')",
        "os.open('x', 0)",
        "os.path.exists('x')",
        "np.fromfile('x')",
        "np.memmap",
        "io.open(x)",
        "gzip.open(x)",
        "eval(text)",
    ],
)
def test_ways_around_are_noticed(text: str) -> None:
    """The test above sees what it is meant to see."""
    assert list(reaches(ast.parse(text)))


def test_harmless_things_are_left_alone() -> None:
    """Names of files may be taken apart, and joined."""
    text = "import os\nos.fsdecode(x)\nos.path.dirname(x)\nfiles.open(x)\nre.compile(x)"

    assert list(reaches(ast.parse(text))) == []
