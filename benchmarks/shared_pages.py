"""How much memory several processes take that have one model.

    python -m benchmarks.shared_pages FOLDER [--processes 4]

Each process loads the model and calls it once; then all are looked at while they live.  Rss is what
each has in memory, Pss the same with every page divided by the number of processes that share it.
Linux only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks.load_models import _penstock


def memory(process: int) -> dict[str, float]:
    """Megabytes by what the system calls them."""
    with open(f"/proc/{process}/smaps_rollup", encoding="ascii") as file:
        rows = [line.split() for line in file][1:]
    return {words[0].rstrip(":"): int(words[1]) * 1024 / 1e6 for words in rows}


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        _penstock(args.folder, [])()
        print("ready", flush=True)
        sys.stdin.read()
        return
    command = [sys.executable, "-m", "benchmarks.shared_pages", args.folder, "--one"]
    processes: list[subprocess.Popen[str]] = []
    try:
        for count in range(1, args.processes + 1):
            processes.append(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            assert processes[-1].stdout is not None
            if processes[-1].stdout.readline() != "ready\n":
                raise SystemExit("a process ended")
            found = [memory(process.pid) for process in processes]
            rss, pss = (sum(one[key] for one in found) for key in ("Rss", "Pss"))
            print(f"{count} processes: Rss {rss:.0f} MB, Pss {pss:.0f} MB in all")
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
