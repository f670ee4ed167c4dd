"""A program at a real terminal, of which this process is the keyboard and the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

#: What moves the cursor, colours and titles; what is left is the text.
ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])"
)
#: Longer than anything takes, on however busy a machine.
PATIENCE = 90.0
ROWS, COLUMNS = 50, 200


class Terminal:
    """A program whose standard streams are a terminal of its own."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str] = {}) -> None:
        self._screen, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        given = {
            **os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "NO_COLOR": "1", **env,
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", _OWN_TERMINAL, *command],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=given,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        #: What was written and not yet expected, with its escapes.
        self._raw = ""
        #: All that was written.
        self.written = ""

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._screen, text.encode())

    def expect(self, pattern: str) -> re.Match[str]:
        """Wait until the text matches; what stands before that is not looked at again."""
        deadline = time.monotonic() + PATIENCE
        while (found := re.search(pattern, ESCAPES.sub("", self._raw))) is None:
            if not self._read(deadline):
                text = ESCAPES.sub("", self.written)
                raise AssertionError(f"{pattern!r} does not come; there is {text!r}")
        self._raw = ESCAPES.sub("", self._raw)[found.end() :]
        return found

    def ends(self) -> int:
        """Wait for the end of the program; returns its exit status."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self._process.wait(PATIENCE)

    def _read(self, deadline: float) -> bool:
        """Read some more; False at the end, or when it takes too long."""
        ready, _, _ = select.select([self._screen], [], [], max(0.0, deadline - time.monotonic()))
        try:
            text = os.read(self._screen, 1 << 16).decode(errors="replace") if ready else ""
        except OSError:  # on Linux, what is read when nobody holds the other side
            text = ""
        self._raw += text
        self.written += text
        return bool(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE)
        os.close(self._screen)


#: Makes the terminal the one whose Ctrl-C comes here, and becomes ``penstock``.
_OWN_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from penstock.cli import main
main()
"""
