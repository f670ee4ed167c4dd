"""The command line: what it prints, what it writes, how it ends."""

from __future__ import annotations

import gzip
import io
import os
import re
import signal
import struct
import subprocess
import sys
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from google.protobuf import text_format
from PIL import Image

from penstock.catalogue.registry import all_ops
from penstock.cli import main
from penstock.kernels.api.registry import ops_with_kernels
from support.commands import penstock, printed, refused
from support.custom import custom_kernels
from support.functions import graph_def_with
from support.graphs import graph_def

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
MODELS = [str(EXAMPLES / f"digits_{kind}.pb") for kind in ("rnn", "cnn")]
TEST_SET = EXAMPLES / "digits_test.npz"
COMMANDS = ["run", "show", "ops"]


def start(*args: Any, **options: Any) -> subprocess.Popen[str]:
    """A real process that runs ``python -m penstock``."""
    return subprocess.Popen(
        [sys.executable, "-m", "penstock", *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        **options,
    )


def saved(folder: Path, text: str, functions: str = "") -> Path:
    """A graph as a file."""
    path = folder / "graph.pb"
    path.write_bytes(graph_def_with(text, functions).SerializeToString())
    return path


@pytest.fixture
def adder(tmp_path: Path) -> Path:
    """A graph that adds: ``out`` is x + y, ``half`` a half of it."""
    return saved(
        tmp_path,
        """
        x = Placeholder[dtype=float32]
        y = Placeholder[dtype=float32]
        two = Const[value=2]
        out = Add(x, y)
        half = Div(out, two)
        """,
    )


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    """A graph that gives back what it is fed: text, numbers, truth."""
    return saved(
        tmp_path,
        """
        text = Placeholder[dtype=string]
        number = Placeholder[dtype=int32]
        truth = Placeholder[dtype=bool]
        """,
    )


# -- run: feeds ------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_digits_of_the_test_set(model: str) -> None:
    """Both networks read nearly all of the test set's digits."""
    text = printed("run", model, "--feed", f"images:0={TEST_SET}:images", "--fetch", "digit:0")
    first, *rest = text.splitlines()
    digits = [int(word) for word in "".join(rest).strip("[]").split()]
    with np.load(TEST_SET) as arrays:
        labels = arrays["labels"]

    assert first == "digit:0  int32[397]"
    assert np.mean(np.equal(digits, labels)) > 0.95


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("image", sorted(EXAMPLES.glob("*.png")), ids=lambda p: p.stem)
def test_digits_of_images(model: str, image: Path) -> None:
    """An image is one line; its name says which digit it shows."""
    text = printed("run", model, "--feed", f"images:0={image}", "--fetch", "digit:0")

    assert text == f"digit:0  int32[1]  [{image.stem.split('_')[1]}]\n"


def test_numpy_files(adder: Path, tmp_path: Path) -> None:
    """A .npy file is an array; a .npz file has several."""
    np.save(tmp_path / "x.npy", np.float32([1, 2]))
    np.savez(tmp_path / "xy.npz", y=np.float32([10, 20]))
    feeds = ["--feed", f"x={tmp_path}/x.npy", "--feed", f"y:0={tmp_path}/xy.npz:y"]

    assert printed("run", adder, *feeds, "--fetch", "out") == "out:0  float32[2]  [11 22]\n"


@pytest.mark.parametrize(
    ("feed", "shown"),
    [
        ("number=3", "number:0  int32  3"),
        ("number=-3", "number:0  int32  -3"),
        ("number=[[1, 2], [3, 4]]", "number:0  int32[2,2]\n[[1 2]\n [3 4]]"),
        ("number=[]", "number:0  int32[0]  []"),
        ("truth=true", "truth:0  bool  True"),
        ("truth=False", "truth:0  bool  False"),
        ("truth=[True,False]", "truth:0  bool[2]  [ True False]"),
        ("text=plain text", "text:0  string  b'plain text'"),
        ("text=a=b:c", "text:0  string  b'a=b:c'"),
        ("text='3'", "text:0  string  b'3'"),
        ("text=['a', 'b']", "text:0  string[2]  [b'a' b'b']"),
        ("text=", "text:0  string  b''"),
    ],
)
def test_literals(echo: Path, feed: str, shown: str) -> None:
    """What is no file is a literal; what is no literal is text."""
    name = feed.partition("=")[0]

    assert printed("run", echo, "--feed", feed, "--fetch", name) == shown + "\n"


@pytest.mark.parametrize(
    ("mode", "dtype", "shape", "shown"),
    [
        ("L", "float32", "2|3", "float32[2,3]"),
        ("L", "float32", "-1|2|3", "float32[1,2,3]"),
        ("L", "float32", "-1|2|3|1", "float32[1,2,3,1]"),
        ("L", "uint8", "2|3|1", "uint8[2,3,1]"),
        ("1", "float32", "2|3", "float32[2,3]"),
        ("RGB", "uint8", "2|3|3", "uint8[2,3,3]"),
        ("RGB", "float32", "-1|2|3|3", "float32[1,2,3,3]"),
        ("P", "uint8", "2|3|3", "uint8[2,3,3]"),
    ],
)
def test_images(tmp_path: Path, mode: str, dtype: str, shape: str, shown: str) -> None:
    """An image gets the batch and channel dimensions that the placeholder wants."""
    Image.new("L", (3, 2), 255).convert(mode).save(tmp_path / "white.png")
    graph = saved(tmp_path, f"x = Placeholder[dtype={dtype}; shape={shape}]")
    text = printed("run", graph, "--feed", f"x={tmp_path}/white.png", "--fetch", "x")

    assert text.split()[1] == shown
    assert set(text.split(None, 2)[2].replace("[", " ").replace("]", " ").split()) == {
        "1" if dtype == "float32" else "255"
    }


@pytest.mark.parametrize("suffix", ["png", "jpg", "jpeg", "JPG", "bmp", "gif"])
def test_kinds_of_images(tmp_path: Path, suffix: str) -> None:
    """Whatever Pillow reads by one of these names can be fed."""
    path = tmp_path / f"grey.{suffix}"
    Image.new("L", (16, 8), 51).save(path)
    graph = saved(tmp_path, "x = Placeholder[dtype=uint8]")
    fed = printed("run", graph, "--feed", f"x={path}", "--fetch", "x")

    # A GIF has colours, even if they are grey.
    assert fed.startswith("x:0  uint8[8,16,3]" if suffix == "gif" else "x:0  uint8[8,16]\n")
    shades = {int(word) for word in re.findall(r"\d+", fed.partition("\n")[2])}
    assert shades
    assert shades <= {50, 51, 52}  # a JPEG is not exact


def test_images_for_graphs_that_decode_them(tmp_path: Path) -> None:
    """A graph that takes an image as a string gets the file; in quotes, the name is meant."""
    Image.new("L", (3, 2), 255).save(tmp_path / "white.png")
    graph = saved(
        tmp_path, "x = Placeholder[dtype=string]\ny = DecodePng[channels=1; dtype=uint8](x)"
    )
    feed = f"x={tmp_path}/white.png"
    named = printed("run", graph, "--feed", "x='white.png'", "--fetch", "x")

    assert printed("run", graph, "--feed", feed, "--fetch", "y").startswith("y:0  uint8[2,3,1]")
    assert named == "x:0  string  b'white.png'\n"


def test_animations(adder: Path, tmp_path: Path) -> None:
    """Which image of several is meant cannot be guessed."""
    images = [Image.new("L", (3, 2), shade) for shade in (0, 255)]
    images[0].save(tmp_path / "x.gif", save_all=True, append_images=images[1:])
    error = refused(1, "run", adder, "--feed", f"x={tmp_path}/x.gif", "--fetch", "x")

    assert "is an animation of 2 images" in error


@pytest.mark.parametrize(
    ("feed", "shown"),
    [
        ("text=3", "b'3'"),
        ("text=true", "b'true'"),
        ('text={"a": 1}', "b'{\"a\": 1}'"),
        ("text=None", "b'None'"),
        ("real=nan", "nan"),
        ("real=-inf", "-inf"),
    ],
)
def test_words(tmp_path: Path, feed: str, shown: str) -> None:
    """What is fed to a string is text, whatever it looks like; numbers have words, too."""
    graph = saved(tmp_path, "text = Placeholder[dtype=string]\nreal = Placeholder")
    name = feed.partition("=")[0]

    assert printed("run", graph, "--feed", feed, "--fetch", name).endswith(f"  {shown}\n")


@pytest.mark.parametrize("name", ["x.csv", "x.txt", "x", "x.pt", "x.tfrecord", "x.tiff"])
def test_files_of_other_kinds(adder: Path, tmp_path: Path, name: str) -> None:
    """A file that cannot be fed is pointed out, with the kinds that can."""
    path = tmp_path / name
    path.write_text("1,2,3")
    error = refused(1, "run", adder, "--feed", f"x={path}", "--fetch", "x")

    assert "it is a file of another kind" in error
    assert "a VALUE is FILE.npy, FILE.npz:KEY, an image (.bmp .gif .jpeg .jpg .png)" in error


def test_a_file_is_not_taken_for_its_text(echo: Path, tmp_path: Path) -> None:
    """Where text is wanted, a file's name is text, but not without a warning."""
    path = tmp_path / "review.txt"
    path.write_text("Good.")
    quoted = penstock("run", echo, "--feed", f"text='{path}'", "--fetch", "text")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        bare = penstock("run", echo, "--feed", f"text={path}", "--fetch", "text")

    assert quoted.stdout == bare.stdout
    assert bare.stdout.split() == ["text:0", "string", f"b'{path}'"]
    assert quoted.stderr == ""
    assert bare.stderr.startswith(f"warning: text:0 is fed the text '{path}', not what is in")


def test_arrays_on_stdin(adder: Path) -> None:
    """``-`` is a .npy file on stdin, also where stdin cannot be searched."""
    with start("run", adder, "--feed", "x=-", "--feed", "y=1", "--fetch", "out") as process:
        assert process.stdin is not None
        content = io.BytesIO()
        np.save(content, np.float32([1, 2]))
        process.stdin.buffer.write(content.getvalue())
        out, _ = process.communicate(timeout=60)

    assert out == "out:0  float32[2]  [2 3]\n"


@pytest.mark.parametrize(
    ("feed", "code", "message"),
    [
        ("x", "INVALID_ARGUMENT", "'x' is not a feed"),
        ("=3", "INVALID_ARGUMENT", "is not a feed"),
        ("x=nowhere.npy", "NOT_FOUND", "There is no file nowhere.npy"),
        ("x=nowhere.npz:a", "NOT_FOUND", "There is no file nowhere.npz"),
        ("x=nowhere.png", "NOT_FOUND", "There is no file nowhere.png"),
        (f"x={TEST_SET}:nothing", "NOT_FOUND", "name one of: images, labels"),
        (f"x={TEST_SET}", "NOT_FOUND", "name one of: images, labels"),
        ("x={bad}.npy", "INVALID_ARGUMENT", "cannot be read as numpy data"),
        ("x={bad}.npz:a", "INVALID_ARGUMENT", "cannot be read as numpy data"),
        ("x={bad}.png", "INVALID_ARGUMENT", "is not an image"),
        ("x=text", "INVALID_ARGUMENT", "Type of feed value text"),
        ("xx=3", "INVALID_ARGUMENT", "did you mean x?"),
        ("x:1=3", "INVALID_ARGUMENT", "the graph has no tensor 'x:1'"),
        ("y=4", "INVALID_ARGUMENT", "y:0 is fed twice"),
    ],
)
def test_bad_feeds(adder: Path, tmp_path: Path, feed: str, code: str, message: str) -> None:
    """What is wrong with a feed is said in one message."""
    for suffix in ("npy", "npz", "png"):
        (tmp_path / f"bad.{suffix}").write_bytes(b"nonsense")
    feed = feed.replace("{bad}", str(tmp_path / "bad"))
    error = refused(1, "run", adder, "--feed", "y:0=1", "--feed", feed, "--fetch", "out")

    assert error.startswith(f"{code}: ")
    assert message in error


def test_pickles_are_not_loaded(adder: Path, tmp_path: Path) -> None:
    """A .npy file that would run code is refused."""
    np.save(tmp_path / "x.npy", np.array([print], object), allow_pickle=True)
    error = refused(1, "run", adder, "--feed", f"x={tmp_path}/x.npy", "--fetch", "out")

    assert "cannot be read as numpy data" in error


def npy(dtype: Any, shape: Any, data: bytes = b"1234") -> bytes:
    """A .npy file that says what it likes."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}}}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy("<f4", (2**42,)), "RESOURCE_EXHAUSTED: {} is too large: Unable to allocate 16.0 TiB"),
        (npy("<f4", (2**62, 2**62)), "INVALID_ARGUMENT: {} cannot be read as numpy data"),
        (npy("<f4", (-1,)), "INVALID_ARGUMENT: {} cannot be read as numpy data"),
        (npy("<f4", ("a",)), "INVALID_ARGUMENT: {} cannot be read as numpy data"),
        (npy("<f4", (5,)), "INVALID_ARGUMENT: {} cannot be read as numpy data"),
        (npy("nonsense", (5,)), "INVALID_ARGUMENT: {} cannot be read as numpy data"),
        (npy("|O", (1,)), "INVALID_ARGUMENT: {} cannot be read as numpy data: Object arrays"),
        (npy("|O", (1,))[:-9], "INVALID_ARGUMENT: {} cannot be read as numpy data"),
        (b"nonsense", "INVALID_ARGUMENT: {} cannot be read as numpy data"),
        (b"", "INVALID_ARGUMENT: {} cannot be read as numpy data"),
    ],
)
def test_absurd_numpy_files(adder: Path, tmp_path: Path, content: bytes, message: str) -> None:
    """What numpy cannot read is one sentence, in a file, in an archive and on stdin."""
    (tmp_path / "x.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a.npy", content)
    for name in (f"{tmp_path}/x.npy", f"{tmp_path}/x.npz:a"):
        error = refused(1, "run", adder, "--feed", f"x={name}", "--feed", "y=1", "--fetch", "out")
        assert error.startswith(message.format(name))
    command = ["run", str(adder), "--feed", "x=-", "--feed", "y=1", "--fetch", "out"]
    piped = CliRunner().invoke(main, command, input=content)
    assert piped.stderr.startswith(message.format("stdin"))


def test_archives_that_are_none(adder: Path, tmp_path: Path) -> None:
    """A file is what is in it: an array called an archive, a damaged archive."""
    np.save(tmp_path / "x.npy", np.float32([1]))
    (tmp_path / "x.npy").rename(tmp_path / "x.npz")
    (tmp_path / "y.npz").write_bytes(b"PK\3\4nonsense")
    np.savez_compressed(tmp_path / "z.npz", a=np.arange(1000, dtype=np.float32))
    content = bytearray((tmp_path / "z.npz").read_bytes())
    content[100:120] = bytes(20)
    (tmp_path / "z.npz").write_bytes(content)
    for name in "xyz":
        feed = f"x={tmp_path}/{name}.npz"
        error = refused(1, "run", adder, "--feed", feed, "--feed", "y=1", "--fetch", "out")
        assert error.startswith(f"INVALID_ARGUMENT: {tmp_path}/{name}.npz")
        assert "cannot be read as numpy data" in error


# -- run: results ----------------------------------------------------------------------------


def test_floats_are_readable(adder: Path) -> None:
    """Numbers of all sizes stand in columns, none of them rounded to nothing."""
    feeds = ["--feed", "x=[[1, 1e-8], [0.5, 123456.0]]", "--feed", "y=0"]
    text = printed("run", adder, *feeds, "--fetch", "out", "--fetch", "half")

    assert text == (
        "out:0  float32[2,2]\n[[         1      1e-08]\n [       0.5 1.2346e+05]]\n"
        "half:0  float32[2,2]\n[[  0.5 5e-09]\n [ 0.25 61728]]\n"
    )


def test_large_results_are_shortened(echo: Path) -> None:
    """Of a large array, only the corners are shown."""
    text = printed("run", echo, "--feed", f"number={[[1] * 100] * 100}", "--fetch", "number")

    assert text.startswith("number:0  int32[100,100]\n[[1 1 1 1 ... 1 1 1 1]")
    assert len(text.splitlines()) == 10


def test_npy(adder: Path, tmp_path: Path) -> None:
    """A single fetch can go to a .npy file."""
    out = tmp_path / "sum.npy"
    done = penstock("run", adder, "--feed", "x=1", "--feed", "y=2", "--fetch", "out", "--out", out)

    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"wrote {out}\n"
    assert np.load(out) == np.float32(3)


def test_npz(adder: Path, tmp_path: Path) -> None:
    """Several fetches go to a .npz file, each under its name, and can be fed again."""
    out = tmp_path / "all.npz"
    fetches = ["--fetch", "out:0", "--fetch", "half"]
    printed("run", adder, "--feed", "x=[1,2]", "--feed", "y=2", *fetches, "--out", out)
    again = printed("run", adder, "--feed", f"x={out}:half:0", "--feed", "y=0", "--fetch", "out")

    assert again == "out:0  float32[2]  [1.5   2]\n"
    with np.load(out) as arrays:
        assert sorted(arrays) == ["half:0", "out:0"]
        assert arrays["out:0"].dtype == np.float32
        assert arrays["half:0"].tolist() == [1.5, 2]


def test_strings_in_files(echo: Path, tmp_path: Path) -> None:
    """Strings are written without pickling."""
    out = tmp_path / "text.npz"
    printed("run", echo, "--feed", "text=['a','bcd']", "--fetch", "text", "--out", out)

    with np.load(out) as arrays:
        assert arrays["text:0"].tolist() == [b"a", b"bcd"]


def test_archives_with_one_array(adder: Path, tmp_path: Path) -> None:
    """The only array of a .npz file needs no key."""
    np.savez(tmp_path / "x.npz", anything=np.float32(3))
    feeds = ["--feed", f"x={tmp_path}/x.npz", "--feed", "y=1"]

    assert printed("run", adder, *feeds, "--fetch", "out") == "out:0  float32  4\n"


def test_what_no_file_can_hold(tmp_path: Path) -> None:
    """A handle is printed, but not written."""
    graph = saved(tmp_path, "v = VarHandleOp[dtype=float32; shape=; shared_name=w]")

    assert printed("run", graph, "--fetch", "v").startswith("v:0  resource")
    assert "which no file can hold" in refused(
        1, "run", graph, "--fetch", "v", "--out", tmp_path / "v.npz"
    )


@pytest.mark.parametrize("out", ["sum.txt", "sum", "two.npy", "nowhere/sum.npz"])
def test_bad_output_files(adder: Path, tmp_path: Path, out: str) -> None:
    """A file that cannot be written is refused before anything runs."""
    args = ["--fetch", "out", "--fetch", "half", "--out", tmp_path / out]
    error = refused(2, "run", adder, *args)

    assert "--out takes" in error or "there is no directory" in error


def test_repeat(adder: Path) -> None:
    """Repeated runs are timed; the last one's results are shown."""
    feeds = ["--feed", "x=1", "--feed", "y=2"]
    done = penstock("run", adder, *feeds, "--fetch", "out", "--repeat", 7)

    assert (done.exit_code, done.stdout) == (0, "out:0  float32  3\n")
    assert "7 runs: median " in done.stderr


def test_init_and_targets(tmp_path: Path) -> None:
    """``--init`` runs once, a target with every run."""
    graph = saved(
        tmp_path,
        """
        v = VarHandleOp[dtype=float32; shape=; shared_name=v]
        zero = Const[value=0]
        one = Const[value=1]
        init = AssignVariableOp[dtype=float32](v, zero)
        step = AssignAddVariableOp[dtype=float32](v, one)
        now = ReadVariableOp[dtype=float32](v, ^step)
        """,
    )
    run = ["run", graph, "--init", "init", "--repeat", 5]

    assert printed(*run, "--target", "step", "--fetch", "now") == "now:0  float32  5\n"
    done = penstock("run", graph, "--init", "init", "--target", "step")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "ran init, step\n")


