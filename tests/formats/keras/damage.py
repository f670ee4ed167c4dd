"""Damaged files of Keras, and what reading and running them comes to; run as a program of its own.

    python -m formats.keras.damage FILE COUNT SEED

Half of the damaged forms of an archive are damage to a part of it, which is packed anew, so that no
checksum keeps it from the reader.  What was damaged without that, and is read all the same, must be
the undamaged model.

Prints one line of JSON: how often each kind of end came, and the longest time.  An end that is
neither an answer nor an OpError is printed with the number that makes it again, and so is one that
takes more than five seconds; a crash of the HDF5 library shows as a missing line.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import resource
import sys
import time
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import penstock as ps
from penstock.errors import OpError
from penstock.formats.keras import KerasGraph, read

#: Bytes of address space beyond those in use before the first file is read.
MORE_MEMORY = 1 << 30
#: Seconds for one file.
LONGEST = 5.0
#: Elements of an input that a damaged file may ask for.
LARGEST = 1 << 20


@dataclass(frozen=True)
class Whole:
    """A model's file before any damage."""

    content: bytes
    #: The parts of an archive by name; none of other files.
    parts: dict[str, bytes]

    @classmethod
    def of(cls, path: Path) -> Whole:
        """A file; parts of archives are stored plainly, so that damage reaches them."""
        content = path.read_bytes()
        if path.suffix == ".gz":
            return cls(gzip.decompress(content), {})
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        return cls(packed(parts), parts)

    def damaged(self, rng: random.Random) -> tuple[bytes, bool]:
        """A damaged form, and whether checksums guard it."""
        if not self.parts:
            return damaged(self.content, rng), False
        if rng.randrange(2):
            return damaged(self.content, rng), True
        name = rng.choice([name for name, content in self.parts.items() if content])
        return packed({**self.parts, name: damaged(self.parts[name], rng)}), False


def packed(parts: dict[str, bytes]) -> bytes:
    """An archive."""
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return stored.getvalue()


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The same with a few bits turned, a piece missing, or a piece put elsewhere."""
    made = bytearray(content)
    kind = rng.randrange(5)
    if kind == 0:
        return bytes(made[: rng.randrange(len(made))])
    if kind == 1:
        begin, end = sorted(rng.randrange(len(made)) for _ in range(2))
        target = rng.randrange(len(made))
        made[target : target + end - begin] = made[begin:end]
    elif kind == 2:
        begin = rng.randrange(len(made))
        del made[begin : begin + rng.randrange(1, 64)]
    elif kind == 3:
        begin = rng.randrange(len(made))
        made[begin : begin + 8] = rng.choice([b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7])
    else:
        for _ in range(rng.randrange(1, 9)):
            made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def end_of(content: bytes, expected: bytes | None = None) -> str:
    """What reading and one step come to: ``ran``, or the name of an error.

    ``changed`` is a model that is another than the expected one.
    """
    try:
        model = read(content)
        if expected is not None and bytes_of(model) != expected:
            return "changed"
        run(model)
    except OpError as error:
        return type(error).__name__
    return "ran"


def bytes_of(model: KerasGraph) -> bytes:
    """A model's graph, byte for byte."""
    return bytes(model.graph.as_graph_def().SerializeToString(deterministic=True))


def run(model: KerasGraph) -> None:
    """One step, on zeros or empty words; sizes that may be anything are small."""
    feeds = {}
    for given in model.inputs.values():
        sizes = [3 if size is None else size for size in given.shape.dims or ()]
        if np.prod(sizes, dtype=float) > LARGEST:
            return
        feeds[given.tensor] = np.full(sizes, b"" if given.dtype.name == "string" else 0)
    with ps.Session(model.graph) as session:
        session.run([made.tensor for made in model.outputs.values()], feeds)


def main(path: Path, count: int, seed: int) -> None:
    """Try ``count`` damaged forms of a file."""
    whole = Whole.of(path)
    expected = bytes_of(read(whole.content))
    end_of(whole.content)
    _limit_memory()
    ends: Counter[str] = Counter()
    longest = 0.0
    for number in range(count):
        content, is_guarded = whole.damaged(random.Random(f"{seed}/{number}"))
        begin = time.perf_counter()
        try:
            ends[end_of(content, expected if is_guarded else None)] += 1
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            ends["wrong"] += 1
            print(f"{path.name} {seed}/{number}: {type(error).__name__}: {error}", file=sys.stderr)
        spent = time.perf_counter() - begin
        longest = max(longest, spent)
        if spent > LONGEST:
            ends["late"] += 1
            print(f"{path.name} {seed}/{number}: {spent:.1f} s", file=sys.stderr)
    print(json.dumps({"ends": ends, "longest": longest}))


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MORE_MEMORY,) * 2)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
