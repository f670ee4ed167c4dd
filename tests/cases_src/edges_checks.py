"""What ops refuse, and in which words: parts, blocks, sound, serialized messages, loops."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from cases_src.casebook import f32, graph, i32, i64, inf, nan, op, s, u8

_M = 2**31 - 1


def _zeros(*shape: int) -> Any:
    return f32(np.zeros(shape))


def offsets() -> list[Any]:
    """Where parts begin: beyond 32 bits the sums wrap around."""
    pair = [i32([1, 2]), i32([3, 2])]
    axis = i32(0)
    return [
        *(
            op("ConcatOffset", concat_dim=axis, shape=shapes)
            for shapes in ([i32([_M, 2])] * 3, [i32([2**30, 2])] * 5)
        ),
        op("ConcatOffset", concat_dim=i32(-1), shape=[i32([1, 2]), i32([1, 5])]),
        op("ConcatOffset", concat_dim=i32([0]), shape=pair, says="should be a scalar integer"),
        op("ConcatOffset", concat_dim=i32(2), shape=pair, says="dim is out of range: 2 vs. 2"),
        op("ConcatOffset", concat_dim=i32(-3), shape=pair, says="dim is out of range: -3 vs. 2"),
        op(
            "ConcatOffset",
            concat_dim=axis,
            shape=[i32([1, 2]), i32([3, 3])],
            says="Input 1 has shape [3 3] and doesn't match input 0 with shape [1 2]",
        ),
        op(
            "ConcatOffset",
            concat_dim=axis,
            shape=[i32([1, 2]), i32([3, 2, 1])],
            says="should contain 2 elements, but got 3",
        ),
        op(
            "ConcatOffset",
            concat_dim=axis,
            shape=[i32([1, 2]), i32([[3, 2]])],
            says="input 2 should be a vector, but got shape [1,2]",
        ),
        op("ConcatOffset", concat_dim=axis, shape=[i32(5), i32(7)], says="input 1 should be a"),
    ]


def shapes() -> list[Any]:
    """A shape that is not what was promised."""
    says = "is not compatible with expected shape"
    return [
        op("EnsureShape", input=_zeros(2, 3), shape=[2, 4], says=f"[2,3] {says} [2,4]"),
        op("EnsureShape", input=_zeros(2, 3), shape=[None, 4], says=f"[2,3] {says} [?,4]"),
        op("EnsureShape", input=_zeros(2, 3), shape=[2], says=f"[2,3] {says} [2]"),
        op("EnsureShape", input=_zeros(), shape=[1], says=f"[] {says} [1]"),
        op("EnsureShape", input=s([b"a"]), shape=[2], says=f"[1] {says} [2]"),
    ]


def splits() -> list[Any]:
    """Parts that do not make up the whole."""
    wholes: list[tuple[Any, Any, int, str]] = [
        (i32(0), _zeros(3, 2), 2, "Number of ways to split should evenly divide"),
        (i32(5), _zeros(3, 2), 2, "-input rank(-2) <= split_dim < input rank (2), but got 5"),
        (i32(-3), _zeros(3, 2), 2, "-input rank(-2) <= split_dim < input rank (2), but got -3"),
        (i32([0]), _zeros(4, 2), 2, "split_dim must be a scalar but has rank 1"),
        (i32(0), _zeros(), 2, "-input rank(-0) <= split_dim < input rank (0), but got 0"),
        (i32(0), _zeros(0, 2), 2, ""),
    ]
    parts: list[tuple[Any, Any, str]] = [
        (i32([1, 2]), i32(0), "Determined shape must either match input shape along split_dim"),
        (i32([-1, -1]), i32(0), "There can only be one -1 in the input"),
        (i32([-1, 5]), i32(0), "Determined shape must either match input shape along split_dim"),
        (i32([-2, 6]), i32(0), "Split size at index 0 must be >= 0. Got: -2"),
        (i32([1, 2, 1]), i32(0), "size of the split_tensor must be 1-D and have the same elements"),
        (i32([[1, 3]]), i32(0), "size of the split_tensor must be 1-D and have the same elements"),
        (i32([1, 3]), i32(2), "-input rank(-2) <= split_dim < input rank (2), but got 2"),
        (i32([1, 3]), i32([0, 0]), "split_dim_tensor must have exactly one element"),
    ]
    return [
        *(
            op("Split", axis=axis, value=value, num_split=count, says=says)
            for axis, value, count, says in wholes
        ),
        *(
            op("SplitV", value=_zeros(4, 2), size_splits=sizes, axis=axis, num_split=2, says=says)
            for sizes, axis, says in parts
        ),
    ]


def _list_split(tf: Any, values: Any, shape: Any, lengths: Any) -> Any:
    parts = tf.raw_ops.TensorListSplit(tensor=values, element_shape=shape, lengths=lengths)
    wanted = {"index": 0, "element_shape": shape, "element_dtype": values.dtype}
    first = tf.raw_ops.TensorListGetItem(input_handle=parts, **wanted)
    return [tf.raw_ops.TensorListLength(input_handle=parts), first]


def list_splits() -> list[Any]:
    """A list of parts of a tensor."""
    rows: list[tuple[list[int], str]] = [
        ([1, 3], ""),
        ([4, 0], ""),
        ([1, 2], "Unused values in tensor. Length of tensor: 4 Values used: 3"),
        ([1, 4], "Attempting to slice [1, 5] from tensor with length 4"),
        ([5, -1], "Attempting to slice [0, 5] from tensor with length 4"),
        ([], "Unused values in tensor. Length of tensor: 4 Values used: 0"),
    ]
    return [
        graph(_list_split, _zeros(4, 2), i32([-1, 2]), i64(lengths), says=says)
        for lengths, says in rows
    ]


# -- blocks ----------------------------------------------------------------------------


def blocks() -> list[Any]:
    """Images that blocks do not fit into."""
    image = _zeros(1, 2, 2, 4)
    to_space: list[tuple[Any, int, str]] = [
        (image, 3, "Input depth dimension 4 should be divisible by: 9"),
        (image, 46340, "Input depth dimension 4 should be divisible by: 2147395600"),
        (image, 46341, "Block size should be > 1 and <= 46340 but was: 46341"),
        (image, _M, f"Block size should be > 1 and <= 46340 but was: {_M}"),
        (_zeros(2, 2, 4), 2, "Input rank should be: 4 instead of: 3"),
        (_zeros(0, 2, 2, 4), 2, ""),
        (_zeros(1, 0, 2, 4), 2, ""),
        (_zeros(1, 2, 2, 0), 2, ""),
    ]
    to_depth: list[tuple[Any, int, str]] = [
        (image, 3, "Image width 2 and height 2 should be divisible by block_size: 3"),
        (_zeros(1, 3, 2, 4), 2, "Image width 2 and height 3 should be divisible by block_size: 2"),
        (image, _M, f"Image width 2 and height 2 should be divisible by block_size: {_M}"),
        (_zeros(2, 2, 4), 2, "Input rank should be 4 instead of 3"),
        (_zeros(1, 0, 2, 4), 2, ""),
    ]
    return [
        op(name, input=value, block_size=size, says=says)
        for name, cases in (("DepthToSpace", to_space), ("SpaceToDepth", to_depth))
        for value, size, says in cases
    ]


# -- sound -----------------------------------------------------------------------------


def _wav(
    samples: bytes = b"\1\2\3\4", *, channels: int = 1, rate: int = 8, kind: int = 1,
    bits: int = 16, rate_in_bytes: int = -1, block: int = -1, form: int = 16, size: int = -1,
    magic: bytes = b"RIFF", wave: bytes = b"WAVE", between: bytes = b"", name: bytes = b"data",
) -> bytes:  # fmt: skip
    """A WAV file, of which anything may be wrong."""
    block = 2 * channels if block < 0 else block
    per_second = rate * block if rate_in_bytes < 0 else rate_in_bytes
    facts = struct.pack("<IHHIIHH", form, kind, channels, rate, per_second, block, bits)
    count = struct.pack("<I", len(samples) if size < 0 else size)
    head = magic + struct.pack("<I", 36 + len(samples)) + wave + b"fmt "
    return head + facts + between + name + count + samples


def _chunk(content: bytes, size: int = -1) -> bytes:
    return b"LIST" + struct.pack("<I", len(content) if size < 0 else size) + content


_SHORT = "Data too short when trying to read string"
WAVS: list[tuple[bytes, str]] = [
    (_wav(), ""),
    (_wav(channels=2), ""),
    (_wav(b""), ""),
    (_wav(form=18, between=b"\0\0"), ""),
    (_wav(size=5), ""),
    (_wav(rate=0), ""),
    (_wav(between=_chunk(b"abcd")), ""),
    (_wav(between=_chunk(b"abc")), ""),
    (_wav() + _wav(), ""),
    (_wav(channels=0), "Bad number of channels for WAV: Expected at least 1, but got 0"),
    (_wav(kind=3), "Bad audio format for WAV: Expected 1 (PCM), but got3"),
    (_wav(bits=8), "Can only read 16-bit WAV files, but received 8"),
    (_wav(block=7), "Bad bytes per sample in WAV header: Expected 2 but got 7"),
    (
        _wav(rate_in_bytes=3),
        "Bad bytes per second in WAV header: Expected 16 but got 3 (sample_rat",
    ),
    (_wav(form=15), "Bad format chunk size for WAV: Expected 16 or 18, but got15"),
    (_wav(form=18), "No data chunk found in WAV"),
    (_wav(name=b"LIST"), "No data chunk found in WAV"),
    (_wav(size=2**31), "WAV data chunk 'data' is too large: 2147483648 bytes, but the limit is"),
    (_wav(between=_chunk(b"", 2**32 - 1)), "WAV data chunk 'LIST' is too large: 4294967295 bytes"),
    (_wav(magic=b"RIFX"), "Header mismatch: Expected RIFF but found RIFX"),
    (_wav(wave=b"AIFF"), "Header mismatch: Expected WAVE but found AIFF"),
    (_wav(between=_wav()[36:]), "More than one data chunk found in WAV"),
    (_wav(size=3), _SHORT),
    (_wav(b"\1\2\3"), _SHORT),
    (_wav(channels=3), _SHORT),
    *((_wav()[:cut], _SHORT) for cut in (0, 3, 20, 30, 40)),
]


def sound_files() -> list[Any]:
    """WAV files with what may be in them; samples that are no samples."""
    stereo = s(_wav(b"\1\2\3\4\5\6\7\x88", channels=2))
    limits = [nan, inf, -inf, 1e30, 0.99999, -1.01]
    audio = f32([*(at / 65536 for at in range(-9, 10)), *limits]).reshape(-1, 1)
    return [
        *(op("DecodeWav", contents=s(data), says=says) for data, says in WAVS),
        *(
            op("DecodeWav", contents=contents, **more)
            for contents in (stereo, s(_wav()))
            for more in (
                {"desired_channels": 2}, {"desired_channels": 0}, {"desired_samples": 5},
                {"desired_samples": 0}, {"desired_channels": 1, "desired_samples": 1},
            )
        ),
        op("DecodeWav", contents=s([_wav()]), says="contents must be scalar"),
        op("EncodeWav", audio=audio, sample_rate=i32(8000)),
        op("EncodeWav", audio=_zeros(0, 1), sample_rate=i32(_M)),
        op("EncodeWav", audio=_zeros(1, 40_000), sample_rate=i32(_M)),
        *(
            op("EncodeWav", audio=audio, sample_rate=i32(rate), says=f"in (0, 2^32), got: {shown}")
            for rate, shown in ((0, 0), (-1, 2**64 - 1))
        ),
        *(
            op("EncodeWav", audio=_zeros(2, count), sample_rate=i32(8), says="must be in (0, 2^16)")
            for count in (0, 65536, 70_000)
        ),
        op("EncodeWav", audio=_zeros(3), sample_rate=i32(8), says="must be 2-dimensional"),
        op("EncodeWav", audio=audio, sample_rate=i32([8]), says="should be a scalar tensor, got"),
    ]  # fmt: skip


def sound_summaries() -> list[Any]:
    """Sound in summaries: rates are rounded, and may be in a list of one."""
    tag, tone = s(b"t"), f32(np.linspace(-1.5, 1.5, 6)).reshape(1, 3, 2)

    def case(tensor: Any = tone, rate: Any = 8000, says: str = "", title: Any = tag) -> Any:
        sample_rate = f32(rate)
        return op("AudioSummaryV2", tag=title, tensor=tensor, sample_rate=sample_rate, says=says)

    return [
        *(case(_zeros(*shape)) for shape in ((5, 3), (2, 3, 2), (0, 3, 1), (2, 0, 1))),
        *(case(rate=rate) for rate in (44100.5, 44101.5, 0.3, 0.7, 2**31, 4294967040, [5.5])),
        *(
            case(rate=rate, says=f"must be in (0, 2^32), got: {shown}")
            for rate, shown in ((2**32, 2**32), (inf, 2**63))
        ),
        *(case(rate=rate, says="sample_rate must be > 0") for rate in (0, -1, nan)),
        case(rate=[1, 2], says="sample_rate must be rank-0 or contain a single value"),
        case(title=s([b"t"]), says="Tag must be a scalar"),
        case(_zeros(3), says="Tensor must be 3-D or 2-D, got: [3]"),
        case(_zeros(1, 3, 0), says="audio is null"),
        case(_zeros(1, 3, 70_000), says="num_channels must be in (0, 2^16), got: 70000"),
        op("ImageSummary", tag=s([b"t"]), tensor=u8(np.zeros((1, 2, 2, 3))), says="Tags must be a"),
        op(
            "ImageSummary",
            tag=tag,
            tensor=u8(np.zeros((1, 0, 2, 3))),
            says="input tensor must have non-zero dims. Found: [1, 0, 2, 3].",
        ),
        op("ImageSummary", tag=tag, tensor=u8(np.zeros((0, 2, 2, 3)))),
    ]


# -- messages --------------------------------------------------------------------------


def tensors() -> list[Any]:
    """Serialized tensors that are none, or another."""
    return [
        op("ParseTensor", serialized=s(b"\7"), out_type="float32", says="Could not parse"),
        op("ParseTensor", serialized=s([b"a"]), out_type="float32", says="to be a scalar"),
        op("ParseTensor", serialized=s(b""), out_type="float32", says="Cannot parse tensor from"),
        op(
            "ParseTensor",
            serialized=s(b"\x08\3\x12\0\x3a\1\1"),
            out_type="float32",
            says="Type mismatch between parsed tensor (int32) and dtype (float)",
        ),
        op(
            "ParseTensor",
            serialized=s(b"\x08\3\x12\4\x12\2\x08\5\x22\1\1"),
            out_type="int32",
            says="Cannot parse tensor from proto",
        ),
        op("ParseTensor", serialized=s(b"\x08\3\x12\2\x18\1"), out_type="int32"),
    ]


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def _example(**features: bytes) -> bytes:
    items = (_field(1, k.encode()) + _field(2, v) for k, v in features.items())
    return _field(1, b"".join(_field(1, item) for item in items))


def _floats(*values: float) -> bytes:
    return _field(2, _field(1, struct.pack(f"<{len(values)}f", *values)))


def _integers(*values: int) -> bytes:
    return _field(3, _field(1, bytes(values)))


def _texts(*values: bytes) -> bytes:
    return _field(1, b"".join(_field(1, value) for value in values))


_GOOD = _example(x=_floats(1, 2), y=_integers(3))
_MISSING = "Feature: x (data type: float) is required but could not be found."


def _many(serialized: Any, default: Any = (), says: str = "", **more: Any) -> Any:
    given: dict[str, Any] = {
        "names": s([]), "sparse_keys": [], "dense_keys": [s(b"x")], "sparse_types": [],
        "dense_shapes": [[2]], "dense_defaults": [f32(default)],
    }  # fmt: skip
    return op("ParseExample", serialized=s(serialized), says=says, **{**given, **more})


def _newer(serialized: Any, default: Any = (), says: str = "", **more: Any) -> Any:
    given: dict[str, Any] = {
        "names": s([]), "sparse_keys": s([]), "dense_keys": s([b"x"]), "ragged_keys": s([]),
        "num_sparse": 0, "sparse_types": [], "ragged_value_types": [], "ragged_split_types": [],
        "dense_shapes": [[2]], "dense_defaults": [f32(default)],
    }  # fmt: skip
    return op("ParseExampleV2", serialized=s(serialized), says=says, **{**given, **more})


def _single(serialized: bytes, default: Any = (), says: str = "", **more: Any) -> Any:
    given: dict[str, Any] = {
        "num_sparse": 0, "sparse_keys": [], "dense_keys": ["x"], "sparse_types": [],
        "dense_shapes": [[2]], "dense_defaults": [f32(default)],
    }  # fmt: skip
    return op("ParseSingleExample", serialized=s(serialized), says=says, **{**given, **more})


def batches_of_examples() -> list[Any]:
    """Examples without what is wanted, with too much of it, or with something else."""
    one, three = _example(x=_floats(1)), _example(x=_floats(1, 2, 3))
    named = "Expected names have the same shape as serialized: name.shape="
    sparse: dict[str, Any] = {"sparse_keys": [s(b"x")], "sparse_types": ["float32"]}
    newer: dict[str, Any] = {"sparse_keys": s([b"x"]), "sparse_types": ["float32"], "num_sparse": 1}
    ragged: dict[str, Any] = {
        "ragged_keys": s([b"x"]), "ragged_value_types": ["float32"],
        "ragged_split_types": ["int32"],
    }  # fmt: skip
    return [
        _many([_GOOD, _GOOD]),
        _many([_GOOD], names=s([b"n"])),
        _many([_example(y=_integers(3))], [5, 6]),
        _many([b"\7"], says="Could not parse example input"),
        _many([_example(y=_integers(3))], says=f"Name: <unknown>, {_MISSING}"),
        _many([_example(y=_integers(3))], names=s([b"n"]), says=f"Name: n, {_MISSING}"),
        _many([one], says="Number of float values != expected.  Values size: 1 but output shape"),
        _many([_GOOD, three], says="Key: x, Index: 1.  Number of float values != expected."),
        _many([_example(x=_integers(1, 2))], says="Data types don't match. Data type: int64 but"),
        _many([_GOOD], names=s([b"a", b"b"]), says=f"{named}[2], serialized.shape=[1]"),
        _newer([_GOOD], names=s(b"a"), says=f"{named}[], serialized.shape=[1]"),
        _newer(_GOOD, names=s([b"a"]), says=f"{named}[1], serialized.shape=[]"),
        _newer([_GOOD], sparse_types=["float32"], num_sparse=1, says="sparse_keys) == num_sparse"),
        # What is asked for twice is not found.
        _many([_GOOD], [5, 6], **sparse),
        _many([_GOOD], says=_MISSING, **sparse),
        _newer([_GOOD], [5, 6], **newer),
        _newer([_GOOD], [5, 6], **ragged),
        _single(_GOOD, [5, 6], sparse_keys=["x"], num_sparse=1, sparse_types=["float32"]),
    ]


def single_examples() -> list[Any]:
    """A single example is read otherwise, and so its faults have other names."""
    number, text = "int64_list slice was not parsed", "bytes_list slice was not parsed"
    rows: list[tuple[bytes, Any, str]] = [
        (_floats(1, 2), f32([]), ""),
        (b"", f32([7, 8]), ""),
        (b"", f32([]), _MISSING),
        *((_floats(*v), f32([]), "Some float_list slice was not") for v in ((1,), (), (1, 2, 3))),
        *((_integers(*v), i64([]), number) for v in ((1,), (), (1, 2, 3))),
        *((_texts(*v), s([]), text) for v in ((b"a",), ())),
        (_texts(b"a", b"b", b"c"), s([]), "Parsing bytes_list failed."),
        (_integers(1, 2), f32([]), "Key: x.  Data types don't match. Data type: int64 but"),
    ]
    return [
        make(_example(x=feature), says=says, dense_defaults=[default])
        for feature, default, says in rows
        for make in (_single, _newer)
    ]


# -- loops -----------------------------------------------------------------------------


def _for(tf: Any, start: Any, limit: Any, delta: Any) -> Any:
    """How often the body runs."""
    import tensorflow

    @tensorflow.function
    def body(_: Any, total: Any) -> Any:
        return total + 1.0

    number, value = tensorflow.TensorSpec([], tf.int32), tensorflow.TensorSpec(None, tf.float32)
    concrete = body.get_concrete_function(number, value)
    concrete.add_to_graph(tf.get_default_graph())
    bounds = {"start": start, "limit": limit, "delta": delta}
    return [tf.raw_ops.For(**bounds, input=[tf.constant(1.0)], body=concrete)]


def loops() -> list[Any]:
    """Bounds that are none, or never met."""
    wrong = "Invalid start/limit/delta:"
    rows: list[tuple[Any, Any, Any, str]] = [
        (0, 3, 1, ""),
        (0, 7, 3, ""),
        (0, -7, -3, ""),
        (3, 3, 0, ""),
        (_M - 2, _M, 2, ""),
        (0, 3, 0, f"{wrong} 0 3 0"),
        (3, 0, 1, f"{wrong} 3 0 1"),
        (0, 3, -1, f"{wrong} 0 3 -1"),
        ([0], 3, 1, "start must be a scalar, but [1]"),
        (0, [[3]], 1, "limit must be a scalar, but [1,1]"),
        (0, 3, [1, 1], "delta must be a scalar, but [2]"),
    ]
    return [
        graph(_for, i32(start), i32(limit), i32(delta), says=says)
        for start, limit, delta, says in rows
    ]


CASES = [
    *offsets(),
    *shapes(),
    *splits(),
    *list_splits(),
    *blocks(),
    *sound_files(),
    *sound_summaries(),
    *tensors(),
    *batches_of_examples(),
    *single_examples(),
    *loops(),
]
