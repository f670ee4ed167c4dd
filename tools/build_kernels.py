"""Builds the library of ``kernels/c`` out of its sources, where there is a C compiler.

    python tools/build_kernels.py

In:   ``CC``, or ``cc`` if that is not set.
Out:  the library beside the sources; or why there is none.
Not:  imports nothing of Penstock: ``hatch_build.py`` runs it before there is a package.

A library says what it was made of: sources, options, and which compiler.  One that would be made of
the same again stays, so that whoever installs a second time does not wait for it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "penstock" / "kernels" / "c"
LIBRARY = SOURCES / "kernels.clib"
#: Kinds of vectors, by the object that has them: floats, and options of the compiler.
_AVX2 = ["-mavx2", "-mfma", "-mf16c"]
_AVX512 = [*_AVX2, *(f"-mavx512{part}" for part in ("f", "vl", "dq", "bw"))]
_KINDS: dict[str, tuple[int, list[str]]] = {"penstock_plain": (4, [])}
_X86_64_KINDS: dict[str, tuple[int, list[str]]] = {
    "penstock_avx2": (8, _AVX2),
    "penstock_avx512": (16, [*_AVX512, "-mprefer-vector-width=512"]),
}
_OPTIONS = ["-std=gnu11", "-O3", "-fPIC", "-fvisibility=hidden", "-pthread"]
_OPTIONS += ["-ffp-contract=fast", "-fno-math-errno"]
#: Sources that are compiled once, and those that are compiled for each kind of vectors.
_ONCE = ["library", "programs", "pool", "cores", "boxes", "machine", "blocks", "fingerprints"]
_FOR_EACH_KIND = ["tiles", "winograd", "correlation", "strips", "elements", "pooling", "softmax"]
_FOR_EACH_KIND += ["moments", "segments", "philox", "resizing", "operations", "factors", "narrow"]
_FOR_EACH_KIND += ["columns", "optimisers", "extremes", "short_rows", "crops", "colors", "weighing"]


#: Of a source of those compiled once, or of a kind: its name, that of its object, and options.
_Part = tuple[str, str, list[str]]


def build(compiler: str, library: Path = LIBRARY) -> str:
    """Build the library; returns why there is none, or nothing.

    Args:
        compiler: a command, perhaps with options.
        library: where to put it, as a whole: others may use what is there meanwhile.

    """
    problem = _build(shlex.split(compiler), library)
    if problem:
        library.unlink(missing_ok=True)
    return problem


def _build(command: list[str], library: Path) -> str:
    if sys.platform == "win32" or not command or shutil.which(command[0]) is None:
        return f"there is no C compiler {shlex.join(command)}"
    made_of = _made_of(command)
    if library.exists() and made_of.encode() in library.read_bytes():
        return ""
    parts = _parts(made_of)
    with tempfile.TemporaryDirectory(dir=library.parent, prefix=".building-") as folder:

        def compile_part(part: _Part) -> str:
            source, name, options = part
            made = ["-c", str(SOURCES / f"{source}.c"), "-o", f"{folder}/{name}.o"]
            return _run([*command, *_OPTIONS, *options, *made])

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            problem = next(filter(None, threads.map(compile_part, parts)), "")
        objects = [f"{folder}/{name}.o" for _, name, _ in parts]
        problem = problem or _run(
            [*command, "-shared", "-pthread", *objects, "-o", f"{folder}/made"]
        )
        if not problem:
            Path(folder, "made").replace(library)
        return problem


def _made_of(command: list[str]) -> str:
    """What tells a library from one of other sources, other options or another compiler."""
    digest = hashlib.sha256(f"{command} {platform.machine()}".encode())
    try:
        asked = [*command, "--version"]
        version = subprocess.run(asked, capture_output=True, check=False, timeout=300).stdout
    except (OSError, subprocess.SubprocessError):
        version = b""  # what is wrong shows when it is to compile
    digest.update(version)
    for path in (Path(__file__), *sorted(SOURCES.glob("*.[ch]"))):
        digest.update(path.read_bytes())
    return f"made of {digest.hexdigest()}"


def _parts(made_of: str) -> list[_Part]:
    """All that is compiled."""
    told = f'-DPENSTOCK_MADE_OF="{made_of}"'
    parts = [(name, name, ["-ffp-contract=off", told]) for name in _ONCE]
    is_x86_64 = platform.machine() in ("x86_64", "AMD64")
    for name, (lanes, options) in {**_KINDS, **(_X86_64_KINDS if is_x86_64 else {})}.items():
        options = [*options, f"-DLANES={lanes}", f"-DKIND={name}"]
        parts += [(source, f"{name}_{source}", options) for source in _FOR_EACH_KIND]
    return parts


def _run(command: list[str]) -> str:
    """What went wrong, or nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return f"{shlex.join(command)}: {done.stderr.strip()}" if done.returncode else ""


if __name__ == "__main__":
    sys.exit(build(os.environ.get("CC", "cc")) or 0)
