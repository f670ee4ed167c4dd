"""What is no model of Keras, or holds what is never run, is refused by name."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.formats.keras import read
from penstock.formats.strict_json import MAX_DEPTH, parse_object

FOLDER = Path(__file__).resolve().parents[2] / "keras_models"


def changed(change: Any, name: str = "sequential.3.keras", **files: bytes) -> bytes:
    """An archive whose description was changed, and some of whose parts were replaced."""
    made = io.BytesIO()
    with zipfile.ZipFile(FOLDER / name) as old, zipfile.ZipFile(made, "w") as new:
        config = json.loads(old.read("config.json"))
        change(config)
        parts = {n: old.read(n) for n in old.namelist()} | {"config.json": json.dumps(config)}
        for part, content in {
            **parts,
            **{k.replace("__", "."): v for k, v in files.items()},
        }.items():
            new.writestr(part, content)
    return made.getvalue()


def test_python_code_of_a_file_is_never_run() -> None:
    """A Lambda layer is refused by its name, and its code is not looked at."""
    code = {"class_name": "__lambda__", "config": {"code": "4wAAAAA=", "defaults": None}}

    def put_in(config: Any) -> None:
        layer = config["config"]["layers"][-1]
        layer["class_name"] = "Lambda"
        layer["config"] = {"name": "sly", "function": code}

    with pytest.raises(
        ps.errors.UnimplementedError, match=r"'sequential\w*/sly' \(Lambda\).*never"
    ):
        read(changed(put_in))


def test_all_unknown_layers_are_named_at_once() -> None:
    """The error names each unknown layer, its class, where it stands, and what to do."""

    def put_in(config: Any) -> None:
        for layer in config["config"]["layers"][1:]:
            layer["class_name"] = "My" + layer["class_name"]
            layer["module"] = "my_package.layers"

    with pytest.raises(ps.errors.UnimplementedError) as caught:
        read(changed(put_in))

    for word in ("(MyDense)", "(MyDropout)", "my_package.layers", "model.export"):
        assert word in str(caught.value)


def test_names_of_strangers_are_shown_with_escapes() -> None:
    """A name that would move the cursor of a terminal is shown as an escape, and is no node's."""

    def put_in(config: Any) -> None:
        config["config"]["layers"][-1]["config"]["name"] = "a\x1b[2Jb/../c"

    model = read(changed(put_in))
    assert all("\x1b" not in name and ".." not in name.split("/") for name in model.graph.names())


def test_wrong_settings_are_named() -> None:
    """A setting of another kind than it must be is an error with the layer and the setting."""

    def put_in(config: Any) -> None:
        config["config"]["layers"][-1]["config"]["units"] = -3

    with pytest.raises(ps.errors.InvalidArgumentError, match=r"\(Dense\): 'units' must be"):
        read(changed(put_in))


def test_weights_of_another_model_are_named() -> None:
    """Weights that do not fit their layer are an error with both shapes."""

    def put_in(config: Any) -> None:
        config["config"]["layers"][-1]["config"]["units"] = 3

    with pytest.raises(ps.errors.InvalidArgumentError, match=r"has the shape \(5, 2\)"):
        read(changed(put_in))


def test_a_model_that_doubles_itself_is_refused() -> None:
    """Models inside of models whose calls multiply are counted before any is built."""
    layer = {"class_name": "Activation", "config": {"name": "t", "activation": "tanh"}}
    for depth in range(25):
        twice = [[["i", 0, 0, {}]], [[layer["config"]["name"], 0, 0, {}]]]
        entry = {**layer, "name": layer["config"]["name"], "inbound_nodes": twice}
        start = {"class_name": "InputLayer", "name": "i", "inbound_nodes": []}
        start["config"] = {"name": "i", "batch_input_shape": [None, 2], "dtype": "float32"}
        inner = {"layers": [start, entry], "input_layers": [["i", 0, 0]], "name": f"m{depth}"}
        inner["output_layers"] = [[entry["name"], 1, 0]]
        layer = {"class_name": "Functional", "config": inner}

    def put_in(config: Any) -> None:
        config.clear()
        config.update(layer)

    metadata = json.dumps({"keras_version": "2.15.0"}).encode()
    with pytest.raises(ps.errors.ResourceExhaustedError, match="a model calls 20000 at most"):
        read(changed(put_in, metadata__json=metadata))


def test_bombs_are_refused_before_they_are_unpacked() -> None:
    """A part of an archive that unpacks to thousands of times its size is not unpacked."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.json", '{"keras_version": "3.8.0"}')
        with archive.open("config.json", "w", force_zip64=True) as member:
            for _ in range(300):
                member.write(b" " * (1 << 20))

    with pytest.raises(ps.errors.OpError, match=r"config.json"):
        read(made.getvalue())


def test_deep_json_is_refused() -> None:
    """Brackets in brackets end at a depth that no model has, in text they do not count."""
    deep = b'{"a": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}"

    with pytest.raises(ps.errors.InvalidArgumentError, match="too deeply"):
        parse_object(deep, "it")
    assert parse_object(b'{"a": "' + b"[" * 9999 + b'"}', "it") == {"a": "[" * 9999}


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n", b"\x08\x01graph"])
def test_what_is_no_file_of_keras_is_an_error(content: bytes) -> None:
    """Files of other kinds, and beginnings of files, are refused by an OpError."""
    with pytest.raises(ps.errors.OpError):
        read(content)


def test_models_of_keras_1_are_refused_by_their_version() -> None:
    """Keras 1 named settings otherwise; the error says which Keras converts such files."""
    content = gzip.decompress((FOLDER / "sequential.2.h5.gz").read_bytes())
    version = content.replace(b"2.21.0", b"1.21.0")

    assert version != content
    with pytest.raises(ps.errors.UnimplementedError, match=r"Keras 1\.21\.0"):
        read(version)


@pytest.mark.parametrize("metadata", [None, b"{}", b'{"keras_version": "r.1"}'])
def test_an_archive_that_does_not_say_its_keras_is_damaged(metadata: bytes | None) -> None:
    """Settings mean other things in other versions, so that nothing is guessed."""
    made = io.BytesIO()
    with zipfile.ZipFile(FOLDER / "text.2.keras") as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            content = metadata if name == "metadata.json" else old.read(name)
            if content is not None:
                new.writestr(name, content)

    with pytest.raises(ps.errors.DataLossError, match=r"which Keras wrote it|says that Keras"):
        read(made.getvalue())


@pytest.mark.parametrize("key", ["fft_length", "num_mel_bins"])
def test_absurd_tables_of_sounds_are_refused(key: str) -> None:
    """A file cannot have a table made of 2³¹ numbers, which it would not even contain."""

    def put_in(config: Any) -> None:
        [layer, *_] = [x for x in config["config"]["layers"] if x["class_name"] == "MelSpectrogram"]
        layer["config"][key] = 2**31 - 1

    with pytest.raises(ps.errors.InvalidArgumentError, match=r"mel_spectrogram.*(taken|too many)"):
        read(changed(put_in, "sounds.3.keras"))
