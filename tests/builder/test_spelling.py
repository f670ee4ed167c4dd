"""Every op can be called by any obvious spelling of its name."""

from __future__ import annotations

import inspect
import keyword

import pytest

from penstock.builder import constant, ops
from penstock.builder.spelling import find_spelling, snake_case
from penstock.catalogue.registry import all_ops


@pytest.mark.parametrize(
    ("op", "spelling"),
    [
        ("MatMul", "mat_mul"),
        ("Conv2D", "conv2d"),
        ("BatchMatMulV2", "batch_mat_mul_v2"),
        ("L2Loss", "l2_loss"),
        ("IRFFT2D", "irfft2d"),
        ("FFT", "fft"),
        ("LRN", "lrn"),
        ("AddN", "add_n"),
        ("CTCLossV2", "ctc_loss_v2"),
        ("DepthwiseConv2dNative", "depthwise_conv2d_native"),
        ("TensorArrayV3", "tensor_array_v3"),
        ("_SwitchN", "_switch_n"),
        ("Namespace>TestStringOutput", "namespace_test_string_output"),
    ],
)
def test_snake_case_splits_words_where_a_reader_would(op: str, spelling: str) -> None:
    """A run of capitals is one word, and digits belong to the word before."""
    assert snake_case(op) == spelling


def test_snake_case_leads_back_to_every_op() -> None:
    """No two ops share a snake-case name, and each leads to its own op."""
    assert [find_spelling(snake_case(op)) for op in all_ops()] == all_ops()


def test_an_op_is_found_by_its_own_name() -> None:
    """The name in the catalogue is a spelling too."""
    assert [find_spelling(op) for op in all_ops()] == all_ops()


@pytest.mark.parametrize(
    ("spelling", "op"),
    [
        ("conv2_d", "Conv2D"),
        ("conv_2d", "Conv2D"),
        ("matmul", "MatMul"),
        ("l2loss", "L2Loss"),
        ("top_k_v2", "TopKV2"),
        ("irfft_2d", "IRFFT2D"),
        ("while_", "While"),
        ("Matmul", "MatMul"),
        ("recv", "Recv"),
        ("_recv", "_Recv"),
    ],
)
def test_underscores_may_stand_anywhere_that_leaves_one_meaning(spelling: str, op: str) -> None:
    """Variants of a spelling mean the same op; only a leading underscore tells ops apart."""
    assert find_spelling(spelling) == op


def test_a_stranger_is_refused_with_near_names() -> None:
    """A misspelt op is an AttributeError that names what may have been meant."""
    with pytest.raises(AttributeError, match="did you mean mat_mul"):
        _ = ops.mat_mull


def test_dir_lists_what_can_be_called() -> None:
    """Completion sees all public ops and what is written by hand, as identifiers."""
    names = dir(ops)

    assert {"mat_mul", "conv2d", "cond", "while_loop", "constant", "assert_"} <= set(names)
    assert all(name.isidentifier() and not keyword.iskeyword(name) for name in names)
    assert not any(name.startswith("_") for name in names)
    assert len(names) > 1500


def test_every_listed_function_is_there() -> None:
    """Each name that ``dir`` lists is an attribute, with a docstring."""
    assert all(getattr(ops, name).__doc__ for name in dir(ops))


def test_a_function_shows_its_signature() -> None:
    """Inputs and needed attributes come first, the others by keyword only."""
    signature = str(inspect.signature(ops.concat_v2))

    assert signature == "(values, axis, *, N=None, T=None, Tidx=int32, name=None)"
    assert "values: list of T" in ops.concat_v2.__doc__
    assert ops.concat_v2.__name__ == "concat_v2"
    assert ops.concat_v2 is ops.ConcatV2


def test_an_argument_that_python_keeps_for_itself_gets_an_underscore() -> None:
    """``in`` is no name in Python; ``in_`` stands for it."""
    result = ops.dtype_with_default_op(in_=constant(1))

    assert result.op.inputs[0].name == "Const:0"
