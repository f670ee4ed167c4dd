"""Damaged files of Keras, and what reading them comes to; run as a program of its own.

    python -m formats.keras.damage FILE COUNT SEED

Prints one line of JSON: how often each kind of end came, the longest time, the most memory.  An end
that is neither an answer nor an OpError is printed with the number that makes it again, and so is
one that takes more than five seconds; a crash of the HDF5 library shows as a missing line.
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
from pathlib import Path

from penstock.errors import OpError
from penstock.formats.keras import read

#: Bytes of address space beyond those in use before the first file is read.
MORE_MEMORY = 1 << 30
#: Seconds for one file.
LONGEST = 5.0


def content_of(path: Path) -> bytes:
    """A model's file; parts of archives are stored plainly, so that damage reaches them."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(content)
    stored = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stored, "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info))
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


def end_of(content: bytes) -> str:
    """What reading comes to: ``read``, or the name of an error."""
    try:
        read(content)
    except OpError as error:
        return type(error).__name__
    return "read"


def main(path: Path, count: int, seed: int) -> None:
    """Try ``count`` damaged forms of a file."""
    whole = content_of(path)
    end_of(whole)
    _limit_memory()
    ends: Counter[str] = Counter()
    longest = 0.0
    for number in range(count):
        content = damaged(whole, random.Random(f"{seed}/{number}"))
        begin = time.perf_counter()
        try:
            ends[end_of(content)] += 1
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