def test_devices(tmp_path: Path) -> None:
    """``--devices`` makes as many CPUs."""
    graph = saved(tmp_path, "x = Const[value=4]\ny = Neg(x) @/device:CPU:1")
    two = penstock("run", graph, "--fetch", "y", "--devices", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        one = penstock("run", graph, "--fetch", "y")

    assert two.stdout == one.stdout == "y:0  float32  -4\n"
    assert two.stderr == ""
    assert one.stderr.startswith("warning: Node 'y' and perhaps others")


def test_text_and_gzip(tmp_path: Path) -> None:
    """Graphs may be text, and packed."""
    proto = graph_def("x = Const[value=4]")
    (tmp_path / "graph.pbtxt").write_text(text_format.MessageToString(proto))
    (tmp_path / "graph.pb.gz").write_bytes(gzip.compress(proto.SerializeToString()))

    for name in ("graph.pbtxt", "graph.pb.gz"):
        assert printed("run", tmp_path / name, "--fetch", "x") == "x:0  float32  4\n"


# -- run: errors -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "nothing to do"),
        (["--fetch", "out", "--repeat", "0"], "--repeat"),
        (["--fetch", "out", "--repeat", "x"], "--repeat"),
        (["--fetch", "out", "--timeout", "-1"], "--timeout"),
        (["--fetch", "out", "--devices", "0"], "--devices"),
        (["--fetch"], "requires an argument"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_wrong_usage_of_run(adder: Path, args: list[str], message: str) -> None:
    """The wrong words give 2, and what was wrong."""
    assert message in refused(2, "run", adder, *args)


@pytest.mark.parametrize(
    "args", [["run"], ["show"], ["run", "nowhere.pb", "--fetch", "x"], ["show", "."], ["nonsense"]]
)
def test_wrong_usage(args: list[str]) -> None:
    """A missing graph or an unknown command gives 2."""
    assert "Error: " in refused(2, *args)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--fetch", "outt"], "did you mean out?"),
        (["--fetch", "out:1"], "out"),
        (["--target", "outt", "--fetch", "x"], "did you mean out?"),
        (["--fetch", "out"], "You must feed a value for placeholder tensor"),
        (["--fetch", "out", "--feed", "x=[1,2]", "--feed", "y=[1,2,3]"], "{{node out}}"),
        (["--fetch", "x:y:z"], "x:y:z"),
    ],
)
def test_graph_errors(adder: Path, args: list[str], message: str) -> None:
    """What goes wrong in a graph gives 1 and the error's own text."""
    assert message in refused(1, "run", adder, *args)


