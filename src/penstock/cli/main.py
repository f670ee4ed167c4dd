"""The group of commands, and the one border where errors become exit codes.

In:   the command line.
Out:  text on stdout; errors, without traceback, on stderr.
Not:  does nothing that the Python interface cannot do.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from typing import Any

import click

from penstock import __version__
from penstock.cli.advice import in_options
from penstock.cli.check import check_command
from penstock.cli.checkpoint import checkpoint
from penstock.cli.compare import compare_command
from penstock.cli.convert import convert
from penstock.cli.debug import debug_command
from penstock.cli.explain import explain_command
from penstock.cli.memory import memory_command
from penstock.cli.ops import ops
from penstock.cli.record import record_command
from penstock.cli.replay import replay_command
from penstock.cli.report import report_command
from penstock.cli.run import run
from penstock.cli.show import show
from penstock.cli.simulate import simulate
from penstock.cli.trace import trace_command
from penstock.cli.worker import worker
from penstock.errors import AdvisedWarning, OpError
from penstock.printable import printable_lines

_FAILED = 1
_INTERRUPTED = 130


class _Group(click.Group):
    """Reports Penstock's errors by their message alone."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except OpError as error:
            text = error.worded(in_options(error.advice))
            click.echo(f"{error.code.name}: {text}", err=True)
            sys.exit(_FAILED)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(_INTERRUPTED)


def _show_warning(message: Warning | str, *_where: Any, **_named: Any) -> None:
    """A warning as users want it: without the line of code that it comes from."""
    if isinstance(message, AdvisedWarning):
        message = message.worded(in_options(message.advice))
    click.echo(f"warning: {printable_lines(str(message))}", err=True)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="penstock")
@click.pass_context
def main(context: click.Context) -> None:
    """Run TensorFlow graphs without TensorFlow.

    \b
    Examples:
      penstock show model.pb
      penstock check model.pb
      penstock compare old.pb new.pb --fetch y --feed x:0=[1,2]
      penstock debug model.pb --fetch y --feed x:0=[1,2]
      penstock explain model.pb y --fetch y --feed x:0=[1,2]
      penstock run model.pb --feed images:0=batch.npy --fetch digit:0
      penstock trace model.pb --feed images:0=batch.npy --fetch digit:0 -o step.json
      penstock report model.pb --feed images:0=batch.npy --fetch digit:0 -o report.html
      penstock memory train.pb --init init --target train_step
      penstock record train.pb --init init --target train_step -o step.penstock-step
      penstock replay step.penstock-step --times 1000
      penstock ops --names
      penstock checkpoint list model.ckpt-7
      penstock worker --cluster worker=127.0.0.1:2222
      penstock simulate train.pb --target train --cluster ps=4x8,worker=1000x8
    """
    if os.environ.get("NO_COLOR"):  # https://no-color.org
        context.color = False
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the terminal's encoding lacks is shown as an escape, as stderr does it.
        sys.stdout.reconfigure(errors="backslashreplace")


main.add_command(run)
main.add_command(show)
main.add_command(check_command)
main.add_command(ops)
main.add_command(convert)
main.add_command(checkpoint)
main.add_command(compare_command)
main.add_command(debug_command)
main.add_command(explain_command)
main.add_command(worker)
main.add_command(simulate)
main.add_command(trace_command)
main.add_command(memory_command)
main.add_command(record_command)
main.add_command(replay_command)
main.add_command(report_command)
