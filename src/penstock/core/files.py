"""Files by the paths that graphs name, with TensorFlow's errors.

In:   paths, as strings of a graph or of the caller.
Out:  bytes and open files; or NotFoundError and its kin, which begin with the path.
Not:  knows no formats, no graphs, and no file systems but the machine's own.

This is the only module through which kernels reach files.  They are handed a ``FileSystem``, or
``NoFiles``, which refuses; there is no function of the module that would do without.

A path may have a scheme, such as ``gs://bucket/x``: two letters or more, so that a drive of
Windows is none.  ``file:///x`` is the file ``/x``; all others are unimplemented, ``ram://``
included, since what stands there another part of TensorFlow's own process would have written.

Only regular files are read: a FIFO or a terminal may keep a reader waiting for ever, and devices
such as ``/dev/zero`` have no end.
"""

from __future__ import annotations

import errno
import fnmatch
import glob
import mmap
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Final, cast

from penstock.advice import AllowFiles
from penstock.core.memory import fits_memory
from penstock.core.values import Unwritable
from penstock.errors import (
    InvalidArgumentError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnimplementedError,
)
from penstock.exceptions import from_exception, shown_cause

_SCHEME: Final = re.compile(r"([a-zA-Z][0-9a-zA-Z.]+)://")
#: Opening never waits, as it would for the other end of a FIFO.
_AT_ONCE: Final = getattr(os, "O_NONBLOCK", 0)
_KINDS: Final[tuple[tuple[Callable[[int], bool], str], ...]] = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


class FileMap(mmap.mmap, Unwritable):
    """The bytes of a file, mapped to be read; unmapped when nobody looks at them any more."""


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Turn what the operating system says about ``path`` into canonical errors."""
    try:
        yield
    except OSError as cause:
        error = type(from_exception(cause))
        raise error(f"{path}; {cause.strerror or cause}") from shown_cause(cause)


class FileSystem:
    """The machine's files.

    Every method raises what the operating system says as the canonical error, UnimplementedError
    for a path of another file system, and InvalidArgumentError for one that no file can have.
    """

    def locate(self, path: str) -> str:
        """What the machine itself calls ``path``."""
        if "\0" in path:
            raise InvalidArgumentError(f"{path!r}; embedded null byte")
        found = _SCHEME.match(path)
        if found is None:
            return path
        if found[1] != "file":
            raise UnimplementedError(
                f"File system scheme '{found[1]}' not implemented (file: '{path}')",
                next_step="copy what is needed to this machine, and name the copy",
            )
        _host, slash, rest = path[found.end() :].partition("/")
        return slash + rest

    def absolute(self, path: str) -> str:
        """What the machine calls ``path``, whatever folder is the present one by then."""
        local = self.locate(path)
        return os.path.abspath(local)

    # -- reading -----------------------------------------------------------------------

    def open(self, path: str) -> BinaryIO:
        """A regular file, to be read.

        Raises:
            FailedPreconditionError: it is a folder, a FIFO, a socket or a device.

        """
        local = self.locate(path)
        with file_errors(path):
            return open(local, "rb", opener=_opener(stat.S_ISREG))

    def read(self, path: str) -> bytes:
        """Everything in a regular file.

        Raises:
            FailedPreconditionError: it is a folder, a FIFO, a socket or a device.
            ResourceExhaustedError: it is larger than the memory that is left.

        """
        with self.open(path) as file:
            size = os.fstat(file.fileno()).st_size
            if not fits_memory(size):
                raise ResourceExhaustedError(
                    f"{path}; the file has {size} bytes, too many for the memory that is left"
                )
            with file_errors(path):
                contents = cast("bytes | None", file.read())
        return contents or b""  # None if a file of the kernel's would have to be waited for

    def map(self, path: str) -> FileMap | bytes:
        """A regular file as memory, which is read when it is looked at; of an empty one, nothing.

        All processes that map a file share its pages.  Whoever cuts the file off meanwhile ends
        them: files are to be replaced by new ones of the same name, as ``create`` does.
        """
        with self.open(path) as file, file_errors(path):
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            return FileMap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""
        local = self.locate(path)
        return os.path.exists(local)

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder."""
        local = self.locate(path)
        return os.path.isdir(local)

    def names(self, path: str) -> list[str]:
        """The names of what is in a folder, sorted; raises NotFoundError if it is not there."""
        local = self.locate(path)
        with file_errors(path):
            return sorted(os.listdir(local))

    def files_below(self, path: str) -> list[str]:
        """The files of a folder and of those in it, in alphabetical order; none if it is none."""
        local = self.locate(path)
        found = os.walk(local)
        return sorted(os.path.join(place, name) for place, _, names in found for name in names)

    def mark(self, path: str) -> tuple[int, ...]:
        """What changes when a file is written, or replaced by another; empty if there is none."""
        local = self.locate(path)
        try:
            found = os.stat(local)
        except OSError:
            return ()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def matching(self, pattern: str) -> list[str]:
        """Files and folders that fit a pattern, in alphabetical order.

        ``*`` and ``?`` stand for anything but a slash, dots included.
        """
        local = self.locate(pattern)
        prefix = pattern[: len(pattern) - len(local)]
        with file_errors(pattern):
            return sorted(prefix + found for found in _matches(local))

    # -- writing -----------------------------------------------------------------------

    def write(self, path: str, contents: bytes) -> None:
        """Write a file in place, and make the folders that it is in."""
        local = self.locate(path)
        self.make_folders(os.path.dirname(local))
        with file_errors(path), open(local, "wb", opener=_opener(_is_writable)) as file:
            file.write(contents)

    def extend(self, path: str, contents: bytes) -> None:
        """Write at the end of a file, which is made if it is not there."""
        with file_errors(path), self.append(path) as file:
            file.write(contents)

    def append(self, path: str) -> BinaryIO:
        """A file that grows, made if it is not there."""
        local = self.locate(path)
        with file_errors(path):
            return open(local, "ab", opener=_opener(_is_writable))

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        """A file that gets its name when the block ends; if that fails, nothing is left of it."""
        with self.draft(path) as file:
            yield file
            self.publish(path, file)

    @contextmanager
    def draft(self, path: str) -> Iterator[BinaryIO]:
        """A file that is to become ``path`` by ``publish``, and otherwise is gone in the end."""
        local = f"{self.locate(path)}.tempstate{os.urandom(8).hex()}"
        with file_errors(path):
            file = open(local, "xb")  # noqa: SIM115  (closed below, whatever happens)
            try:
                yield file
            finally:
                with suppress(OSError):
                    file.close()  # fails if what was written before could not be, either
                with suppress(OSError):
                    os.unlink(local)

    def publish(self, path: str, file: BinaryIO) -> None:
        """Give a complete draft its name, in place of what had it before."""
        local = self.locate(path)
        with file_errors(path):
            file.close()
            os.replace(file.name, local)

    def move(self, path: str, to: str) -> None:
        """Give a file another name, in place of what had it before."""
        source, target = self.locate(path), self.locate(to)
        with file_errors(path):
            os.replace(source, target)

    def remove(self, path: str) -> None:
        """Remove a file."""
        local = self.locate(path)
        with file_errors(path):
            os.unlink(local)

    def make_folder(self, path: str) -> None:
        """Make a folder, unless it is there; the one around it must be."""
        local = self.locate(path)
        if not os.path.isdir(local or "."):
            with file_errors(path), suppress(FileExistsError):
                os.mkdir(local)

    def make_folders(self, path: str) -> None:
        """Make a folder, and all that it is in, unless they are there."""
        local = self.locate(path)
        if not os.path.isdir(local or "."):
            with file_errors(path):
                os.makedirs(local, exist_ok=True)

    def remove_empty_folder(self, path: str) -> None:
        """Remove a folder, unless something is in it."""
        local = self.locate(path)
        with file_errors(path):
            if not os.listdir(local):
                os.rmdir(local)