@pytest.mark.parametrize("command", [["show"], ["run", "--fetch", "x"]])
def test_files_that_are_no_graphs(tmp_path: Path, command: list[str]) -> None:
    """Another file is refused by name."""
    path = tmp_path / "notes.txt"
    path.write_text("This is no graph.")

    assert "notes.txt is not a GraphDef" in refused(1, *command, path)


def test_timeout(tmp_path: Path) -> None:
    """A run that takes too long ends with an error."""
    graph = saved(tmp_path, ENDLESS)
    error = refused(1, "run", graph, "--fetch", "exit", "--timeout", "0.2")

    assert error.startswith("DEADLINE_EXCEEDED: ")


ENDLESS = """
one = Const[value=1; dtype=int32]
yes = Const[value=True; dtype=bool]
enter = Enter[frame_name=f; T=int32](one)
always = Enter[frame_name=f; is_constant=true; T=bool](yes)
merge = Merge[N=2; T=int32](enter, next)
again = LogicalOr(always, always)
cond = LoopCond(again)
switch = Switch[T=int32](merge, cond)
next = NextIteration[T=int32](switch:1)
exit = Exit[T=int32](switch)
"""


# -- show ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_show_digits(model: str) -> None:
    """The inputs, the outputs and the ops of a model, and that all of it can run."""
    text = printed("show", model)

    assert "\ninputs\n  images:0  float32[?,8,8]  Placeholder\n" in text
    assert "\n  probabilities:0  float32[?,10]  Softmax\n" in text
    assert "\n  digit:0          int32[?]       ArgMax\n" in text
    assert "every op has a kernel" in text
    assert ("\nloops\n  while/while_context  41 nodes\n" in text) == ("rnn" in model)
    assert max(map(len, text.splitlines())) <= max(100, len(model) + 30)


