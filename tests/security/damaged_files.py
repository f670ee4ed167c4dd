"""Damaged files of models and data: a clear error or the right answer, soon, in little memory.

    cd tests && python -m security.damaged_files checkpoint --count 2000 --seed 7
    cd tests && python -m security.damaged_files checkpoint --seed 7 --replay 1234

Each number is one damage.  What counts as a finding: an exception that is no OpError, an error that
calls itself our own mistake, an answer that is not that of the whole files where the format has
checksums, more than 5 seconds, more than 1 GB.

A new kind of file is a ``Subject`` in ``SUBJECTS``.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

import penstock as ps
from penstock.defs.sorted_table import read_table, write_table
from penstock.errors import NotFoundError, OpError
from security.attack import Finding, look_at_text
from security.damage import damaged
from support import saved_models
from support.tfjs_models import all_kinds

_SECONDS: Final = 5
_BYTES: Final = 1 << 30
_CHECKPOINTS: Final = Path(__file__).parents[1] / "checkpoint" / "files"
_RECORDS: Final = Path(__file__).parents[1] / "records" / "files"


@dataclass(frozen=True)
class Subject:
    """A kind of file, and how it is read."""

    #: The undamaged files of each sample, by their names; names may have folders.
    samples: Callable[[], list[dict[str, bytes]]]
    #: All that can be read of the files in a folder, by names; an OpError stands for itself.
    read: Callable[[Path], Mapping[str, Any]]
    #: Whether an answer, of a damaged sample and of the whole one, is acceptable.
    accepts: Callable[[Mapping[str, Any], Mapping[str, Any]], bool]


def run(subject: Subject, seed: int, numbers: range) -> Iterator[str]:
    """Attack a subject; yields what was found."""
    samples = subject.samples()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        answers = [_read(subject, folder, files) for files in samples]
        for number in numbers:
            draw = Random(f"{seed} {number}")
            at = draw.randrange(len(samples))
            files, words = damaged(samples[at], draw)
            try:
                with _limits():
                    found = _read(subject, folder, files)
            except Exception as error:  # noqa: BLE001  (whatever it is, it is a finding)
                yield f"{number} ({words}): {type(error).__name__}: {error}"
                continue
            if not subject.accepts(found, answers[at]):
                yield f"{number} ({words}): {_apart(found, answers[at])}"


def _read(subject: Subject, folder: Path, files: Mapping[str, bytes]) -> Mapping[str, Any]:
    """What the files say, or {"": why they say nothing}."""
    shutil.rmtree(folder)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    answer = tolerated(lambda: subject.read(folder))
    return {"": answer} if isinstance(answer, OpError) else answer


def tolerated(act: Callable[[], Any]) -> Any:
    """What something gives, or the OpError that it raises, which must be a clear one."""
    try:
        return act()
    except OpError as error:
        text = str(error)
        look_at_text(text)
        if "please report" in text or not error.reason:
            raise Finding(text) from error
        return error


@contextmanager
def _limits() -> Iterator[None]:
    """So much time, and so much memory more than at the beginning."""

    def too_late(*_: Any) -> None:
        raise Finding(f"more than {_SECONDS} seconds")

    with open("/proc/self/statm", encoding="ascii") as status:
        size = int(status.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, too_late)
    resource.setrlimit(resource.RLIMIT_AS, (size + _BYTES, hard))
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        signal.signal(signal.SIGALRM, before)


def _apart(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """The first thing in which two answers differ."""
    for name in sorted({*found, *expected}):
        one, other = found.get(name), expected.get(name)
        if not isinstance(one, OpError) and not same(one, other):
            return f"{name!r} is {str(one)[:80]} instead of {str(other)[:80]}"
    return "no answer"


# -- what answers are acceptable -----------------------------------------------------------


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal in type, shape and every bit."""
    if type(one) is not type(other):
        return False
    if not isinstance(one, (np.ndarray, np.generic)):
        return bool(one == other)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return (
        bool(np.array_equal(one, other))
        if one.dtype.hasobject
        else one.tobytes() == other.tobytes()
    )


