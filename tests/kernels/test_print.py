"""Text for whoever watches the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.catalogue.registry import get_op
from penstock.core import dtypes
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import get_kernel
from support.ops import run_op


def test_print_shows_values_and_hands_on_its_input(capsys: pytest.CaptureFixture[str]) -> None:
    """As TensorFlow has it: the message, then each value in brackets, on standard error."""
    data = [np.array([1, 2, 3, 4], np.float32), b"a b", np.bool_(1)]

    assert run_op("Print", np.float32(7), data, message="m:", summarize=3) == 7
    assert capsys.readouterr().err == "m:[1 2 3...][a b][1]\n"


def test_print_stops_after_the_first_few(capsys: pytest.CaptureFixture[str]) -> None:
    """first_n counts the calls of one kernel."""
    op, kind = get_op("Print"), dtypes.float32
    values = {"T": kind, "U": (kind,), "message": b"", "first_n": 2, "summarize": 3}
    print_ = get_kernel("Print", "CPU", values).make(Attrs(op, values, (kind, kind), (kind,)))

    for number in range(4):
        print_(np.float32(0), np.float32(number))

    assert capsys.readouterr().err == "[0]\n[1]\n"


@pytest.mark.parametrize(
    ("stream", "where"), [("stdout", "out"), ("stderr", "err"), ("log(warning)", "err")]
)
def test_print_v2(stream: str, where: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The text goes out as it is, with its own end."""
    assert run_op("PrintV2", b"hello", output_stream=stream, end="!\n") is None
    assert getattr(capsys.readouterr(), where) == "hello!\n"


def test_print_v2_adds_to_files(tmp_path: Path) -> None:
    """What stands in the file already stays."""
    path = tmp_path / "log"
    for text in (b"one", b"two"):
        run_op("PrintV2", text, output_stream=f"file://{path}")

    assert path.read_text() == "one\ntwo\n"


def test_print_v2_refuses() -> None:
    """Streams that there are not, and text that is no scalar."""
    with pytest.raises(InvalidArgumentError, match="Unknown output stream: foo, Valid streams"):
        run_op("PrintV2", b"", output_stream="foo")
    with pytest.raises(InvalidArgumentError, match=r"expected to be scalar, but got \[1\]"):
        run_op("PrintV2", np.array([b"a"], object))
