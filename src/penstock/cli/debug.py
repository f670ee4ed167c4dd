"""``penstock debug``: run a step by hand."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from penstock.cli.advice import in_options
from penstock.cli.request import Request, request_options
from penstock.errors import InvalidArgumentError, NotFoundError, OpError
from penstock.exceptions import shown_cause

_MEGA = 1 << 20


@click.command("debug", short_help="Run a step of GRAPH by hand: stop, look, change, go on.")
@request_options
@click.option("-c", "--command", "commands", multiple=True, metavar="LINE",
              help="Do this first; may be repeated.")  # fmt: skip
@click.option("--batch", is_flag=True, help="Do what --command says, and ask nobody.")
@click.option("--filter", "filters", multiple=True, metavar="FILE.py:FUNCTION",
              help="A filter of one's own, for run -f FUNCTION.")  # fmt: skip
@click.option("--memory", type=click.IntRange(min=1), default=1024, show_default=True, metavar="MB",
              help="Remember values of so many megabytes.")  # fmt: skip
def debug_command(**options: Any) -> None:
    """Run a step of GRAPH by hand: stop at nodes, look at tensors, change them, go on.

    The commands are tfdbg's where it has them: run -f has_inf_or_nan, lt, pt, ni -t, li, lo, s,
    cont, inject_value; help lists all. The graph is run as it was written, without the optimiser,
    and with functions in the places where they are called. docs/debug.md tells more.

    Without a terminal, lines of stdin are commands. With --batch, the exit status is 1 if one of
    them could not be done. Files that --filter and override name are Python programs, and are run.

    \b
    Examples:
      penstock debug model.pb --feed x:0=[1,2] --fetch y:0
      penstock debug model.pb --feed x:0=[1,2] --fetch y:0 --batch -c "run -f has_inf_or_nan" -c li
      penstock debug model.pb --feed x:0=[1,2] --fetch y:0 --batch -c "find_nan folder"
    """
    # Few commands need it.
    from penstock.debugger.command import Console  # noqa: PLC0415
    from penstock.debugger.debug import as_written  # noqa: PLC0415
    from penstock.debugger.debugger import Debugger  # noqa: PLC0415
    from penstock.debugger.prompt import interact, work_off  # noqa: PLC0415

    request = Request.of(options)
    request = dataclasses.replace(request, config=as_written(request.config))
    filters = {text.rpartition(":")[2]: load_function(text) for text in options["filters"]}
    with request.opened() as opened:
        if not opened.wanted:
            raise click.UsageError("--init alone leaves nothing to debug: give --fetch or --target")
        memory = options["memory"] * _MEGA
        with Debugger(
            opened.session, opened.wanted, opened.feeds, memory=memory, filters=filters
        ) as debugger:
            console = Console(debugger, load_function, _worded)
            if not options["batch"]:
                interact(console, options["commands"])
            elif not work_off(console, options["commands"]):
                sys.exit(1)


def _worded(error: OpError) -> str:
    return error.worded(in_options(error.advice))


def load_function(text: str) -> Callable[..., Any]:
    """The function that ``FILE.py:NAME`` means; the file is run.

    Raises:
        InvalidArgumentError: that is none, or the file fails.
        NotFoundError: there is no such file.

    """
    path, _, name = text.rpartition(":")
    if not path.endswith(".py"):
        raise InvalidArgumentError(f"{text} is no function", next_step="write FILE.py:FUNCTION")
    if not Path(path).is_file():
        raise NotFoundError(f"There is no file {path}")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as cause:  # noqa: BLE001  (whatever a program of somebody's own does)
        raise InvalidArgumentError(f"{path} fails: {cause}") from shown_cause(cause)
    function = getattr(module, name, None)
    if not callable(function):
        raise InvalidArgumentError(f"{path} has no function {name}")
    return function  # type: ignore[no-any-return]  # it is somebody's own
