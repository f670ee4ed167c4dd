"""Files that are no graphs are named as what they are, with what to do.

The bytes were written by TensorFlow 2.21 (for a graph of two nodes), ONNX 1.23 and Keras 3.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main
from penstock.defs.codec import load_graph_def
from penstock.defs.wire import fields_of
from penstock.errors import InvalidArgumentError, NotFoundError, OpError
from support.graphs import graph_def

SAVED_MODEL: Final = b64decode(
    "CAES8wIKpAESdwowCgNOZWcSBgoBeCIBVBoGCgF5IgFUIhkKAVQSBHR5cGU6DgoMMgoOEwECBgUDCQgSCkMKC1BsYWNl"
    "aG9sZGVyGg8KBm91dHB1dCIFZHR5cGUiDQoFZHR5cGUSBHR5cGUiFAoFc2hhcGUSBXNoYXBlGgQ6AhgBIgVzZXJ2ZSoG"
    "Mi4yMS4wMhp2Mi4yMS4wLXJjMS01LWdhNDgxYjEwMjYwZBJ5CkIKAXgSC1BsYWNlaG9sZGVyKhYKDl9vdXRwdXRfc2hh"
    "cGVzEgQKAjoAKgsKBWR0eXBlEgIwASoLCgVzaGFwZRICOgAKLAoBeRIDTmVnGgF4KgcKAVQSAjABKhYKDl9vdXRwdXRf"
    "c2hhcGVzEgQKAjoAEgAiAwiqEypPCg9zZXJ2aW5nX2RlZmF1bHQSPAoOCgF4EgkKA3g6MBABGgASDgoBeRIJCgN5OjAQ"
    "ARoAGhp0ZW5zb3JmbG93L3NlcnZpbmcvcHJlZGljdA=="
)
META_GRAPH: Final = b64decode(
    "Cp8BEncKMAoDTmVnEgYKAXgiAVQaBgoBeSIBVCIZCgFUEgR0eXBlOg4KDDIKDhMBAgYFAwkIEgpDCgtQbGFjZWhvbGRl"
    "choPCgZvdXRwdXQiBWR0eXBlIg0KBWR0eXBlEgR0eXBlIhQKBXNoYXBlEgVzaGFwZRoEOgIYASoGMi4yMS4wMhp2Mi4y"
    "MS4wLXJjMS01LWdhNDgxYjEwMjYwZDgBEncKQgoBeBILUGxhY2Vob2xkZXIqFgoOX291dHB1dF9zaGFwZXMSBAoCOgAq"
    "CwoFZHR5cGUSAjABKgsKBXNoYXBlEgI6AAosCgF5EgNOZWcaAXgqBwoBVBICMAEqFgoOX291dHB1dF9zaGFwZXMSBAoC"
    "OgAiAwiqEw=="
)
INDEX: Final = b64decode(
    "AAAGCAEaAggBAAEPdggBEgQSAggCKAg1KQOYBwAAAAABAAAAAEvZgIkAAAAAAQAAAADA8qGwAAECdwAkAAAAAAEAAAAA"
    "lGCyzSkINg4AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABX+4CLJHVH2w=="
)
RECORDS: Final = b64decode("AwAAAAAAAACwmUkOYWJjblfxIQ==")
ONNX: Final = b64decode(
    "CA46MgoLCgF4EgF5IgNOZWcSAWdaDwoBeBIKCggIARIECgIIAWIPCgF5EgoKCAgBEgQKAggBQgIQHA=="
)
FINGERPRINT: Final = b64decode(
    "CJCr1LnEt4vKGBDfn4nWv7CBpicY9OHcnPqz+4O1ASCL9qS07fbguIkBKOal06qFtoeCBTICCAQ6JzMwMTExNzMyNTM1"
    "NjczODg5NDk0MzIxNTk5MDA2NzA0MTM3Mzc2Ng=="
)
#: How the files of other programs begin.
HDF5: Final = b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0"
TFLITE: Final = b"\x1c\0\0\0TFL3\x14\0 \0\x1c\0\x18\0\x14\0\x10\0\x0c\0\0\0"
LFS: Final = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
GRAPH: Final = graph_def("x = Placeholder\ny = Neg(x)").SerializeToString()
COMMANDS: Final = (["show"], ["run", "--fetch", "y"], ["ops", "--missing"])


def zipped(*names: str) -> bytes:
    """A zip archive of files of these names."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, b"content")
    return file.getvalue()


