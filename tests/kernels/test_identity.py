"""Constants, identities, placeholders and shape assertions."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from penstock.errors import InvalidArgumentError
from support.ops import run_op

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("op", ["Const", "HostConst"])
def test_constants_are_read_only(op: str) -> None:
    """Nobody can change a constant by what a run returned."""
    value = run_op(op, value=MATRIX.copy(), dtype=dtypes.float32)

    np.testing.assert_array_equal(value, MATRIX)
    assert not value.flags.writeable


@pytest.mark.parametrize(
    "op", ["Identity", "StopGradient", "PreventGradient", "Snapshot", "DeepCopy", "GuaranteeConst"]
)
def test_identities_copy_nothing(op: str) -> None:
    """The very array that came in goes out."""
    assert run_op(op, MATRIX) is MATRIX


def test_identity_n_hands_on_every_input() -> None:
    """Values of different types go out in the order in which they came in."""
    assert run_op("IdentityN", [MATRIX, b"text"]) == (MATRIX, b"text")


def test_placeholder_with_default_does_not_look_at_the_shape() -> None:
    """TensorFlow infers shapes when the graph is made and checks none in the run."""
    shape = TensorShape((2, 4))

    assert run_op("PlaceholderWithDefault", MATRIX, shape=shape) is MATRIX


@pytest.mark.parametrize(
    ("dtype", "shape", "expected"),
    [
        (dtypes.float32, TensorShape((2, None)), "dtype float and shape [2,?]"),
        (dtypes.float16, TensorShape(()), "dtype half"),
        (dtypes.bool_, TensorShape(None), "dtype bool"),
    ],
)
def test_placeholders_ask_to_be_fed(dtype: dtypes.DType, shape: TensorShape, expected: str) -> None:
    """The message has TensorFlow's words, its spelling of types, and no shape of rank 0."""
    with pytest.raises(InvalidArgumentError) as caught:
        run_op("Placeholder", dtype=dtype, shape=shape)

    text = f"You must feed a value for placeholder tensor 'test_node' with {expected}"
    assert caught.value.reason == text


def test_ensure_shape_accepts_what_fits() -> None:
    """Unknown sizes and an unknown rank fit everything."""
    assert run_op("EnsureShape", MATRIX, shape=TensorShape((None, 3))) is MATRIX
    assert run_op("EnsureShape", b"text", shape=TensorShape(None)) == b"text"


def test_ensure_shape_refuses_what_does_not_fit() -> None:
    """Another size is an error that shows both shapes."""
    with pytest.raises(InvalidArgumentError, match=r"\[2,3\] is not compatible .* \[\?,4\]"):
        run_op("EnsureShape", MATRIX, shape=TensorShape((None, 4)))
