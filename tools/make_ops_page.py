"""Write which ops there are, for which types, and what they compute, as ``docs/ops.md``.

In:   the kernels, the cases in ``tests``, and ``op_sentences.txt`` beside this file.
Out:  one row per op with a kernel, and the names of those without.
Not:  needs no TensorFlow.

    python tools/make_ops_page.py
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from pathlib import Path

from penstock.catalogue.registry import all_ops
from penstock.cli.ops import types_of
from penstock.kernels.api.registry import kernels_of, ops_with_kernels

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "ops.md"
#: What ops compute that share a maker with others.
SENTENCES = Path(__file__).with_name("op_sentences.txt")
HEADER = """\
# Ops

Which ops of TensorFlow have kernels, for which element types, what they compute, and in how
many of the recorded cases under `tests` they occur. Made by `tools/make_ops_page.py`; not
edited by hand. `penstock ops` prints the same for what is installed, `penstock ops --missing
model.pb` what a graph lacks.

{have} of {all} ops have kernels. {cased} of them occur in at least one case with TensorFlow's
own answer.

| op | element types | what it computes | cases |
| --- | --- | --- | --- |
"""


def page() -> str:
    """The whole page."""
    cases, known = case_counts(), ops_with_kernels()
    facts = {"have": len(known), "all": len(all_ops()), "cased": sum(op in cases for op in known)}
    rows = [f"| {op} | {types(op)} | {claim(op)} | {cases[op] or ''} |" for op in known]
    return HEADER.format(**facts) + "\n".join(rows) + "\n" + missing()


def types(op: str) -> str:
    return "; ".join(sorted(types_of(op)))


def claim(op: str) -> str:
    """What an op computes: its sentence, or the first line of its maker's docstring."""
    return (sentences().get(op) or docstring_of_maker(op)).replace("|", "\\|")


@functools.cache
def sentences() -> dict[str, str]:
    """The sentences of ``op_sentences.txt``, by op."""
    lines = SENTENCES.read_text("utf-8").splitlines()
    return dict(line.split("\t") for line in lines if not line.startswith("#"))


def docstring_of_maker(op: str) -> str:
    return (kernels_of(op)[0].make.__doc__ or "").strip().partition("\n")[0]


def case_counts() -> Counter[str]:
    """In how many cases each op occurs."""
    counts: Counter[str] = Counter()
    for path in (ROOT / "tests" / "corpus").glob("*/*/case.json"):
        counts.update(set(json.loads(path.read_text("utf-8"))["ops"]))
    for path in (ROOT / "tests" / "op_cases").glob("*.json"):
        for case in json.loads(path.read_text("utf-8")):
            counts.update(set(case["ops"]))
    return counts


def missing() -> str:
    """The ops without kernels, by the first letter."""
    names = sorted(set(all_ops()) - set(ops_with_kernels()))
    names = [name for name in names if not name.lstrip("_").startswith("Mkl")]
    initials = sorted({name.lstrip("_")[0].upper() for name in names})
    lines = ["", "## Without a kernel", "", "And all of oneDNN's own (`_Mkl…`).", ""]
    for initial in initials:
        here = [name for name in names if name.lstrip("_")[0].upper() == initial]
        lines += [f"**{initial}** " + " ".join(here), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
