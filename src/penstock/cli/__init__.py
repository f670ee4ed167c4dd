"""The command line: ``penstock run``, ``penstock show``, ``penstock ops``.

Exit codes: 0 it worked; 1 the graph or the step failed; 2 the command was used wrongly;
130 Ctrl-C.
"""

from penstock.cli.main import main

__all__ = ["main"]
