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

from penstock.advice import (
    NO_INITIALIZER,
    Advice,
    AllowFiles,
    FeedIt,
    LookUpName,
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


def in_options(advice: str | Advice) -> str:
    """What to do next on the command line; empty if there is nothing to be done there."""
    match advice:
        case FeedIt(endpoint):
            return (
                f"feed it: --feed {as_command([endpoint])}=VALUE; --help says what a VALUE may be"
            )
        case MoreTime(instead=instead):
            return f"{or_else(instead)}allow more time by --timeout SECONDS"
        case RunInitializer(initializer, restorer, prefix):
            ways = []
            if restorer:
                options = ["--init", restorer, "--feed", f"{prefix}=PREFIX"]
                ways.append(f"restore a checkpoint: {as_command(options)}")
            if initializer:
                ways.append(f"initialize it: {as_command(['--init', initializer])}")
            return ", or ".join(ways) or NO_INITIALIZER
        case RunIt(node):
            return f"to run the node without fetching, give it as --target {as_command([node])}"
        case LookUpName(near):
            return f"{did_you_mean(near)}penstock show --nodes lists the graph's nodes"
        case RegisterOp(near):
            return (
                f"{did_you_mean(near)}install the package that brings the op; "
                "docs/add-an-op.md says how such a package is made"
            )
        case RegisterPyFunc(token):
            return (
                f"the function {token} is part of the program that made the graph; a Python "
                "program can supply it by penstock.register_py_func"
            )
        case AllowFiles(does):
            return f"without --no-files, graphs {does}"
        case RunUncompiled():
            return "please report it, with the graph"
        case RefuseSoftPlacement():
            return ""  # A choice of programs.
        case _:
            return str(advice)
