"""Tensors, errors and options are the same when they have travelled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("grpc")

import contextlib

import penstock as ps
from penstock.cluster.tensor_wire import RecvTensorResponse, decode_answer, encode_answer
from penstock.cluster.wire_config import config_of, config_to_proto, options_to_proto
from penstock.cluster.wire_errors import MAX_TEXT, from_wire, to_wire
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import DEAD, dtype_of
from penstock.defs.tensors import from_proto
from penstock.errors import OpError, Where
from penstock.state.node_hook import NodeHook

PLAIN = [d for d in dtypes.ALL if not d.is_object and not d.is_ref]
SHAPES = [(), (0,), (3,), (2, 0, 5), (7, 11), (64, 129), (1, 4099, 3)]


def numbers(dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Values whose every bit pattern is one of the type's own."""
    count = int(np.prod(shape))
    raw = np.arange(count, dtype=np.int64) % 2
    if dtype.numpy.names is not None:  # quantised: an integer in a record
        return raw.astype(dtype.numpy[0]).view(dtype.numpy).reshape(shape)
    return raw.astype(dtype.numpy).reshape(shape)


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numbers_survive(dtype: DType, shape: tuple[int, ...]) -> None:
    """Of every type, small and large, with the shape that they have."""
    value = numbers(dtype, shape)
    content = encode_answer(value, is_dead=False)
    got, is_dead, *_ = decode_answer(content)
    assert not is_dead
    assert (dtype_of(got), np.shape(got)) == (dtype, shape)
    assert np.asarray(got).tobytes() == value.tobytes()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_ordinary_reader_reads_what_is_written(shape: tuple[int, ...]) -> None:
    """What is laid out by hand is the message that protobuf knows."""
    value = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    answer = RecvTensorResponse.FromString(encode_answer(value, is_dead=False))
    np.testing.assert_array_equal(from_proto(answer.tensor), value)
    assert not answer.is_dead
    assert answer.send_start_micros == 0


@pytest.mark.parametrize("rows", range(4090, 4125))
def test_large_tensors_are_read_in_place(rows: int) -> None:
    """However long the head is, the content is aligned, so that it need not be copied."""
    value = np.arange(2 * rows, dtype=np.float64).reshape(rows, 2)
    content = encode_answer(value, is_dead=False)
    got = decode_answer(content)[0]
    owner = got
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    assert owner.base is content or getattr(owner.base, "obj", None) is content
    assert got.flags.aligned
    assert not got.flags.writeable


def test_tensors_that_others_lay_out_are_read() -> None:
    """Content at any place, by protobuf's own writer; lists of numbers; no shape at all."""
    value = np.arange(8192, dtype=np.float64)
    answer = RecvTensorResponse()
    answer.tensor.dtype = dtypes.float64.number
    answer.tensor.tensor_shape.dim.add(size=8192)
    answer.tensor.tensor_content = value.tobytes()
    for micros in (0, 1, 1 << 40):
        answer.send_start_micros = micros
        np.testing.assert_array_equal(decode_answer(answer.SerializeToString())[0], value)
    answer.require_ack = True
    assert decode_answer(answer.SerializeToString())[2]
    answer.tensor.ClearField("tensor_content")
    answer.tensor.double_val.extend(value)
    np.testing.assert_array_equal(decode_answer(answer.SerializeToString())[0], value)


def test_strings_and_dead_tensors_survive() -> None:
    """Strings are lengths and bytes; a dead tensor has no value."""
    value = np.array([b"ab", b"", b"\x00\xff" * 20_000], object)
    np.testing.assert_array_equal(decode_answer(encode_answer(value, is_dead=False))[0], value)
    assert decode_answer(encode_answer(DEAD, is_dead=True))[:2] == (DEAD, True)


@given(st.binary(max_size=200), st.integers(0, 40_000))
def test_garbage_is_refused(head: bytes, more: int) -> None:
    """Whatever a stranger answers, it is a value or an OpError."""
    with contextlib.suppress(OpError):
        decode_answer(head + b"\x00" * more)


