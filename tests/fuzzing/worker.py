"""One worker: reads recipes, one per line, and writes what it does and what it finds.

In:   lines of JSON: a recipe.
Out:  lines of JSON: {"way": name, "patience": factor} before each run, then {"verdict": kind, ...}.
Not:  watches no clock; who started it does.

Whatever the graphs print goes nowhere, and files with relative names into a folder of its own.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from typing import Any, TextIO

from fuzzing.judge import judge
from fuzzing.recipe import Recipe
from fuzzing.running import Way
from fuzzing.verdict import Kind, Verdict


def work(memory: int) -> None:
    """Judge recipes until there are no more, with so many bytes of address space."""
    out = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for line in sys.stdin:
            _judge(Recipe.of(json.loads(line)), out)
        os.chdir("/")


def _judge(recipe: Recipe, out: TextIO) -> None:
    def say(**what: Any) -> None:
        print(json.dumps(what), file=out, flush=True)

    def watch(way: Way) -> None:
        say(way=way.name, patience=way.patience)

    say(way="making it", patience=1)
    mutant = recipe.mutant()
    if mutant is None:
        verdict = Verdict(Kind.AGREED, "no graph")
    else:
        verdict = judge(mutant, recipe.number, watch)
    trail = mutant.trail if mutant is not None else []
    say(verdict=verdict.kind.name, ending=verdict.ending, reason=verdict.reason, trail=trail)


if __name__ == "__main__":
    work(int(sys.argv[1]))
