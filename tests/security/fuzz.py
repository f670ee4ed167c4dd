"""A coverage-guided fuzzer: damaged graphs are loaded, shown or run, and nothing else may happen.

    cd tests && python -m security.fuzz load --seconds 600
    cd tests && python -m security.fuzz load run show --seconds 600     side by side

Needs atheris (the extra ``fuzz``).  Inputs are bytes of GraphDefs; it begins with the small graphs
of the corpus and with ``fuzz_corpus``: what was found earlier, and what reaches code that nothing
else does.  Half of its mutations are of bytes, half of what a graph means: another text, number or
input somewhere in a message.

A finding ends the process with a file ``crash-…``, which ``--replay FILE`` runs again.  What counts
as one: an exception that is no OpError, an error that calls itself our own mistake, code of the
graph that runs or gets to Python's compiler, more than 4 GB, more than 20 seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import atheris

with atheris.instrument_imports(include=["penstock"]):
    import penstock as ps
    from penstock.cli import main as command_line
    from penstock.core.values import Array
    from penstock.defs.schema import GraphDef

import numpy as np
from click.testing import CliRunner
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from penstock.errors import OpError
from penstock.session.feeds import declared_shape
from security.attack import Finding, look_at_text, look_for_any_code, watch
from security.payloads import PAYLOADS
from security.slots import slots_of
from support.corpus import all_cases

#: Graphs that are larger teach the fuzzer nothing that smaller ones do not, and are slow.
_LARGEST: Final = 8_000
#: As many nodes are fetched, and as many elements fed, at the most.
_FETCHED, _FED = 20, 4096
#: Whoever waits for what nobody brings does so for as long.
_LIMIT: Final = ps.RunOptions(timeout_in_ms=100)
_CONFIG: Final = ps.Config(allow_files=False, accelerate=False)
_INTEGERS: Final = (0, 1, -1, 2, 7, 2**31 - 1, 2**31, -(2**31), 2**62, -(2**63), 2**63 - 1)
_KEPT: Final = Path(__file__).parent / "fuzz_corpus"


# -- what is done with a graph ----------------------------------------------------------------


def load(content: bytes) -> None:
    """Read and check it."""
    _session(content).close()


def run(content: bytes) -> None:
    """Run what nobody in it uses, with zeros for its placeholders."""
    with _session(content) as session:
        graph = session.graph
        feeds = {f"{n.name}:0": _zeros(graph, n) for n in graph if n.op.name == "Placeholder"}
        used = {edge.src for node in graph for edge in node.in_edges()}
        ends = [node for node in graph if node not in used][:_FETCHED]
        fetches = [f"{node.name}:0" if node.output_types else node.name for node in ends]
        for fetch in (*fetches[:3], fetches):
            if fetch:
                _tolerated(lambda fetch=fetch: session.run(fetch, feeds, _LIMIT))


def show(content: bytes) -> None:
    """Print what is in it, and the code that it is compiled to."""
    path = Path("shown.pb")
    path.write_bytes(content)
    for options in (["--nodes"], ["--python"]):
        result = CliRunner().invoke(command_line, ["show", *options, str(path)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise Finding(f"show {options}: {result.exception!r}") from result.exception
        look_at_text(result.output)


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {"load": load, "run": run, "show": show}


def _session(content: bytes) -> ps.Session:
    return ps.Session(ps.load_graph_def(content, max_bytes=1 << 26), config=_CONFIG)


def _zeros(graph: Any, node: Any) -> Array:
    """Something to feed: as many zeros as the placeholder says, or one."""
    dims = [
        2 if size is None or size < 0 else size for size in declared_shape(graph, node).dims or ()
    ]
    dtype = node.output_types[0].base.numpy
    array: Array = np.zeros(dims if np.prod(dims, dtype=object) <= _FED else (), dtype)
    if array.dtype.hasobject:
        array[...] = b""
    return array


def _tolerated(act: Callable[[], Any]) -> None:
    """What an OpError ends is as it should be, unless it calls itself our mistake."""
    try:
        act()
    except OpError as error:
        look_at_text(str(error))
        if "please report" in str(error):
            raise Finding(str(error)) from error


# -- mutations ----------------------------------------------------------------------------------


def mutated(data: bytes, most: int, seed: int) -> bytes:
    """Another input: other bytes, or a graph that means something else."""
    draw = random.Random(seed)
    graph = GraphDef()
    if draw.random() < 0.5:
        return bytes(atheris.Mutate(data, most))
    try:
        graph.ParseFromString(data)
        for _ in range(draw.choice((1, 1, 1, 2, 4))):
            draw.choice(_MUTATIONS)(graph, draw)
        content: bytes = graph.SerializeToString()
    except (DecodeError, ValueError, UnicodeError, IndexError, OverflowError):
        return bytes(atheris.Mutate(data, most))
    return content if len(content) <= most else data


def _other_text(graph: Any, draw: random.Random) -> None:
    texts = [payload for payload in PAYLOADS if len(payload) < 1_000]
    slot = draw.choice(list(slots_of(graph)))
    slot.put(draw.choice(texts) if draw.random() < 0.7 else draw.choice(list(slots_of(graph))).text)


def _other_number(graph: Any, draw: random.Random) -> None:
    message, field = draw.choice(list(_numbers_of(graph)))
    value = getattr(message, field.name)
    number = draw.choice(_INTEGERS)
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        number = draw.choice((0.0, -0.0, 1e38, -1.0, float("inf"), float("nan")))
    if isinstance(value, (int, float)):
        setattr(message, field.name, number)
    else:
        value[draw.randrange(len(value))] = number


def _numbers_of(message: Any) -> Any:
    """Every number of a message and of what is in it."""
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            if field.message_type.GetOptions().map_entry:
                parts = [part for part in value.values() if isinstance(part, Message)]
            else:
                parts = [value] if isinstance(value, Message) else list(value)
            for part in parts:
                yield from _numbers_of(part)
        elif field.type not in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
            yield message, field


def _other_input(graph: Any, draw: random.Random) -> None:
    node = draw.choice(graph.node)
    source = draw.choice(graph.node).name
    node.input[draw.randrange(len(node.input))] = draw.choice(("", "^")) + source


def _without_node(graph: Any, draw: random.Random) -> None:
    del graph.node[draw.randrange(len(graph.node))]


def _twice(graph: Any, draw: random.Random) -> None:
    copy = graph.node.add()
    copy.CopyFrom(draw.choice(graph.node))
    copy.name += "_"


def _other_op(graph: Any, draw: random.Random) -> None:
    draw.choice(graph.node).op = draw.choice(graph.node).op


def _without_attr(graph: Any, draw: random.Random) -> None:
    attrs = draw.choice(graph.node).attr
    del attrs[draw.choice(sorted(attrs))]


_MUTATIONS: Final = (
    _other_text, _other_number, _other_input, _without_node, _twice, _other_op, _without_attr,
)  # fmt: skip


# -- the fuzzer -----------------------------------------------------------------------------------


def seeds(folder: Path) -> None:
    """Write what the fuzzer begins with into a new folder."""
    folder.mkdir()
    for case in all_cases():
        if len(case.graph_bytes) <= _LARGEST:
            (folder / f"{case.category}-{case.name}").write_bytes(case.graph_bytes)
    for path in _KEPT.glob("*"):
        shutil.copy(path, folder)


def attempt_of(target: str) -> Callable[[bytes], None]:
    """What is done with an input, and then looked for."""
    act = TARGETS[target]

    def attempt(data: bytes) -> None:
        _tolerated(lambda: act(data))
        look_for_any_code(Path())

    return attempt


def fuzz(target: str, options: list[str], kept: list[str]) -> None:
    """Fuzz in this folder until the time is up or something is found; ends the process."""
    watch()
    seeds(Path("seeds"))
    arguments = [sys.argv[0], *options, *kept, "seeds"]
    atheris.Setup(arguments, attempt_of(target), custom_mutator=mutated)
    atheris.Fuzz()


def _child(target: str, folder: Path, options: list[str], kept: list[str]) -> int:
    """A process that does so, in a new folder: what a graph writes by its name appears there."""
    folder.mkdir()
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        fuzz(target, options, kept)
    return child


def main() -> None:
    """Fuzz as the command line says; the exit status is not 0 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="+", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="0 draws one")
    parser.add_argument("--replay", type=Path, help="do this input alone")
    parser.add_argument("--keep", type=Path, help="a folder for inputs that reach something new")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        if args.replay is not None:
            content = args.replay.read_bytes()
            watch()
            with contextlib.chdir(folder):
                for target in args.targets:
                    attempt_of(target)(content)
            return
        kept = [str(here / args.keep)] if args.keep else []
        for path in kept:
            Path(path).mkdir(parents=True, exist_ok=True)
        options = [
            f"-max_total_time={args.seconds}", f"-seed={args.seed}", f"-max_len={2 * _LARGEST}",
            "-timeout=20", "-rss_limit_mb=4096", f"-artifact_prefix={here}/",
            "-print_final_stats=1",
        ]  # fmt: skip
        # A fuzzer ends its process by itself, and would leave the folder behind.
        children = [_child(target, Path(folder, target), options, kept) for target in args.targets]
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.exit(next(filter(None, statuses), 0))


if __name__ == "__main__":
    main()