def test_show_names_what_does_not_fit(tmp_path: Path) -> None:
    """Nodes that fail whatever is fed are named, with the reason; nothing follows from them."""
    graph = saved(
        tmp_path,
        "a = Placeholder[shape=(2|3)]\nb = Placeholder[shape=(4|5)]\nc = MatMul(a, b)\n"
        "d = Identity(c)",
    )
    text = printed("show", graph)

    assert "\n  d:0  float32  Identity\n" in text
    assert "\n  c  Dimensions must be equal, but are 3 and 4\n" in text


def test_show_tells_outputs_from_chores(tmp_path: Path) -> None:
    """What trains and saves is counted, not listed, among what nobody reads."""
    graph = saved(
        tmp_path,
        """
        x = Placeholder
        y = Neg(x)
        v = VariableV2[shape=]
        zero = Const[value=0]
        v/Assign = Assign[T=float32](v, zero)
        v/read = Identity(v)
        """,
    )

    assert "\noutputs\n  y:0  float32  Neg\n  … and 2 nodes that nobody reads" in printed(
        "show", graph
    )


def test_show_counts_ops(tmp_path: Path) -> None:
    """Ops are counted, the most frequent first."""
    graph = saved(tmp_path, "a = Const\nb = Const\nc = Add(a, b)")
    text = printed("show", graph)

    assert text.startswith(f"{graph}  a GraphDef: 3 nodes, version 2000\n")
    assert "\nops\n  2 Const  1 Add\n" in text


