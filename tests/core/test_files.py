"""Files: what graphs can name, and what the machine answers."""

from __future__ import annotations

import ctypes
import errno
import io
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.core import files as module
from penstock.core.files import FileSystem, NoFiles, file_errors, folder_of
from penstock.core.values import keep

FILES = FileSystem()


# -- schemes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "scheme"),
    [
        ("gs://b/x", "gs"),
        ("http://a/b", "http"),
        ("https://a/b", "https"),
        ("ram://a", "ram"),
        ("a.b://x", "a.b"),
        ("FILE:///x", "FILE"),
        ("viewfs://", "viewfs"),
    ],
)
def test_other_file_systems_are_not_implemented(path: str, scheme: str) -> None:
    """A scheme is two letters, digits or dots, or more, and is never taken for a folder."""
    with pytest.raises(errors.UnimplementedError) as caught:
        FILES.locate(path)

    says = f"File system scheme '{scheme}' not implemented (file: '{path}')"
    assert caught.value.reason == says


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("file:///x/y", "/x/y"),
        ("file://localhost/x", "/x"),
        ("file://x", ""),
        ("file://", ""),
        ("file:/x", "file:/x"),
        ("C:\\x", "C:\\x"),
        ("C:/x", "C:/x"),
        ("c://x", "c://x"),
        ("a-b://x", "a-b://x"),
        ("1a://x", "1a://x"),
        ("://x", "://x"),
        ("x/gs://b", "x/gs://b"),
        ("", ""),
    ],
)
def test_paths_of_this_machine(path: str, local: str) -> None:
    """``file://`` and a host are left out; a drive's letter and other text are no scheme."""
    assert FILES.locate(path) == local


def test_matches_keep_their_scheme(tmp_path: Path) -> None:
    """Names that fit a pattern are spelled as the pattern is."""
    (tmp_path / "a.txt").write_bytes(b"")

    assert FILES.matching(f"file://{tmp_path}/*.txt") == [f"file://{tmp_path}/a.txt"]
    assert FILES.matching(f"file://host{tmp_path}/?.txt") == [f"file://host{tmp_path}/a.txt"]
    assert FILES.matching(f"{tmp_path}/[^b].txt") == [f"{tmp_path}/a.txt"]
    assert FILES.matching(f"{tmp_path}/a.txt") == [f"{tmp_path}/a.txt"]


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("a/b/c", "a/b"),
        ("/a", "/"),
        ("a", ""),
        ("", ""),
        ("file:///a/b", "file:///a"),
        ("file:///a", "file:///"),
        ("file://host/a", "file://host"),
    ],
)
def test_the_folder_of_a_path(path: str, folder: str) -> None:
    """What is left without the last name is a folder, also behind a scheme."""
    assert folder_of(path) == folder


# -- what is no regular file -----------------------------------------------------------


@pytest.fixture
def strange(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """Things that have names and are no regular files."""
    fifo, bound = tmp_path / "fifo", tmp_path / "socket"
    os.mkfifo(fifo)
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(bound))
        yield {
            "a FIFO": fifo,
            "a character device": Path("/dev/zero"),
            "a socket": bound,
            "a folder": tmp_path,
        }


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs")
@pytest.mark.parametrize("kind", ["a FIFO", "a character device", "a socket", "a folder"])
def test_only_regular_files_are_read(kind: str, strange: dict[str, Path]) -> None:
    """Whatever might never end, or never begin, is refused at once, also through a link."""
    link = strange["a FIFO"].parent / "link"
    link.symlink_to(strange[kind])
    for path in (strange[kind], link):
        with pytest.raises(errors.OpError) as caught:
            FILES.read(str(path))
        # A socket cannot even be opened; the system says so in its own words.
        found = (type(caught.value), caught.value.reason)
        assert found in (
            (errors.FailedPreconditionError, f"{path}; Not a regular file, but {kind}"),
            (errors.FailedPreconditionError, f"{path}; Is a directory"),
            (errors.NotFoundError, f"{path}; No such device or address"),
        )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs")
def test_writing_waits_for_no_reader(strange: dict[str, Path]) -> None:
    """A FIFO is not written to, whether or not somebody reads it."""
    path = str(strange["a FIFO"])
    for write in (FILES.write, FILES.extend):
        with pytest.raises(errors.NotFoundError):
            write(path, b"a")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(errors.FailedPreconditionError, match="a FIFO"):
            FILES.write(path, b"a")
    finally:
        os.close(reader)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux's /proc")
