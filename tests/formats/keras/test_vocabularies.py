"""Vocabularies of models: where they may come from, and what is looked up in them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from formats.keras.test_refusals import FOLDER, changed
from penstock.formats.keras import read, rows, tables

ARCHIVE = "learned_texts.3.keras"
VOCABULARY = "assets/layers/text_vectorization/vocabulary.txt"
TEXTS = np.array([b"One red fish", b"blue, blue herrings"], object)


def settings(config: Any, class_name: str = "TextVectorization") -> dict[str, Any]:
    """The settings of the first layer of a class."""
    layers = config["config"]["layers"]
    found: dict[str, Any] = next(x["config"] for x in layers if x["class_name"] == class_name)
    return found


def first_answer(content: bytes | Path, x: np.ndarray) -> list[list[int]]:
    """What a model's first output is for its only input."""
    model = read(content)
    [given], first = model.inputs.values(), next(iter(model.outputs.values()))
    with ps.Session(model.graph) as session:
        found: list[list[int]] = session.run(first.tensor, {given.tensor: x}).tolist()
    return found


def test_a_vocabulary_is_read_from_the_archive() -> None:
    """Words have the numbers of their lines, and all others that of the second line."""
    lines = b"\n".join([b"", b"[UNK]", b"fish", b"blue", b"one"])
    content = changed(lambda _: None, ARCHIVE, **{VOCABULARY: lines})

    assert first_answer(content, TEXTS) == [[4, 1, 2], [3, 3, 1]]


def test_lines_may_end_as_in_windows() -> None:
    """A carriage return before the end of a line is no part of a word."""
    lines = b"\r\n".join([b"", b"[UNK]", b"fish", b"blue", b"one"])
    content = changed(lambda _: None, ARCHIVE, **{VOCABULARY: lines})

    assert first_answer(content, TEXTS) == [[4, 1, 2], [3, 3, 1]]


def test_a_vocabulary_outside_of_the_model_is_never_opened(tmp_path: Path) -> None:
    """A path as a vocabulary is refused, also of a file that is there."""
    path = tmp_path / "words.txt"
    path.write_text("fish\n")

    def put_in(config: Any) -> None:
        settings(config)["vocabulary"] = str(path)

    with pytest.raises(ps.errors.UnimplementedError, match="a file outside of the model"):
        read(changed(put_in, ARCHIVE))


def test_an_archive_without_its_vocabulary_says_so() -> None:
    """The layer is named, and that its vocabulary is missing."""
    with pytest.raises(ps.errors.NotFoundError, match=r"text_vectorization.*no vocabulary"):
        read(without_assets((FOLDER / ARCHIVE).read_bytes()))


def without_assets(content: bytes) -> bytes:
    """An archive without anything beside its weights."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            if not name.startswith("assets/"):
                new.writestr(name, old.read(name))
    return made.getvalue()


@pytest.mark.parametrize("key", ["standardize", "split"])
def test_functions_of_texts_are_never_run(key: str) -> None:
    """Python code that prepares texts is refused by its layer and its setting."""

    def put_in(config: Any) -> None:
        settings(config)[key] = {"class_name": "function", "config": "mine", "module": "builtins"}

    with pytest.raises(ps.errors.UnimplementedError, match=f"'{key}', which is never run"):
        read(changed(put_in, ARCHIVE))


def test_rows_of_different_lengths_are_refused() -> None:
    """A layer that would give ragged rows is an error that says so."""

    def put_in(config: Any) -> None:
        settings(config)["ragged"] = True

    with pytest.raises(ps.errors.UnimplementedError, match="rows of different lengths"):
        read(changed(put_in, ARCHIVE))


def test_a_word_outside_of_a_closed_vocabulary_fails_the_step() -> None:
    """With no number for unknown words, one of them is an error in TensorFlow's words."""
    content = changed(closed, "lookups.3.keras")
    model = read(content)
    first = next(iter(model.outputs.values())).tensor
    words = model.inputs["s"].tensor
    with ps.Session(model.graph) as session:
        assert session.run(first, {words: [[b"fish", b"blue", b"fish"]]}).tolist() == [[2, 1, 2]]
        with pytest.raises(ps.errors.InvalidArgumentError, match="all inputs should be in voc"):
            session.run(first, {words: [[b"fish", b"shark", b"fish"]]})