def tarred(*names: str) -> bytes:
    """A tar archive of empty files of these names."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    return file.getvalue()


def saved_array() -> bytes:
    """A .npy file."""
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


def memory_mapped() -> bytes:
    """A constant, the directory, and where the directory begins."""
    directory = b"\x0a\x1c\x12\x1amemmapped_package://.graph"
    return bytes(64) + directory + (64).to_bytes(8, "little")


#: What to do with what is a model, but no GraphDef; the command line opens it.
OPENED: Final = "penstock.load_model opens it"
#: Name, content, what it is, and what to do.
KINDS: Final[Sequence[tuple[str, bytes, str, str]]] = (
    ("saved_model.pb", SAVED_MODEL, "a SavedModel", OPENED),
    ("graph.pb", SAVED_MODEL, "a SavedModel", OPENED),
    (
        "saved_model.pbtxt",
        b"saved_model_schema_version: 1\n",
        "a SavedModel",
        OPENED,
    ),
    ("model.ckpt-7.meta", META_GRAPH, "a MetaGraphDef", OPENED),
    (
        "meta.pbtxt",
        b"\n# saved\nmeta_info_def {\n}\n",
        "a MetaGraphDef",
        OPENED,
    ),
    ("model.ckpt-7.index", INDEX, "part of a checkpoint", "the graph that was saved with it"),
    ("model.ckpt", INDEX, "part of a checkpoint", "it holds the values of variables"),
    ("m.data-00000-of-00001", bytes(8), "part of a checkpoint", "load_model(GRAPH, checkpoint="),
    (
        "checkpoint",
        b'model_checkpoint_path: "m-7"\n',
        "part of a checkpoint",
        "load_model(GRAPH, checkpoint=",
    ),
    ("fingerprint.pb", FINGERPRINT, "part of a SavedModel", "give its folder"),
    ("other.pb", FINGERPRINT, "a protobuf message of another kind", "give a GraphDef"),
    ("model.h5", HDF5, "an HDF5 file, perhaps a Keras model", OPENED),
    ("model.hdf5", HDF5, "an HDF5 file, perhaps a Keras model", OPENED),
    (
        "model.keras",
        zipped("metadata.json", "config.json", "model.weights.h5"),
        "a Keras model",
        OPENED,
    ),
    ("model.json", b'{"class_name": "Sequential"}', "the architecture of a Keras model", "Keras"),
    (
        "model.json",
        b' {"format": "graph-model", "modelTopology": {"node": []}}',
        "a TensorFlow.js model",
        OPENED,
    ),
    ("labels.json", b'["cat", "dog"]', "a JSON file", "binary or text format"),
    ("model.tflite", TFLITE, "a TensorFlow Lite model", "there is no way back from it"),
    ("model.onnx", ONNX, "an ONNX model", "Penstock needs a graph of TensorFlow"),
    ("model.pt", zipped("m/data.pkl", "m/data/0"), "a PyTorch file", "Penstock needs a graph"),
    ("model.pt", b"\x80\2}q\0.", "a Python pickle, perhaps a PyTorch file", "Penstock needs"),
    (
        "model.safetensors",
        (12).to_bytes(8, "little") + b'{"a":{}}    ',
        "a file of weights without a graph",
        "Penstock needs",
    ),
    ("model.pbmm", memory_mapped(), "a memory-mapped graph", "take the .pb file"),
    ("model.zip", zipped("m/frozen.pb", "m/a.txt"), "a zip archive", "perhaps m/frozen.pb"),
    ("model.tar", tarred("m/frozen.pb", "m/a.txt"), "a tar archive", "perhaps m/frozen.pb"),
    ("m.tar.gz", gzip.compress(tarred("a.txt")), "a tar archive", "unpack it"),
    ("model.pb.xz", b"\xfd7zXZ\0\0\4", "packed by xz", "unpack it"),
    ("cut.zip", zipped("m/frozen.pb")[:-9], "a damaged archive", "get the file again"),
    ("data.tfrecord", RECORDS, "a file of records", "give the graph"),
    ("x.npy", saved_array(), "a file of numpy arrays", "feed the arrays"),
    ("x.npz", zipped("x.npy"), "a file of numpy arrays", "feed the arrays"),
    ("x.png", b"\x89PNG\r\n", "an image", "feed the image"),
    ("model.pb", b"<!DOCTYPE html>\n<html></html>", "a web page", "open it in a browser"),
    ("model.pb", b"\n  <HTML><body>404</body>", "a web page", "open it in a browser"),
    ("model.pb", b'\xef\xbb\xbf<?xml version="1.0"?><Error/>', "a web page", "in a browser"),
    ("model.pb", LFS, "a pointer of Git LFS", "git lfs pull"),
    ("model.pb", b"", "empty", "get the file again"),
    ("model.pb", gzip.compress(b""), "empty", "get the file again"),
    ("model.pb", GRAPH[:-3], "a GraphDef that ends too early", "get it again"),
)


@pytest.mark.parametrize(
    ("name", "content", "what", "advice"), KINDS, ids=[f"{kind[0]}-{kind[2]}" for kind in KINDS]
)
def test_files_are_named(tmp_path: Path, name: str, content: bytes, what: str, advice: str) -> None:
    """The error for a file says what it is and what to do, to programs and to people."""
    path = tmp_path / name
    path.write_bytes(content)
    for open_it in (load_graph_def, ps.Session):
        with pytest.raises(InvalidArgumentError) as caught:
            open_it(path)  # type: ignore[operator]
        assert caught.value.reason == f"{path} is {caught.value.reason[len(str(path)) + 4 :]}"
        assert caught.value.reason.startswith(f"{path} is {what}")
        assert caught.value.reason.endswith(", not a GraphDef")
        assert advice in caught.value.next_step
    for command in COMMANDS if advice != OPENED else ():
        done = CliRunner().invoke(main, [*command, str(path)])
        assert done.exit_code == 1
        assert f"{path} is {what}" in done.stderr
        assert advice in done.stderr


def test_the_file_of_a_saved_model_is_opened(tmp_path: Path) -> None:
    """By its name the command line knows what its folder is, and says what is wrong with it."""
    (tmp_path / "saved_model.pb").write_bytes(SAVED_MODEL)
    done = CliRunner().invoke(main, ["show", str(tmp_path / "saved_model.pb")])
    assert done.exit_code == 0
    assert "a SavedModel, written by" in done.stdout
    done = CliRunner().invoke(main, ["ops", "--missing", str(tmp_path)])
    assert "lacks nothing" in done.stdout
    (tmp_path / "saved_model.pb").write_bytes(b"")
    for command in (["show"], ["run"], ["ops", "--missing"]):
        done = CliRunner().invoke(main, [*command, str(tmp_path)])
        assert done.exit_code == 1
        assert "the SavedModel is damaged: there is no graph in it" in done.stderr


def test_what_a_file_is_called_does_not_matter() -> None:
    """Bytes are recognised as well as files."""
    for name, content, what, _ in KINDS:
        if content and name not in ("fingerprint.pb", "m.data-00000-of-00001"):
            with pytest.raises(InvalidArgumentError, match=what):
                load_graph_def(content)


@pytest.mark.parametrize(
    ("files", "what", "advice"),
    [
        (
            ["saved_model.pb", "variables/variables.index"],
            "a SavedModel",
            OPENED,
        ),
        (["saved_model.pbtxt"], "a SavedModel", OPENED),
        (["checkpoint", "m.index"], "a folder with a checkpoint", "load_model(GRAPH, checkpoint="),
        (["variables.index"], "a folder with a checkpoint", "load_model(GRAPH, checkpoint="),
        (
            ["model.json", "group1-shard1of1.bin"],
            "a TensorFlow.js model",
            OPENED,
        ),
        (["frozen.pb", "labels.txt"], "a folder", "perhaps frozen.pb"),
        ([], "a folder", "such as frozen_graph.pb"),
    ],
)
def test_folders_are_named(tmp_path: Path, files: list[str], what: str, advice: str) -> None:
    """A folder is known by what lies in it."""
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(InvalidArgumentError) as caught:
        ps.Session(tmp_path)
    assert caught.value.reason == f"{tmp_path} is {what}, not a GraphDef"
    assert advice in caught.value.next_step
    for command in COMMANDS if what == "a folder" else ():
        done = CliRunner().invoke(main, [*command, str(tmp_path)])
        assert done.exit_code == 2
        assert f"{tmp_path} is {what}, not a GraphDef" in done.stderr
        assert advice in done.stderr


@pytest.mark.parametrize("suffix", [".index", ".meta"])
def test_the_prefix_of_a_checkpoint(tmp_path: Path, suffix: str) -> None:
    """What names several files of a checkpoint is no file, and is known all the same."""
    (tmp_path / f"model.ckpt-7{suffix}").touch()
    path = tmp_path / "model.ckpt-7"
    with pytest.raises(NotFoundError) as caught:
        load_graph_def(path)
    assert caught.value.reason == f"There is no file {path}; it is the prefix of a checkpoint"
    assert "load_model(GRAPH, checkpoint=" in caught.value.next_step
    done = CliRunner().invoke(main, ["show", str(path)])
    assert done.exit_code == 1
    assert str(path) in done.stderr


def test_a_name_that_is_nearly_right(tmp_path: Path) -> None:
    """A file that is not there is probably one that is."""
    (tmp_path / "frozen_graph.pb").touch()
    with pytest.raises(NotFoundError) as caught:
        load_graph_def(tmp_path / "frozen_grap.pb")

    assert caught.value.next_step == f"did you mean {tmp_path / 'frozen_graph.pb'}?"


def test_an_empty_graph_is_a_graph() -> None:
    """A definition without nodes says of which version it is; no bytes at all are one, too."""
    empty: Any = graph_def("")

    assert load_graph_def(empty.SerializeToString()) == empty
    assert not load_graph_def(b"").node


@pytest.mark.parametrize("content", [kind[1] for kind in KINDS], ids=[k[0] for k in KINDS])
def test_damage_is_no_reason_to_crash(content: bytes) -> None:
    """Whatever of a file is lost, the answer is an error of Penstock's."""
    for end in range(0, len(content), max(1, len(content) // 40)):
        for part in (content[:end], content[end:], content[:end] + b"\xff" + content[end + 1 :]):
            try:
                load_graph_def(part)
            except OpError as error:
                assert str(error)


def test_fields_add_up() -> None:
    """The fields of a message are all of it, unless some of it is lost."""
    fields = fields_of(SAVED_MODEL)

    assert [(field.number, field.type) for field in fields] == [(1, 0), (2, 2)]
    assert sum(field.size for field in fields) == len(SAVED_MODEL)
    assert fields[1].value(SAVED_MODEL) == SAVED_MODEL[-(fields[1].end - fields[1].start) :]
    assert len(fields_of(SAVED_MODEL[:-1])) == 1
    assert fields_of(b"\x03") == fields_of(b"\x00\x01") == fields_of(b"\xff" * 20) == []