def test_show_unsupported_ops(tmp_path: Path) -> None:
    """Ops without kernels are listed, those inside functions too."""
    with custom_kernels("Odd() -> (x: float32)", "Even(x: float32) -> (y: float32)"):
        graph = saved(
            tmp_path,
            "a = Odd\nb = Odd\nc = Outside(a)",
            "Outside(x: float32) -> (y: float32)\ny = Even(x)\nreturn y = x",
        )
        text = printed("show", graph)

    assert text.endswith(
        "\nnot supported (the graph loads; only what needs these ops fails)\n"
        "  Even  1 node\n  Odd   2 nodes\n"
    )
    assert "\nfunctions\n  Outside(x) -> (y)  1 node\n" in text


def test_show_variables_and_devices(tmp_path: Path) -> None:
    """Variables with their types and shapes; devices with how many nodes ask for them."""
    graph = saved(
        tmp_path,
        """
        w = VarHandleOp[dtype=float32; shape=3|4] @/device:CPU:1
        b = VariableV2[dtype=int32; shape=] @/device:CPU:1
        """,
    )
    text = printed("show", graph)

    assert "\nvariables\n  w  float32[3,4]  VarHandleOp\n  b  int32[]       VariableV2\n" in text
    assert "\ndevices\n  /device:CPU:1  asked for by 2 nodes\n" in text


