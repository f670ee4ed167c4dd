"""Builds the library of ``kernels/c`` out of its sources, where there is a C compiler.

    python tools/build_kernels.py

In:   ``CC``, or ``cc`` if that is not set.
Out:  the library beside the sources; or why there is none.
Not:  imports nothing of Penstock: ``hatch_build.py`` runs it before there is a package.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "penstock" / "kernels" / "c"
LIBRARY = SOURCES / "kernels.clib"
#: Kinds of vectors, by the object that has them: floats, and options of the compiler.
_AVX2 = ["-mavx2", "-mfma"]
_AVX512 = [*_AVX2, *(f"-mavx512{part}" for part in ("f", "vl", "dq", "bw"))]
_KINDS: dict[str, tuple[int, list[str]]] = {"penstock_plain": (4, [])}
_X86_64_KINDS: dict[str, tuple[int, list[str]]] = {
    "penstock_avx2": (8, _AVX2),
    "penstock_avx512": (16, [*_AVX512, "-mprefer-vector-width=512"]),
}
_OPTIONS = ["-std=gnu11", "-O3", "-fPIC", "-fvisibility=hidden", "-pthread"]
_OPTIONS += ["-ffp-contract=fast", "-fno-math-errno"]
#: Sources that are compiled once, and those that are compiled for each kind of vectors.
_ONCE = ["library", "programs", "pool", "boxes", "machine"]
_FOR_EACH_KIND = ["tiles", "winograd", "elements", "pooling", "softmax", "moments", "operations"]


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
    is_x86_64 = platform.machine() in ("x86_64", "AMD64")
    kinds = {**_KINDS, **(_X86_64_KINDS if is_x86_64 else {})}
    with tempfile.TemporaryDirectory(dir=library.parent, prefix=".building-") as folder:
        parts = [(name, name, ["-ffp-contract=off"]) for name in _ONCE]
        for name, (lanes, options) in kinds.items():
            options = [*options, f"-DLANES={lanes}", f"-DKIND={name}"]
            parts += [(source, f"{name}_{source}", options) for source in _FOR_EACH_KIND]
        for source, name, options in parts:
            made = ["-c", str(SOURCES / f"{source}.c"), "-o", f"{folder}/{name}.o"]
            problem = _run([*command, *_OPTIONS, *options, *made])
            if problem:
                return problem
        objects = [f"{folder}/{name}.o" for _, name, _ in parts]
        problem = _run([*command, "-shared", "-pthread", *objects, "-o", f"{folder}/made"])
        if not problem:
            Path(folder, "made").replace(library)
        return problem


def _run(command: list[str]) -> str:
    """What went wrong, or nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return f"{shlex.join(command)}: {done.stderr.strip()}" if done.returncode else ""


if __name__ == "__main__":
    sys.exit(build(os.environ.get("CC", "cc")) or 0)
