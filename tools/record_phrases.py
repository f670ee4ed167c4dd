"""Note in recorded cases what TensorFlow's errors say, where only their codes are noted.

    python tools/record_phrases.py

In:   the cases of ``tests/corpus`` and ``tests/op_cases``, an installed TensorFlow, and Penstock.
Out:  for each step that is an error, the key phrase: the longest run of words that the first
      line of TensorFlow's message has, and Penstock's message, too.
Not:  changes no phrase that is there; notes none of fewer than three words, unless it is all that
      TensorFlow says.  ``tests/test_error_phrases.py`` lists those, and says why.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import json
import os
import re
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

with contextlib.suppress(ImportError):
    importlib.import_module("pytest")
sys.modules.setdefault("pytest", types.ModuleType("pytest"))  # cases can be read without it

import tensorflow as tensorflow_2  # noqa: E402

import penstock as ps  # noqa: E402
from cases_src.python_functions import FUNCTIONS  # noqa: E402
from support.corpus import Case, all_cases  # noqa: E402
from support.op_cases import ROOT as OP_CASES  # noqa: E402
from support.op_cases import OpCase  # noqa: E402

tf = tensorflow_2.compat.v1
_FEWEST = 3


def main() -> None:
    ps.register_py_func(FUNCTIONS)
    for case in all_cases():
        expected = [step["expect"] for step in case.steps]
        if phrases := dict(phrases_for(case, case.meta, [_is_open(e) for e in expected])):
            for number, phrase in phrases.items():
                expected[number]["message_has"] = [phrase]
            path = case.path / "case.json"
            end = "\n" * path.read_text("utf-8").endswith("\n")
            path.write_text(json.dumps(case.meta, indent=1) + end, "utf-8")
    for path in sorted(OP_CASES.glob("*.json")):
        records = json.loads(path.read_text("utf-8"))
        phrases = {}
        for record in records:
            is_open = ["error" in step and "says" not in step for step in record["steps"]]
            phrases = dict(phrases_for(OpCase(path.stem, record), {}, is_open))
            for number, phrase in phrases.items():
                record["steps"][number]["says"] = phrase
        text = "[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n"
        if text != path.read_text("utf-8"):
            path.write_text(text, "utf-8")


def _is_open(expect: dict[str, Any]) -> bool:
    return "error" in expect and not expect.get("message_has")


def phrases_for(
    case: Case | OpCase, meta: dict[str, Any], is_open: list[bool]
) -> Iterator[tuple[int, str]]:
    """Key phrases of the steps that have none."""
    if not any(is_open):
        return
    settings = {
        "device_count": meta.get("device_count") or {},
        "allow_soft_placement": bool(meta.get("allow_soft_placement")),
    }
    theirs, ours = said_by_tensorflow(case, settings), said_by_penstock(case, settings)
    for number in (number for number, is_wanted in enumerate(is_open) if is_wanted):
        one, other = theirs.get(number, ""), ours.get(number, "")
        phrase = in_common(one, other)
        if phrase and (phrase == one or len(phrase.split()) >= _FEWEST):
            yield number, phrase
        else:
            print(f"{case}, step {number}:\n    {one}\n    {other.partition(chr(10))[0]}")


def in_common(one: str, other: str) -> str:
    """The longest run of words that the first text has as the second, spaces included."""
    if one and one.lower() in other.lower():
        return one
    pieces = [re.split(r"(\s+)", text) for text in (one, other)]
    lower = [[piece.lower() for piece in some] for some in pieces]
    found = difflib.SequenceMatcher(None, *lower, autojunk=False).find_longest_match()
    return "".join(pieces[0][found.a : found.a + found.size]).strip()


def said_by_tensorflow(case: Case | OpCase, settings: dict[str, Any]) -> dict[int, str]:
    """The first lines of TensorFlow's messages, by step."""
    proto = tf.ConfigProto(intra_op_parallelism_threads=1, **settings)
    proto.graph_options.rewrite_options.disable_meta_optimizer = True
    proto.graph_options.optimizer_options.opt_level = -1
    folder, said = tempfile.mkdtemp().encode(), {}
    try:
        graph_def = tf.GraphDef()
        graph_def.ParseFromString(case.graph_bytes)
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(graph_def, name="")
    except Exception as error:  # noqa: BLE001  (each part of TensorFlow has classes of its own)
        return {0: first_line(str(error))}
    with tf.Session(graph=graph, config=proto) as session:
        for number, step in enumerate(case.steps):
            try:
                targets = [graph.get_operation_by_name(name) for name in step.get("targets", ())]
                session.run([list(step.get("fetches", ())), targets], case.feeds(step, folder))
            except tf.errors.OpError as error:
                said[number] = first_line(error.message)
            except Exception as error:  # noqa: BLE001  (Python's part of TensorFlow)
                said[number] = first_line(str(error))
    return said


def first_line(message: str) -> str:
    """What a message says, without where."""
    said = re.split(r"\nNode: '.*'\n", message)[-1].partition("\n\t [[")[0]
    said = said.removeprefix("Graph execution error:").strip()
    return re.sub(r"\{\{.*?\}\} ?", "", said).partition("\n")[0].strip()


def said_by_penstock(case: Case | OpCase, settings: dict[str, Any]) -> dict[int, str]:
    """Penstock's messages, by step."""
    folder, said = tempfile.mkdtemp().encode(), {}
    try:
        session = ps.Session(case.graph_bytes, config=ps.Config(**settings))
    except ps.errors.OpError as error:
        return {0: error.message}
    with session:
        for number, step in enumerate(case.steps):
            names = [*step.get("fetches", ()), *step.get("targets", ())]
            try:
                session.run(names, case.feeds(step, folder))
            except ps.errors.OpError as error:
                said[number] = error.message
    return said


if __name__ == "__main__":
    main()