def test_show_nested_loops(tmp_path: Path) -> None:
    """A loop inside another stands further to the right."""
    graph = saved(
        tmp_path,
        """
        x = Placeholder
        outer = Enter[frame_name=f](x)
        inner = Enter[frame_name=g](outer)
        y = Exit(inner)
        z = Exit(y)
        """,
    )

    assert "\nloops\n  f    2 nodes\n    g  1 node\n" in printed("show", graph)


def test_show_malformed_loops(tmp_path: Path) -> None:
    """A graph whose loops make no sense can still be looked at."""
    graph = saved(tmp_path, "x = Placeholder\ne = Enter[frame_name=f](x)\ny = Add(e, x)")
    text = printed("show", graph)

    assert "\nloops\n  malformed: {{node y}} has inputs from different frames" in text
    assert "every op has a kernel" in text


def test_show_nodes(tmp_path: Path) -> None:
    """``--nodes`` lists each node with its inputs, its outputs' types and its device."""
    graph = saved(
        tmp_path,
        "a = Const\nb = Switch(a, p)\np = Const[dtype=bool; value=True]"
        "\nc = Add(b:1, a, ^p) @/device:CPU:0",
    )
    text = printed("show", graph, "--nodes")

    assert text.endswith(
        "\nnodes\n  a = Const() -> float32[]\n  p = Const() -> bool[]\n"
        "  b = Switch(a, p) -> float32[], float32[]\n"
        "  c = Add(b:1, a, ^p) -> float32[] @/device:CPU:0\n"
    )


def test_show_long_graphs(tmp_path: Path) -> None:
    """Of many inputs or outputs, the first fifty are shown."""
    graph = saved(tmp_path, "\n".join(f"x{i} = Placeholder" for i in range(120)))
    text = printed("show", graph)

    assert text.count("  … and 70 more") == 2
    assert "x49:0" in text
    assert "x50:0" not in text


def test_show_an_empty_graph(tmp_path: Path) -> None:
    """A graph without nodes is a graph."""
    assert "0 nodes" in printed("show", saved(tmp_path, ""))