class DurableFiles(FileSystem):
    """Files that are still there, whole, after a machine has lost its power.

    What is published was written to the disk before it gets its name, and so is the name before
    anybody goes on.  That takes milliseconds.
    """

    def publish(self, path: str, file: BinaryIO) -> None:
        """Write a complete draft to the disk, and then give it its name."""
        with file_errors(path):
            file.flush()
            os.fsync(file.fileno())
        super().publish(path, file)
        self._keep_name(path)

    def _keep_name(self, path: str) -> None:
        folder = os.path.dirname(self.locate(path)) or "."
        with suppress(OSError):  # some systems cannot open folders
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


class NoFiles(FileSystem):
    """A file system without files: whatever it is asked, it refuses."""

    def locate(self, path: str) -> str:
        """Refuse."""
        raise PermissionDeniedError(
            f"{path}; the graph may not use files here",
            next_step=AllowFiles("read and write files"),
        )


def folder_of(path: str) -> str:
    """The folder that a path is in; "" for the present one."""
    folder = os.path.dirname(path)
    # Of "file:///x", what is left of "file:///" without the slashes would be no folder.
    return path[: path.rindex("/") + 1] if folder.endswith((":", ":/")) else folder


def _is_writable(mode: int) -> bool:
    """Whether writing ends at some time: on disk, or in a device such as ``/dev/null``."""
    return stat.S_ISREG(mode) or stat.S_ISCHR(mode)


def _opener(is_meant: Callable[[int], bool]) -> Callable[[str, int], int]:
    """Opens what is meant, and nothing else; asked of the open file, so nobody can swap it."""

    def opened(path: str, flags: int) -> int:
        handle = os.open(path, flags | _AT_ONCE, 0o666)
        mode = os.fstat(handle).st_mode
        if is_meant(mode):
            return handle
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
        raise OSError(errno.EBADF, f"Not a regular file, but {kind}")

    return opened


def _matches(pattern: str) -> list[str]:
    # In TensorFlow's patterns a leading caret may negate a set, as in regular expressions.
    folder, name = os.path.split(pattern.replace("[^", "[!"))
    if not glob.has_magic(folder + name):
        return [pattern] if os.path.lexists(pattern) else []
    folders = glob.glob(folder, include_hidden=True) if glob.has_magic(folder) else [folder]
    fits: Any = re.compile(fnmatch.translate(name)).match
    return [
        os.path.join(place, entry)
        for place in folders
        if os.path.isdir(place or ".")
        for entry in os.listdir(place or ".")
        if fits(entry)
    ]