def test_files_that_the_kernel_makes_up_are_read() -> None:
    """What has no size but contents is a regular file all the same."""
    assert f"Pid:\t{os.getpid()}\n".encode() in FILES.read("/proc/self/status")


def test_a_file_larger_than_memory(tmp_path: Path) -> None:
    """A file with a hole of a PiB in it is refused before anything is read."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        try:
            file.truncate(1 << 43)
        except OSError:
            pytest.skip("the file system has no files of 8 TiB")

    with pytest.raises(errors.ResourceExhaustedError, match="too many for the memory"):
        FILES.read(str(path))


# -- whole or not at all ---------------------------------------------------------------


def test_a_created_file_is_there_when_it_is_complete(tmp_path: Path) -> None:
    """Until the block ends, the name belongs to what had it before."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with FILES.create(str(path)) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"

    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
def test_a_failed_file_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    """Whatever ends the block early, the old file stays and the draft goes."""
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with FILES.create(str(path)) as file:
            file.write(b"new")
            raise error

    with pytest.raises(type(error)):
        fail()

    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    """A file that cannot get its name is gone, and the error names it."""
    (tmp_path / "taken" / "by").mkdir(parents=True)
    with (
        pytest.raises(errors.FailedPreconditionError, match="taken; Is a directory"),
        FILES.create(str(tmp_path / "taken")) as file,
    ):
        file.write(b"new")

    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


# -- what the system says --------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOSPC, errors.ResourceExhaustedError),
        (errno.EDQUOT, errors.ResourceExhaustedError),
        (errno.EMFILE, errors.ResourceExhaustedError),
        (errno.EFBIG, errors.OutOfRangeError),
        (errno.ENAMETOOLONG, errors.InvalidArgumentError),
        (errno.EROFS, errors.PermissionDeniedError),
        (errno.EACCES, errors.PermissionDeniedError),
        (errno.ENOTEMPTY, errors.FailedPreconditionError),
        (errno.EEXIST, errors.AlreadyExistsError),
        (errno.ENOENT, errors.NotFoundError),
        (errno.ELOOP, errors.UnknownError),
        (errno.EIO, errors.UnknownError),
    ],
)
def test_errors_of_the_system(number: int, error: type[errors.OpError]) -> None:
    """Each number has the code that TensorFlow gives it, and the text begins with the path."""
    with pytest.raises(errors.OpError) as caught, file_errors("/some/where"):
        raise OSError(number, os.strerror(number))

    assert type(caught.value) is error
    assert caught.value.reason == f"/some/where; {os.strerror(number)}"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's /dev/full")
def test_a_full_device() -> None:
    """What does not fit is RESOURCE_EXHAUSTED, however little it is."""
    for write in (FILES.write, FILES.extend):
        with pytest.raises(errors.ResourceExhaustedError, match="/dev/full; No space left"):
            write("/dev/full", b"a")


# -- files as memory ---------------------------------------------------------------------


def test_a_mapped_file_is_its_bytes(tmp_path: Path) -> None:
    """A file can be looked at as memory, an empty one too, and nobody can write into it."""
    (tmp_path / "full").write_bytes(b"abc")
    (tmp_path / "empty").write_bytes(b"")
    files = FileSystem()

    mapped = files.map(str(tmp_path / "full"))
    assert bytes(mapped) == b"abc"
    assert memoryview(mapped).readonly
    assert bytes(files.map(str(tmp_path / "empty"))) == b""
    with pytest.raises(errors.FailedPreconditionError):
        files.map(str(tmp_path))


def test_what_lies_in_a_mapped_file_is_kept_without_a_copy(tmp_path: Path) -> None:
    """Nobody writes into it, so a variable may share it with other processes."""
    (tmp_path / "full").write_bytes(bytes(16))
    view = np.frombuffer(FileSystem().map(str(tmp_path / "full")), np.float32)[1:3]

    assert keep(view) is view
    writable = np.frombuffer(bytearray(16), np.float32)
    assert keep(writable) is not writable


def test_a_mark_changes_with_the_file(tmp_path: Path) -> None:
    """When it is written, replaced, or gone; a folder's files are those of all below it."""
    files = FileSystem()
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    path = tmp_path / "folder" / "inner" / "one"
    path.write_bytes(b"abc")
    (tmp_path / "folder" / "two").write_bytes(b"")
    marks = [files.mark(str(path)), files.mark(str(path))]
    path.write_bytes(b"abcd")
    marks.append(files.mark(str(path)))
    path.unlink()
    marks.append(files.mark(str(path)))

    assert marks[0] == marks[1] != marks[2]
    assert marks[3] == ()
    assert files.files_below(str(tmp_path)) == [str(tmp_path / "folder" / "two")]
    assert files.files_below(str(path)) == []