def test_narrow_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a narrow terminal, ops stand in fewer columns, and no name is cut."""
    monkeypatch.setattr("penstock.cli.layout.columns", lambda: 30)
    text = printed("show", MODELS[0])

    assert "\n  25 Const\n" in text
    assert "TensorArrayScatterV3" in text


# -- ops -------------------------------------------------------------------------------------


def test_ops() -> None:
    """Each op with its types, and how many there are."""
    text = printed("ops")

    assert len(text.splitlines()) == len(ops_with_kernels()) + 1
    assert "\n  Sigmoid  " in text
    assert text.splitlines()[-1].endswith(" ops have kernels")


def test_names_of_ops() -> None:
    """``--names`` is for programs: one name a line, nothing else."""
    assert printed("ops", "--names").splitlines() == ops_with_kernels()


def test_chosen_ops() -> None:
    """Patterns choose ops, in any case."""
    assert printed("ops", "sigmoid*", "Relu").split("\n") == [
        "  Relu         T: any real number",
        "  Sigmoid      T: any float any complex",
        "  SigmoidGrad  T: any float any complex",
        "",
    ]
    assert printed("ops", "--names", "nothing-like-this") == ""
    assert "nothing-like-this" in refused(1, "ops", "nothing-like-this")


def test_missing_ops() -> None:
    """``--missing`` lists the rest of the catalogue, and can be asked for some of it."""
    names = printed("ops", "--missing", "--names").splitlines()

    assert sorted([*names, *ops_with_kernels()]) == all_ops()
    assert printed("ops", "--missing").splitlines()[-1] == (
        f"{len(names)} of {len(all_ops())} ops have no kernels"
    )
    assert printed("ops", "--missing", "XlaAllR*") == "  XlaAllReduce\n"
    assert "No op without a kernel is called Add" in refused(1, "ops", "--missing", "Add")


def test_what_a_graph_lacks(tmp_path: Path) -> None:
    """Ops without kernels, and kernels for other types, with how many nodes need them."""
    with custom_kernels("Odd() -> (x: float32)", "Even(x: float32) -> (y: float32)"):
        graph = saved(
            tmp_path,
            "a = Odd\nb = Odd\nc = Outside(a)\nd = Const[dtype=string; value=x]\n"
            "e = Sigmoid[T=float32](b)",
            "Outside(x: float32) -> (y: float32)\ny = Even(x)\nreturn y = x",
        )
        text = printed("ops", "--missing", graph)
        names = printed("ops", "--missing", "--names", graph)

    assert text == f"{graph} lacks\n  Even  1 node   no kernel\n  Odd   2 nodes  no kernel\n"
    assert names == "Even\nOdd\n"


@pytest.mark.parametrize(
    ("args", "lacks"),
    [
        (["--fetch", "fine"], []),
        (["--fetch", "fine:0", "--fetch", "^a"], ["Odd"]),
        (["--fetch", "b:0"], ["Odd"]),
        (["--fetch", "c"], ["Even", "Odd"]),
        (["--fetch", "c", "--feed-names", "a"], ["Even"]),
        (["--fetch", "c", "--feed-names", "c:0"], []),
        (["--fetch", "late"], ["Odd"]),
        ([], ["Even", "Odd", "Unknown"]),
    ],
)
def test_what_a_fetch_lacks(tmp_path: Path, args: list[str], lacks: list[str]) -> None:
    """With ``--fetch``, only what it needs counts: control inputs and called functions, too."""
    signatures = ("Odd() -> (x: float32)", "Even(x: float32) -> (y: float32)")
    with custom_kernels(*signatures, "Unknown() -> (x: float32)"):
        graph = saved(
            tmp_path,
            """
            a = Odd
            b = Neg(a)
            c = PartitionedCall[f=Outer; Tin=float32; Tout=float32](a)
            d = Unknown
            x = Placeholder
            fine = Neg(x)
            late = Neg(x, ^a)
            """,
            "Outer(x: float32) -> (y: float32)\ny = Inner(x)\nreturn y = y:y\n\n"
            "Inner(x: float32) -> (y: float32)\ny = Even(x)\nreturn y = y:y",
        )
        names = printed("ops", "--missing", "--names", graph, *args)

    assert names.split() == lacks


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--missing", "{graph}", "--fetch", "outt"], 1, "did you mean out?"),
        (["--missing", "{graph}", "--fetch", "out", "--feed-names", "q"], 1, "called 'q'"),
        (["{graph}"], 2, "is listed with --missing"),
        (["--missing", "--fetch", "out"], 2, "--fetch goes with --missing GRAPH"),
        (["--missing", "{graph}", "--feed-names", "x"], 2, "--feed-names with --fetch"),
        (["--missing", "nowhere.pb"], 2, "There is no file nowhere.pb"),
    ],
)
def test_wrong_usage_of_ops(adder: Path, args: list[str], code: int, message: str) -> None:
    """A graph is asked about with --missing, and its names must be there."""
    assert message in refused(code, "ops", *[arg.replace("{graph}", str(adder)) for arg in args])


@pytest.mark.parametrize("command", [["show"], ["run", "--fetch=c"], ["ops", "--missing"]])
def test_graphs_on_stdin(command: list[str]) -> None:
    """``-`` is the graph on stdin, whatever its format."""
    content = gzip.compress(graph_def("c = Const[value=4]").SerializeToString())
    done = CliRunner().invoke(main, [*command, "-"], input=content, catch_exceptions=False)

    assert done.exit_code == 0
    assert done.stdout.startswith(
        ("stdin  a GraphDef: 1 node", "c:0  float32  4\n", "stdin lacks nothing")
    )


def test_stdin_is_one_thing(adder: Path) -> None:
    """It cannot be the graph and a feed, nor two feeds."""
    two = "stdin can be one thing"

    assert two in refused(2, "run", "-", "--feed", "x=-", "--fetch", "out")
    assert two in refused(2, "run", adder, "--feed", "x=-", "--feed", "y=-", "--fetch", "out")


def test_nothing_on_stdin() -> None:
    """No graph is an error that says where it was expected."""
    assert "stdin is empty, not a GraphDef" in refused(1, "show", "-")


def test_a_graph_of_unknown_ops_can_be_asked_about(tmp_path: Path) -> None:
    """What cannot even be loaded is listed all the same."""
    with custom_kernels("Odd() -> (x: float32)"):
        graph = saved(tmp_path, "a = Odd")

    assert printed("ops", "--missing", graph).endswith(
        "  Odd  1 node  not an op that is known here\n"
    )


def test_types_that_no_kernel_takes(tmp_path: Path) -> None:
    """A kernel that is there, but not for the node's types, is missing too."""
    graph = saved(tmp_path, "a = Placeholder[dtype=float16]\nb = Rint[T=float16](a)")
    lacking = printed("ops", "--missing", graph)

    assert lacking == f"{graph} lacks\n  Rint  1 node  no kernel for T=float16\n"


