"""``penstock checkpoint``: list, get, diff."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import penstock as ps
from penstock.cli import main
from support.checkpoint_values import table

FILES = Path(__file__).parents[1] / "checkpoint" / "files"


def command(*args: object) -> Result:
    """A run of the command."""
    return CliRunner().invoke(main, ["checkpoint", *map(str, args)])


def test_list_says_names_types_sizes_and_parts() -> None:
    """One line per tensor, and how many there are."""
    shown = command("list", FILES / "names", "types/*float*", "texts")
    assert shown.exit_code == 0
    assert "format V2, 5 tensors, 20241 bytes" in shown.output
    rows = [line.split() for line in shown.output.splitlines()[1:]]
    assert ["types/float64", "float64[2,3]", "48"] in rows
    assert ["texts", "string[3,2]", "20,145"] in rows
    assert (
        "float32[10,3]  120  in parts: 0,4:-, 4,3:-, 7,3:-"
        in command("list", FILES / "parts").output
    )
    assert "format V1" in command("list", FILES / "v1").output


def test_names_alone_are_one_a_line() -> None:
    """For programs."""
    names = command("list", "--names", FILES / "names").output.splitlines()

    assert names == list(ps.checkpoint.load(FILES / "names"))


def test_get_prints_values() -> None:
    """Of a folder, those of its latest checkpoint."""
    assert "float32[2]  [1 2]" in command("get", FILES / "objects", "*layers/0/bias*").output
    assert "string  b'alone'" in command("get", FILES / "names", "text").output


def test_get_writes_files(tmp_path: Path) -> None:
    """One array, or several by their names, whatever these are."""
    assert command("get", FILES / "parts", "table", "--out", tmp_path / "t.npy").exit_code == 0
    assert np.array_equal(np.load(tmp_path / "t.npy"), table())
    odd = {"file": np.ones(2), "a/b": np.zeros(3), "args": [1]}
    ps.checkpoint.save(tmp_path / "ck", odd)
    assert command("get", tmp_path / "ck", "*", "--out", tmp_path / "t.npz").exit_code == 0
    with np.load(tmp_path / "t.npz") as arrays:
        assert {name: arrays[name].tolist() for name in arrays} == {
            "file": [1, 1], "a/b": [0, 0, 0], "args": [1],
        }  # fmt: skip


def test_diff_tells_what_differs(tmp_path: Path) -> None:
    """Names, types and elements, and an exit code."""
    ps.checkpoint.save(tmp_path / "one", {"a": [1.0, 2.0], "b": 1, "c": [1]})
    ps.checkpoint.save(tmp_path / "two", {"a": [1.0, 2.5], "b": 1, "c": [[1.0]]})

    same = command("diff", tmp_path / "one", tmp_path / "one")
    assert (same.exit_code, same.output) == (0, "the same 3 tensors\n")
    shown = command("diff", tmp_path / "one", tmp_path / "two")
    assert shown.exit_code == 1
    assert [line.split(maxsplit=1) for line in shown.output.splitlines()] == [
        ["a", "1 element differs, by up to 0.5"],
        ["c", "int64[1] and float64[1,1]"],
    ]
    assert command("diff", "--tolerance", "1", tmp_path / "one", tmp_path / "two").exit_code == 1


@pytest.mark.parametrize("args", [["list"], ["list", "--names"], ["get", "*"]])
def test_names_of_strangers_are_escaped(tmp_path: Path, args: list[str]) -> None:
    """No name moves the cursor or begins a line of its own."""
    ps.checkpoint.save(tmp_path / "ck", {"a\x1b[2J\nb\u202e": 1})
    verb, *rest = args
    shown = command(
        verb,
        *[one for one in rest if one != "*"],
        tmp_path / "ck",
        *[one for one in rest if one == "*"],
    )

    assert shown.exit_code == 0
    assert r"a\x1b[2J\nb\u202e" in shown.output
    assert "\x1b[2J" not in shown.output


def test_long_names_fit_the_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a narrow terminal, a name that is too long has a line of its own."""
    monkeypatch.setattr("penstock.cli.layout.width_of_terminal", lambda: 40)
    ps.checkpoint.save(tmp_path / "ck", {"x" * 60: [1.0], "y": [2.0]})
    lines = command("list", tmp_path / "ck").output.splitlines()[1:]

    assert [line for line in lines if len(line) > 40] == ["  " + "x" * 60]


def test_errors_say_what_is_missing(tmp_path: Path) -> None:
    """A name, a checkpoint, a damaged tensor: an exit code of 1, and no traceback."""
    for args in (["get", FILES / "names", "nothing"], ["list", tmp_path / "nothing"]):
        failed = command(*args)
        assert failed.exit_code == 1
        assert failed.output.startswith("NOT_FOUND: ")
    ps.checkpoint.save(tmp_path / "ck", {"a": [1.0]})
    data = tmp_path / "ck.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-1] + b"\x01")
    failed = command("get", tmp_path / "ck", "a")
    assert failed.exit_code == 1
    assert failed.output.startswith("DATA_LOSS: TensorBundle at ")


def test_a_model_has_its_own_checkpoint() -> None:
    """Of a SavedModel it is listed; what keeps its values elsewhere is named as what it is."""
    tests = FILES.parents[1]
    shown = command("list", "--names", tests / "saved_models" / "partitioned" / "model")
    assert shown.exit_code == 0
    assert shown.output.splitlines() == list(
        ps.checkpoint.load(tests / "saved_models" / "partitioned" / "model" / "variables/variables")
    )
    model = tests / "keras_models" / "dense.3.keras"
    failed = command("list", model)
    assert failed.exit_code == 1
    assert f"{model} is a model of Keras 3" in failed.output
    assert "which has no checkpoint" in failed.output