# -- no files --------------------------------------------------------------------------

CALLS: dict[str, Callable[[FileSystem, str], Any]] = {
    "open": lambda files, path: files.open(path),
    "read": lambda files, path: files.read(path),
    "map": lambda files, path: files.map(path),
    "is_folder": lambda files, path: files.is_folder(path),
    "exists": lambda files, path: files.exists(path),
    "names": lambda files, path: files.names(path),
    "files_below": lambda files, path: files.files_below(path),
    "mark": lambda files, path: files.mark(path),
    "matching": lambda files, path: files.matching(path),
    "write": lambda files, path: files.write(path, b""),
    "extend": lambda files, path: files.extend(path, b""),
    "append": lambda files, path: files.append(path),
    "create": lambda files, path: files.create(path).__enter__(),
    "draft": lambda files, path: files.draft(path).__enter__(),
    "publish": lambda files, path: files.publish(path, io.BytesIO()),
    "move": lambda files, path: files.move(path, path),
    "remove": lambda files, path: files.remove(path),
    "make_folder": lambda files, path: files.make_folder(path),
    "make_folders": lambda files, path: files.make_folders(path),
    "remove_empty_folder": lambda files, path: files.remove_empty_folder(path),
    "locate": lambda files, path: files.locate(path),
    "absolute": lambda files, path: files.absolute(path),
}


def test_nothing_is_left_out() -> None:
    """Every method has a call below."""
    assert {name for name in vars(FileSystem) if not name.startswith("_")} == set(CALLS)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_what_has_no_files_refuses(
    call: Callable[[FileSystem, str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each method says which path is meant, and touches nothing: it has not even ``os``."""
    monkeypatch.setattr(module, "os", None)
    monkeypatch.setattr(module, "glob", None)
    with pytest.raises(
        errors.PermissionDeniedError, match="some/path; the graph may not"
    ) as caught:
        call(NoFiles(), "some/path")

    assert "allow_files=True" in str(caught.value.next_step)


# -- disks that are full ---------------------------------------------------------------

SAVES = """
import sys, numpy as np
sys.path.insert(0, {tests!r})
from penstock import errors
from support.ops import run_op
names, parts = np.array([b"a"], object), np.array([b""], object)
folder, big = sys.argv[1], np.zeros(100_000)
{before}
def attempt(op, *inputs):
    try:
        run_op(op, *inputs)
    except errors.OpError as error:
        print(op, type(error).__name__, error.reason.rpartition("; ")[2], sep="|")
attempt("SaveV2", f"{{folder}}/v2".encode(), names, parts, [big])
attempt("Save", f"{{folder}}/v1".encode(), names, [big])
"""
LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))"


def saved(folder: Path, before: str = "") -> list[str]:
    """What two ops say that save more than there is room for."""
    code = SAVES.format(tests=str(Path(__file__).parents[1]), before=before)
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no such limit")
def test_saves_beyond_a_limit_leave_nothing(tmp_path: Path) -> None:
    """A save that fails in the middle leaves no file, whole or half, and none of its drafts."""
    assert saved(tmp_path, LIMIT) == [
        "SaveV2|OutOfRangeError|File too large",
        "Save|OutOfRangeError|File too large",
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for 64 KiB."""
    if sys.platform != "linux":
        pytest.skip("needs Linux's mount")
    mount, folder = ctypes.CDLL(None, use_errno=True), str(tmp_path).encode()
    if mount.mount(b"none", folder, b"tmpfs", 0, b"size=64k"):
        pytest.skip("only root can mount a small disk")
    yield tmp_path
    mount.umount2(folder, 2)


def test_full_disks_keep_old_checkpoints(small_disk: Path) -> None:
    """There is no room for the new one: RESOURCE_EXHAUSTED, and the old one is as it was."""
    small = "big = np.float32(1)"
    assert saved(small_disk, small) == []
    before = {path.name: path.read_bytes() for path in small_disk.iterdir()}

    assert saved(small_disk) == [
        "SaveV2|ResourceExhaustedError|No space left on device",
        "Save|ResourceExhaustedError|No space left on device",
    ]
    assert {path.name: path.read_bytes() for path in small_disk.iterdir()} == before
    assert len(before) == 3
