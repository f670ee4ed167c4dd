"""The graph that a command is about: a file, or stdin.

In:   what stands for a graph on the command line.
Out:  a GraphDef; for what leads to no file, the error of wrong usage.
Not:  judges no content; ``defs`` does.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import click

from penstock.cli.advice import in_options
from penstock.cli.model_dir import is_saved_model
from penstock.defs.codec import load_graph_def, parse_graph_file
from penstock.defs.schema import Message
from penstock.errors import OpError
from penstock.saved_model.folder import ModelFolder
from penstock.saved_model.meta_graph import choose

#: What stands for stdin.
STDIN: Final = "-"


class GraphFile(click.Path):
    """The path of a file, or ``-``."""

    def __init__(self) -> None:
        super().__init__(allow_dash=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path, if there is a file; otherwise the command is used wrongly."""
        path = os.fsdecode(value)
        if path != STDIN and not os.path.isfile(path) and not is_saved_model(path):
            try:
                load_graph_def(path)
            except OpError as error:
                self.fail(error.worded(in_options(error.advice)), param, ctx)
        return path


def read_graph_def(path: str) -> Message:
    """The GraphDef of a file, of stdin, or of a SavedModel; raises OpError if it is none."""
    if path == STDIN:
        return parse_graph_file(sys.stdin.buffer.read(), title_of(path))
    if is_saved_model(path):
        return choose(ModelFolder(path).read(), None, path).graph_def
    return load_graph_def(path)


def title_of(path: str) -> str:
    """What to call the graph."""
    return "stdin" if path == STDIN else path
