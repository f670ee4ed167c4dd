"""Advice in the words of the command line: its options, not Python's arguments.

In:   the advice of an error or a warning.
Out:  text.
Not:  knows no error; what needs no words of its own is said as it is.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from functools import singledispatch

from penstock.advice import (
    Advice,
    AllowFiles,
    FeedIt,
    LookUpName,
    MoreMemory,
    MoreTime,
    RefuseSoftPlacement,
    RegisterOp,
    RegisterPyFunc,
    RunInitializer,
    RunIt,
    RunUncompiled,
    did_you_mean,
    or_else,
)


def as_command(words: Sequence[str]) -> str:
    """A command line that can be typed in."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


@singledispatch
def in_options(advice: str | Advice) -> str:
    """What to do next on the command line; empty if there is nothing to be done there."""
    return str(advice)


@in_options.register
def _(advice: FeedIt) -> str:
    return f"feed it: --feed {as_command([advice.endpoint])}=VALUE; --help says what that may be"


@in_options.register
def _(advice: MoreTime) -> str:
    return f"{or_else(advice.instead)}allow more time by --timeout SECONDS"


@in_options.register
def _(_advice: MoreMemory) -> str:
    return "feed less at once, or allow more by --max-memory SIZE"


@in_options.register
def _(advice: RunInitializer) -> str:
    ways = ["restore a checkpoint: --checkpoint PREFIX"]
    if advice.initializer:
        ways.append(f"initialize it: {as_command(['--init', advice.initializer])}")
    return ", or ".join(ways)


@in_options.register
def _(advice: RunIt) -> str:
    return f"to run the node without fetching, give it as --target {as_command([advice.node])}"


@in_options.register
def _(advice: LookUpName) -> str:
    return f"{did_you_mean(advice.near)}penstock show --nodes lists the graph's nodes"


@in_options.register
def _(advice: RegisterOp) -> str:
    return (
        f"{did_you_mean(advice.near)}install the package that brings the op; "
        "docs/add-an-op.md says how such a package is made"
    )


@in_options.register
def _(advice: RegisterPyFunc) -> str:
    return (
        f"the function {advice.token} is part of the program that made the graph; a Python "
        "program can supply it by penstock.register_py_func"
    )


@in_options.register
def _(advice: AllowFiles) -> str:
    return f"without --no-files, graphs {advice.does}"


@in_options.register
def _(_: RunUncompiled) -> str:
    return "please report it, with the graph"


@in_options.register
def _(_: RefuseSoftPlacement) -> str:
    return ""  # A choice of programs.