def right_or_refused(found: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Each thing is what it was, or an error; or all of it is."""
    if list(found) == [""]:
        return isinstance(found[""], OpError)
    return set(found) == set(expected) and all(
        isinstance(value, OpError) or same(value, expected[name]) for name, value in found.items()
    )


def beginning_or_refused(found: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """As many records as there are are right, and then comes an error or the end."""
    values = list(found.values())
    if values and isinstance(values[-1], OpError):
        values.pop()
    return len(values) <= len(expected) and all(map(same, values, expected.values()))


def anything(found: Mapping[str, Any], _expected: Mapping[str, Any]) -> bool:
    """What has no checksums, or right ones, may say anything; there must be an answer."""
    return found is not None


# -- subjects ------------------------------------------------------------------------------


def _checkpoints() -> list[dict[str, bytes]]:
    """Names, several files, parts, objects; both versions.  The prefix is always ``ck``."""
    prefixes = ("names", "sharded", "parts", "objects/ckpt-3", "v1", "v1_parts")
    samples = []
    for prefix in prefixes:
        paths = [_CHECKPOINTS / prefix, *_CHECKPOINTS.glob(f"{prefix}.*")]
        samples.append(
            {
                path.name.replace(Path(prefix).name, "ck", 1): path.read_bytes()
                for path in paths
                if path.is_file()
            }
        )
    return samples


def _read_checkpoint(folder: Path) -> dict[str, Any]:
    found = ps.checkpoint.load(folder / "ck")
    answer = {name: tolerated(lambda name=name: found[name]) for name in found}
    for name in found:
        tolerated(lambda name=name: found.spec(name))
    graph = tolerated(found.object_graph)
    if isinstance(graph, ps.checkpoint.ObjectGraph):
        tolerated(lambda: list(graph.variables()))
    return answer


def _forged_checkpoints() -> list[dict[str, bytes]]:
    """The same with each entry of their tables in a file of its own, so that checksums fit."""
    samples = []
    for files in _checkpoints():
        table = "ck.index" if "ck.index" in files else "ck"
        entries = {f"{table}/k{key.hex()}": value for key, value in read_table(files.pop(table))}
        samples.append({**files, **entries})
    return samples


def _read_forged(folder: Path) -> dict[str, Any]:
    for path in [*folder.iterdir()]:
        if path.is_dir():
            entries = {bytes.fromhex(file.name[1:]): file.read_bytes() for file in path.iterdir()}
            shutil.rmtree(path)
            path.write_bytes(write_table(sorted(entries.items())))
    return _read_checkpoint(folder)


#: Models of both generations, with and without tables, assets, objects that are lists.
_MODELS: Final = ("several_signatures", "tables", "table_from_asset", "polymorphic", "simple_save",
                  "estimator", "partitioned")  # fmt: skip
#: Files of a sample by their names, which tell its model.
_NAME: Final = "name"


def _saved_models() -> list[dict[str, bytes]]:
    """All files of some models, and their names, which are damaged as well."""
    samples = []
    for name in _MODELS:
        root = saved_models.FOLDER / name / "model"
        files = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
        samples.append({**files, _NAME: name.encode()})
    return samples


def _read_saved_model(folder: Path) -> dict[str, Any]:
    """Everything that a model tells and does."""
    name = (folder / _NAME).read_bytes().decode("utf-8", "replace")
    calls = saved_models.recorded(name).calls if name in _MODELS else []
    answer = {"facts": tolerated(lambda: repr(ps.saved_model.describe(folder)))}
    # What a damaged graph does may take any time.
    config = ps.Config(operation_timeout_in_ms=1000)
    with ps.saved_model.load(folder, config=config) as model:
        for number, call in enumerate(calls):
            answer[str(number)] = tolerated(lambda call=call: repr(saved_models.made(model, call)))
        for path in model.variables:
            answer[f"variable {path}"] = tolerated(lambda path=path: model.variables[path])
        for signature in model.signatures:
            tolerated(lambda name=signature: ps.saved_model.freeze(model, name))
    return answer


def _model_values() -> list[dict[str, bytes]]:
    """Of the same models the files that have checksums: the values of variables."""
    return [
        {name: content for name, content in files.items() if name.startswith("variables/")}
        | {_NAME: files[_NAME]}
        for files in _saved_models()
    ]


def _read_model_values(folder: Path) -> dict[str, Any]:
    name = (folder / _NAME).read_bytes().decode("utf-8", "replace")
    if name not in _MODELS:
        return {"": NotFoundError("another name")}
    whole = saved_models.FOLDER / name / "model"
    for path in whole.rglob("*"):
        inner = path.relative_to(whole)
        if path.is_file() and inner.parts[0] != "variables":
            (folder / inner).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / inner)
    return _read_saved_model(folder)


def _records() -> list[dict[str, bytes]]:
    """Plain ones, packed ones, and examples."""
    return [{"records": path.read_bytes()} for path in sorted(_RECORDS.glob("[re][ex]*"))]


def _read_records(folder: Path) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    try:
        for record in ps.records.read(folder / "records"):
            answer[f"{len(answer):04}"] = record
    except OpError as error:
        answer["error"] = error
    for name in list(answer):
        if isinstance(answer[name], bytes):
            tolerated(lambda name=name: ps.records.decode_example(answer[name]))
    return answer


def _read_example(folder: Path) -> dict[str, Any]:
    """A message without a checksum."""
    content = (folder / "sequence").read_bytes()
    ps.records.decode_sequence_example(content)
    return dict(ps.records.decode_example(content))


def _tfjs_models() -> list[dict[str, bytes]]:
    """A small model with all that there is."""
    with tempfile.TemporaryDirectory() as name:
        folder = all_kinds(Path(name))
        return [{path.name: path.read_bytes() for path in folder.iterdir()}]


def _read_tfjs(folder: Path) -> dict[str, Any]:
    """Weights have no checksums, so other ones are no wrong answer."""
    with ps.load_model(folder, config=ps.Config(allow_files=False)) as model:
        signature = next(iter(model.signatures.values()))
        inputs = {name: ["a", "b"] if name == "words" else [1.0] for name in signature.inputs}
        tolerated(lambda: signature(**inputs))
        return {name: str(spec) for name, spec in signature.outputs.items()}


SUBJECTS: Final[dict[str, Subject]] = {
    "checkpoint": Subject(_checkpoints, _read_checkpoint, right_or_refused),
    "forged_checkpoint": Subject(_forged_checkpoints, _read_forged, anything),
    "saved_model": Subject(_saved_models, _read_saved_model, anything),
    "saved_model_values": Subject(_model_values, _read_model_values, right_or_refused),
    "records": Subject(_records, _read_records, beginning_or_refused),
    "tfjs": Subject(_tfjs_models, _read_tfjs, anything),
    "sequence_example": Subject(
        lambda: [{"sequence": (_RECORDS / "sequence").read_bytes()}], _read_example, anything
    ),
}


def main() -> int:
    """Run what the command line asks for; 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("subject", choices=SUBJECTS)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--replay", type=int, help="only the damage of this number")
    args = parser.parse_args()
    warnings.simplefilter("error")
    numbers = range(args.count) if args.replay is None else range(args.replay, args.replay + 1)
    findings = 0
    for text in run(SUBJECTS[args.subject], args.seed, numbers):
        findings += 1
        sys.stdout.write(text + "\n")
    sys.stdout.write(f"{args.subject}: {len(numbers)} damages, {findings} findings\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
