"""Commands as a user gives them, in this process.

In:   words of a command line.
Out:  what it says, and how it ends.
Not:  knows no command.
"""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner, Result

from penstock.cli import main


def penstock(*args: Any, **options: Any) -> Result:
    """What the command line does."""
    return CliRunner().invoke(main, list(map(str, args)), catch_exceptions=False, **options)


def printed(*args: Any) -> str:
    """What a command that works prints."""
    result = penstock(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(code: int, *args: Any) -> str:
    """What a command that fails says on stderr; nothing is on stdout, and no traceback."""
    result = penstock(*args)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr
