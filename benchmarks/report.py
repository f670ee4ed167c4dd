"""How long it takes to make a report and to open it, and how large it is.

In:   four graphs: a recurrent one, a convolutional one, a large one, and one on two devices.
Out:  a table; the pages, if somebody wants to keep them.
Not:  compares with nobody: other tools give up long before 20,000 nodes.

    python -m benchmarks.report [--keep FOLDER]

*Made* is what the command takes: to load the graph, run a step, and write the page.  *Started*
has Python's start and all imports with it, in a process of its own.  *Opened* is the time from the
beginning of the navigation to the first picture, in a headless Chromium, if there is one.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from click.testing import CliRunner

import penstock as ps
from benchmarks.cases import ROOT, Case
from penstock.cli import main as main_command

NODES = 20_000


class Example(NamedTuple):
    """A graph, and what one step of it is."""

    name: str
    #: What ``penstock report`` is told, but for the page.
    arguments: tuple[str, ...]
    nodes: int


def examples(folder: Path) -> Iterator[Example]:
    """The graphs; a folder has place for those that are built."""
    yield _of_case("lstm", "lstm_infer", 78)
    yield _mobilenet()
    yield _large(folder)
    yield _of_case("two_devices", "two_devices", 2_001)


def _of_case(name: str, case_name: str, nodes: int) -> Example:
    case = Case.read(ROOT / "benchmarks" / "graphs" / case_name)
    arrays = case.folder / "feeds.npz"
    feeds = [f"--feed={tensor}={arrays}:{key}" for tensor, key in case.feeds.items()]
    fetches = [f"--fetch={tensor}" for tensor in case.fetches]
    graph = str(case.folder / "graph.pb")
    arguments = (graph, *feeds, *fetches, f"--devices={case.devices}", f"--title={name}")
    return Example(name, arguments, nodes)


def _mobilenet() -> Example:
    folder = ROOT / "tests" / "corpus" / "models" / "mobilenet_v2_035_96"
    feed = f"--feed=x:0={folder / 'tensors.npz'}:in0"
    options = ("--fetch=Identity:0", "--detail=inside", "--title=mobilenet_v2")
    return Example("mobilenet", (str(folder / "graph.pb"), feed, *options), 1_053)


def _large(folder: Path) -> Example:
    path = folder / "large.pb"
    graph = large_graph()
    path.write_bytes(ps.graph_to_def(graph).SerializeToString())
    arguments = (str(path), "--feed=x:0=[1,2,3,4]", "--fetch=out:0", "--title=20,000 nodes")
    return Example("20000_nodes", arguments, len(graph))


def large_graph(nodes: int = NODES) -> ps.Graph:
    """Blocks of layers of small nodes, each of which reads its neighbours in the layer before."""
    graph = ps.Graph()
    width, depth = 10, 10
    blocks = nodes // (4 * width * depth)
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [4], name="x")
        values = [x] * width
        for block in range(blocks):
            for layer in range(depth):
                with ps.name_scope(f"block_{block}/layer_{layer}"):
                    values = [_unit(values, at) for at in range(width)]
        ps.ops.add_n(values, name="out")
    return graph


def _unit(values: list[ps.Tensor], at: int) -> ps.Tensor:
    """Four nodes that keep values small."""
    with ps.name_scope(f"unit_{at}"):
        both = ps.ops.add(values[at], values[at - 1], name="add")
        scale = ps.constant(np.float32(0.5), name="scale")
        return ps.ops.tanh(ps.ops.mul(both, scale, name="mul"), name="tanh")


def make(example: Example, page: Path) -> float:
    """Make a page by the command, in this process; returns its seconds."""
    start = time.perf_counter()
    done = CliRunner().invoke(main_command, ["report", *example.arguments, "-o", str(page)])
    seconds = time.perf_counter() - start
    if done.exit_code:
        raise SystemExit(done.output)
    return seconds


def start(example: Example, page: Path) -> float:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "penstock", "report", *example.arguments, "-o", str(page)]
    before = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - before


def opening_seconds(page: Path) -> float | None:
    """How long a page takes to show its first picture; None without a browser."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415
    except ImportError:
        return None
    if chromium is None:
        return None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-state=ready]")
        found = tab.evaluate("performance.getEntriesByName('ready')[0].startTime")
        browser.close()
    return float(found) / 1000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="a folder for the pages")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    print("| graph | nodes | made, s | started, s | opened, s | MB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for example in examples(Path(temporary)):
            if asked.names and example.name not in asked.names:
                continue
            page = folder / f"{example.name}.html"
            made = min(make(example, page) for _ in range(asked.rounds))
            started = min(start(example, page) for _ in range(asked.rounds))
            openings = [opening_seconds(page) for _ in range(asked.rounds)]
            opened = min((one for one in openings if one is not None), default=None)
            shown = "–" if opened is None else f"{opened:.2f}"
            size = page.stat().st_size / 1e6
            seconds = f"{made:.2f} | {started:.2f} | {shown}"
            print(f"| `{example.name}` | {example.nodes:,} | {seconds} | {size:.2f} |", flush=True)


if __name__ == "__main__":
    main()
