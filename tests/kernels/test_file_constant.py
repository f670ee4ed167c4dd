"""Constants that stand in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock import errors
from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from support.ops import run_op


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with four numbers."""
    made = tmp_path / "numbers"
    np.float32([1, 2, 3, 4]).tofile(made)
    return made


@pytest.mark.parametrize(("shape", "values"), [((2, 2), [[1, 2], [3, 4]]), ((2,), [1, 2]), ((), 1)])
def test_the_first_elements(shape: tuple[int, ...], values: object, path: Path) -> None:
    """As many as the shape wants."""
    attrs = {"dtype": dtypes.float32, "shape": TensorShape(shape)}
    assert run_op("ImmutableConst", memory_region_name=str(path), **attrs).tolist() == values


def test_files_that_do_not_do(path: Path) -> None:
    """Too short, not there, or of texts."""
    attrs = {"dtype": dtypes.float32, "shape": TensorShape((5,))}
    with pytest.raises(errors.InternalError, match=r"wrong length \(16\) when allocating 20"):
        run_op("ImmutableConst", memory_region_name=str(path), **attrs)
    with pytest.raises(errors.NotFoundError, match="No such file"):
        run_op("ImmutableConst", memory_region_name=f"{path}x", **attrs)
    with pytest.raises(errors.UnimplementedError, match="DT_STRING is not currently supported"):
        run_op("ImmutableConst", memory_region_name="", **{**attrs, "dtype": dtypes.string})