def test_a_graph_that_lacks_nothing(tmp_path: Path) -> None:
    """It says so."""
    graph = saved(tmp_path, "a = Const\nb = Neg(a)")

    assert printed("ops", "--missing", graph) == (f"{graph} lacks nothing: every op has a kernel\n")


# -- help, processes, signals ------------------------------------------------------------------


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help(command: list[str]) -> None:
    """Every command explains itself, with examples."""
    text = printed(*command, "--help")

    assert printed(*command, "-h") == text
    assert "Examples:\n" in text
    assert f"penstock {' '.join(command)}" in text


def test_version() -> None:
    """``--version`` says which Penstock this is."""
    assert printed("--version").startswith("penstock, version ")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("penstock ", "plain,run"),
        ("penstock run model", "file,model"),
        ("penstock show model", "file,model"),
        ("penstock run --fe", "plain,--fetch"),
        ("penstock ops MatM", "plain,MatMul"),
        ("penstock ops --missing model", "file,model"),
    ],
)
def test_completion(words: str, offered: str) -> None:
    """What the Tab key offers: commands, options, ops, files."""
    environment = {
        "_PENSTOCK_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    done = CliRunner().invoke(main, env=environment, prog_name="penstock")

    assert offered in done.stdout.split("\n")


def test_what_the_encoding_lacks(tmp_path: Path) -> None:
    """A name that stdout cannot encode is shown with escapes."""
    graph = tmp_path / "数字.pb"
    graph.write_bytes(graph_def("x = Const").SerializeToString())
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "show", graph.name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=True,
    )

    assert done.stdout.startswith(rb"\u6570\u5b57.pb  a GraphDef: 1 node")


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    """``NO_COLOR`` is respected, even by a terminal."""
    coloured = CliRunner().invoke(main, ["show", MODELS[0]], color=True)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = CliRunner().invoke(main, ["show", MODELS[0]], color=True)

    assert "\x1b[1m" in coloured.stdout
    assert "\x1b" not in plain.stdout


def test_a_library_that_images_need(adder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Pillow, an image says what to install."""
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    error = refused(1, "run", adder, "--feed", f"x={EXAMPLES}/digit_7_3.png", "--fetch", "x")

    assert "digit_7_3.png needs PIL, which is not installed" in error
    assert "pip install 'penstock[images]'" in error


def test_python_m_penstock() -> None:
    """``python -m penstock`` is the same command line."""
    process = start("run", MODELS[1], "--feed", f"images={EXAMPLES}/digit_7_3.png", "--fetch=digit")
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (0, "digit:0  int32[1]  [7]\n", "")


def test_errors_of_a_process(adder: Path) -> None:
    """A failing process says why on stderr, without traceback, and ends with 1."""
    process = start("run", adder, "--fetch", "out")
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out) == (1, "")
    assert err.startswith("INVALID_ARGUMENT: You must feed a value")
    assert "Traceback" not in err


def test_closed_pipes() -> None:
    """A reader that stops reading is no reason for a traceback."""
    with start("ops") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        error = process.stderr.read()

    assert "Traceback" not in error


@pytest.mark.parametrize("repeat", [1, 1000])
def test_ctrl_c(tmp_path: Path, repeat: int) -> None:
    """Ctrl-C ends the run, and the process ends with 130."""
    arguments = ["run", str(saved(tmp_path, ENDLESS)), "--fetch", "exit", f"--repeat={repeat}"]
    # What a shell starts in the background ignores Ctrl-C, and so would these tests.
    code = (
        "from signal import *; signal(SIGINT, default_int_handler); "
        "from penstock.cli import main; import sys; print('ready', file=sys.stderr, flush=True); "
        f"main({arguments!r})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"  # until then, Ctrl-C would end the import
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()

    assert (process.returncode, out) == (130, "")
    assert err.strip().splitlines()[-1] == "interrupted"
    assert "Traceback" not in err