def closed(config: Any) -> None:
    """Take the number of unknown words from the lookup that makes the first output."""
    name = config["config"]["output_layers"][0][0]
    [layer] = [x for x in config["config"]["layers"] if x["name"] == name]
    layer["config"]["num_oov_indices"] = 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [([], "is empty"), (["a", "b", "a"], "twice"), (["a", 3], "has 3"), ([["a"]], r"has \['a'\]")],
)
def test_a_vocabulary_that_is_none_is_named(words: list[Any], problem: str) -> None:
    """Nothing, repeated words and other things than words are errors that say so."""

    def put_in(config: Any) -> None:
        settings(config, "StringLookup")["vocabulary"] = words

    with pytest.raises(ps.errors.InvalidArgumentError, match=f"vocabulary .*{problem}|{problem}"):
        read(changed(put_in, "lookups.3.keras"))


def test_words_with_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two words of a vocabulary have one hash, another function of words is taken."""
    expected = first_answer(FOLDER / ARCHIVE, TEXTS)
    monkeypatch.setattr(tables, "farmhash64", lambda _: 7)

    assert first_answer(FOLDER / ARCHIVE, TEXTS) == expected
    assert "StringToHashBucketStrong" in {
        operation.type for operation in read(FOLDER / ARCHIVE).graph.get_operations()
    }


def test_words_that_cannot_be_told_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words made to have equal hashes for all functions are an error, never another word."""
    monkeypatch.setattr(tables, "farmhash64", lambda _: 7)
    monkeypatch.setattr(tables, "siphash", lambda *_: 7)

    with pytest.raises(ps.errors.UnimplementedError, match="cannot be told apart"):
        read(FOLDER / ARCHIVE)


def test_an_unknown_word_with_a_known_hash_is_unknown() -> None:
    """What is found by its hash is compared, so that a word is never taken for another."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("string", [None])
        found = tables.find(x, [b"a", b"b"], lambda name, a: ps.ops.constant(a, name=name))
    with ps.Session(graph) as session:
        # Every word that is no entry lies beside some entry; none is equal to it.
        words = np.array([b"b", b"c", b"", b"zz", b"a"], object)
        is_there, place = session.run([found.is_there, found.place], {x: words})

    assert is_there.tolist() == [True, False, False, False, True]
    assert place[[0, 4]].tolist() == [1, 0]


def test_what_is_no_text_is_split_into_characters_all_the_same() -> None:
    """A byte that is no UTF-8 is U+FFFD, and begins and ends no other character."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("string", [None])
        split = rows.split_characters(x)
    with ps.Session(graph) as session:
        words = np.array([b"a\xffb", b"", "Zü".encode()], object)
        characters, splits = session.run([split.values, split.splits], {x: words})

    # As tf.strings.unicode_split says.
    assert [c.decode() for c in characters] == ["a", "\ufffd", "b", "Z", "ü"]
    assert splits.tolist() == [0, 3, 3, 5]


def test_a_layer_that_is_called_twice_has_one_vocabulary() -> None:
    """All calls of a layer share the constants that hold its words."""

    def call_twice(config: Any) -> None:
        layers = {layer["name"]: layer for layer in config["config"]["layers"]}
        once = layers["text_vectorization"]["inbound_nodes"]
        layers["text_vectorization"]["inbound_nodes"] = once * 2
        config["config"]["output_layers"].append(["text_vectorization", 1, 0])

    def words_of(content: bytes) -> int:
        nodes = read(content).graph.as_graph_def().node
        counts = [len(node.attr["value"].tensor.string_val) for node in nodes]
        return sum(count for count in counts if count > 1)

    twice = changed(call_twice, ARCHIVE)
    assert len(read(twice).outputs) == 5
    assert words_of(twice) == words_of((FOLDER / ARCHIVE).read_bytes())


def test_a_model_with_a_vocabulary_has_no_state() -> None:
    """Nothing has to be filled before a first step: there is no table in the graph."""
    for name in ("lookups.3.keras", ARCHIVE):
        kinds = {operation.type for operation in read(FOLDER / name).graph.get_operations()}
        assert not [kind for kind in kinds if "Table" in kind or "Variable" in kind]