@given(st.data())
def test_damaged_answers_are_refused(data: st.DataObject) -> None:
    """So is what was an answer once."""
    content = bytearray(encode_answer(np.arange(5000, dtype=np.float32), is_dead=False))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 60))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(OpError):
        decode_answer(bytes(content))


ERRORS = [
    cls for cls in vars(ps.errors).values() if isinstance(cls, type) and issubclass(cls, OpError)
]


@pytest.mark.parametrize("cls", ERRORS[1:], ids=lambda cls: cls.__name__)
def test_errors_survive(cls: type[OpError]) -> None:
    """Class, sentence, details, place and advice are what they were."""
    place = Where("a/b_1", "MatMul", "/job:w/replica:0/task:1/device:CPU:0", "outer[3]/f", 7, "fn")
    error = cls("Something, somewhere", details=["  one", "  two"], where=place, next_step="go on")
    got = from_wire(*to_wire(error))
    assert (type(got), got.message) == (cls, error.message)
    assert (got.where, got.next_step, got.derived) == (place, "go on", False)


def test_what_follows_from_other_errors_is_marked() -> None:
    """As TensorFlow marks it, so that tasks of either kind find the cause."""
    error = ps.errors.CancelledError("gone", derived=True)
    code, text = to_wire(error)
    assert text == "[_Derived_]gone"
    assert from_wire(code, text).derived


def test_tensorflows_errors_are_read() -> None:
    """Their last line names the node."""
    got = from_wire(3, "nono : Tensor had NaN values\n\t [[{{node bad}}]]", origin="/job:w/task:1")
    assert got.node_name == "bad"
    assert got.details == ("From /job:w/task:1:",)


def test_long_errors_are_cut_in_the_middle() -> None:
    """A transport takes no long ones; the beginning and the end say most."""
    text = to_wire(ps.errors.InternalError("a" * 10_000 + "z"))[1]
    assert len(text) < MAX_TEXT + 50
    assert text.startswith("aaa")
    assert text.endswith("z")


@pytest.mark.parametrize("code", [0, 99, -1, 2**31])
def test_strange_codes_are_unknown_errors(code: int) -> None:
    """A stranger may send any number."""
    assert type(from_wire(code, "x")) is ps.errors.UnknownError


def test_options_survive() -> None:
    """All that TensorFlow's messages have words for; the rest is the server's."""
    config = ps.Config(
        device_count={"CPU": 3},
        allow_soft_placement=False,
        operation_timeout_in_ms=17,
        optimize_for_static_graph=True,
        disable_functional_ops_lowering=True,
        graph_options=ps.GraphOptions(
            optimizer_options=ps.OptimizerOptions(global_jit_level=ps.OptimizerOptions.ON_1),
            rewrite_options=ps.RewriterConfig(constant_folding=ps.RewriterConfig.OFF),
        ),
    )
    server = ps.Config(tier=ps.Tier.DATAFLOW, allow_files=False)
    got = config_of(config_to_proto(config), server)
    assert got.graph_options == config.graph_options
    for name in ("device_count", "allow_soft_placement", "operation_timeout_in_ms",
                 "optimize_for_static_graph", "disable_functional_ops_lowering"):  # fmt: skip
        assert getattr(got, name) == getattr(config, name)
    assert (got.tier, got.allow_files) == (ps.Tier.DATAFLOW, False)
    options = ps.RunOptions(trace_level=ps.TraceLevel.FULL_TRACE, timeout_in_ms=5)
    assert ps.RunOptions.of(options_to_proto(options)) == options


def test_options_that_have_no_words_are_refused() -> None:
    """What a message cannot say would be left out in silence; all else is in it."""
    said = options_to_proto(ps.RunOptions(timeout_in_ms=7, output_partition_graphs=True))
    assert (said.timeout_in_ms, said.output_partition_graphs) == (7, True)
    for own in ({"node_outputs": print}, {"node_hook": NodeHook()}):
        with pytest.raises(ps.errors.InvalidArgumentError, match="in this process"):
            options_to_proto(ps.RunOptions(**own))
