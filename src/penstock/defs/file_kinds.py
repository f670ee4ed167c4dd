"""What a file is that holds no GraphDef, and what to do with it.

In:   the content of a file that could not be read as a GraphDef; or the names in a folder, and
      a path that is no file.
Out:  a ``FileKind``, or None if nothing is known about it.
Not:  reads no graph, and opens no file: what it is asked about may come from anywhere.

People call many things a model.  Each is recognised by its content, since names are often
wrong: a download that failed is an HTML page called ``model.pb``.
"""

from __future__ import annotations

import io
import os
import re
import struct
from collections.abc import Callable, Sequence
from typing import Final

from penstock.core.forks import importing
from penstock.core.similar import similar
from penstock.dataclass import dataclass
from penstock.defs import wire
from penstock.defs.crc32c import crc32c, mask
from penstock.defs.sorted_table import is_table


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is, with its article, and what to do to get a graph."""

    what: str
    advice: str


_OPEN: Final = (
    "penstock.load_model opens it; penstock show and run take it as it is; docs/models.md has more"
)
_RESTORE: Final = (
    "it holds the values of variables and no graph: penstock checkpoint list shows them; "
    "penstock.load_model(GRAPH, checkpoint=…) and penstock run GRAPH --checkpoint … open the graph "
    "that was saved with it"
)
_UNPACK: Final = "unpack it, and give the graph that is in it"
_ELSEWHERE: Final = "the framework that wrote it runs it; Penstock needs a graph of TensorFlow"

SAVED_MODEL: Final = FileKind("a SavedModel", _OPEN)
META_GRAPH: Final = FileKind("a MetaGraphDef (a .meta file)", _OPEN)
CHECKPOINT: Final = FileKind("part of a checkpoint", _RESTORE)
CHECKPOINT_FOLDER: Final = FileKind("a folder with a checkpoint", _RESTORE)
CHECKPOINT_PREFIX: Final = FileKind("the prefix of a checkpoint", _RESTORE)
KERAS: Final = FileKind("a Keras model", _OPEN)
_KERAS_JSON: Final = FileKind(
    "the architecture of a Keras model",
    "it has no weights: have Keras save the whole model, which penstock.load_model opens",
)
HDF5: Final = FileKind("an HDF5 file, perhaps a Keras model", _OPEN)
TFJS: Final = FileKind("a TensorFlow.js model", _OPEN)
_TFLITE: Final = FileKind(
    "a TensorFlow Lite model",
    "there is no way back from it: take the SavedModel or graph that it was converted from",
)
_ONNX: Final = FileKind("an ONNX model", _ELSEWHERE)
_PYTORCH: Final = FileKind("a PyTorch file", _ELSEWHERE)
_PICKLE: Final = FileKind("a Python pickle, perhaps a PyTorch file", _ELSEWHERE)
_WEIGHTS: Final = FileKind("a file of weights without a graph", _ELSEWHERE)
_NUMPY: Final = FileKind("a file of numpy arrays", "give the graph here, and feed the arrays to it")
_IMAGE: Final = FileKind("an image", "give the graph here, and feed the image to it")
_RECORDS: Final = FileKind(
    "a file of records (TFRecord, or events of TensorBoard)", "give the graph, not its data"
)
_HTML: Final = FileKind(
    "a web page", "the download gave an error or a form instead of the file: open it in a browser"
)
_LFS: Final = FileKind("a pointer of Git LFS", "git lfs pull brings the file that it stands for")
_JSON: Final = FileKind("a JSON file", "give a GraphDef in protobuf's binary or text format")
_MAPPED: Final = FileKind("a memory-mapped graph", "take the .pb file that it was converted from")
_CUT_OFF: Final = FileKind(
    "a GraphDef that ends too early", "get it again: it was not copied or downloaded to its end"
)

#: Where to look, for what, and what it means.
_MAGIC: Final[tuple[tuple[int, bytes, FileKind], ...]] = (
    (0, b"\x89HDF\r\n\x1a\n", HDF5),
    (4, b"TFL3", _TFLITE),
    (0, b"\x93NUMPY", _NUMPY),
    (0, b"\x89PNG", _IMAGE),
    (0, b"\xff\xd8\xff", _IMAGE),
    (0, b"GIF8", _IMAGE),
    (0, b"version https://git-lfs", _LFS),
    (0, b"GGUF", _WEIGHTS),
    (0, b"\xfd7zXZ\0", FileKind("packed by xz", _UNPACK)),
    (0, b"BZh", FileKind("packed by bzip2", _UNPACK)),
    (0, b"\x28\xb5\x2f\xfd", FileKind("packed by zstd", _UNPACK)),
    (0, b"7z\xbc\xaf\x27\x1c", FileKind("a 7z archive", _UNPACK)),
    (0, b"Rar!", FileKind("a RAR archive", _UNPACK)),
)
#: Beginnings of text, blanks and case aside, and what they mean.
_TEXTS: Final[tuple[tuple[re.Pattern[bytes], FileKind], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), kind)
    for pattern, kind in (
        (rb"<(!doctype html|html|head|\?xml|body)", _HTML),
        (rb"\{.*\"modelTopology\"\s*:", TFJS),
        (rb"\{.*\"class_name\"\s*:", _KERAS_JSON),
        (rb"[{\[]\s*[\"\]}\[{\d-]", _JSON),
        (rb"saved_model_schema_version\s*:", SAVED_MODEL),
        (rb"meta_graphs\s*[{<:]", SAVED_MODEL),
        (rb"(meta_info_def|graph_def|saver_def|collection_def|signature_def)\s*[{<:]", META_GRAPH),
        (rb"(model_checkpoint_path|all_model_checkpoint_paths)\s*:", CHECKPOINT),
    )
)
_COMMENT: Final = re.compile(rb"\s*(#[^\n]*\n\s*)*")
_SHARD: Final = re.compile(r"\.data-\d{5}-of-\d{5}$")
#: What lies in the folder of a SavedModel beside the graph.
_BESIDE: Final = ("fingerprint.pb", "keras_metadata.pb")


def kind_of(content: bytes, name: str = "") -> FileKind | None:
    """What ``content`` is, which is no GraphDef; ``name`` is what its file is called, if any."""
    if not content:
        return FileKind("empty", "get the file again: it was not copied or downloaded")
    if _SHARD.search(name):
        return CHECKPOINT
    if name in _BESIDE:
        return FileKind("part of a SavedModel", "give its folder")
    for recognise in _RECOGNISERS:
        found = recognise(content)
        if found is not None:
            return found
    return None


def kind_of_folder(names: Sequence[str]) -> FileKind:
    """What a folder is that was given instead of a file, by the names in it."""
    if {"saved_model.pb", "saved_model.pbtxt", "saved_model.cpb"} & set(names):
        return SAVED_MODEL
    if "model.json" in names:
        return TFJS
    if "checkpoint" in names or any(name.endswith(".index") for name in names):
        return CHECKPOINT_FOLDER
    graphs = [name for name in names if name.endswith((".pb", ".pbtxt"))]
    which = f"perhaps {' or '.join(graphs[:3])}" if graphs else "such as frozen_graph.pb"
    return FileKind("a folder", f"give the file that holds the graph, {which}")


def kind_of_nothing(path: str, names: Sequence[str]) -> FileKind:
    """What a path may mean that leads to no file; ``names`` are those in its folder."""
    folder, name = os.path.split(path)
    if {f"{name}.index", f"{name}.meta"} & set(names):
        return CHECKPOINT_PREFIX
    near = similar(name, names)
    paths = [os.path.join(folder, one) for one in near]
    return FileKind("", f"did you mean {' or '.join(paths)}?" if paths else "")


# -- one kind after the other ----------------------------------------------------------------


def _by_magic(content: bytes) -> FileKind | None:
    for at, magic, kind in _MAGIC:
        if content.startswith(magic, at):
            return kind
    return None


def _by_text(content: bytes) -> FileKind | None:
    start = _COMMENT.match(content.removeprefix(b"\xef\xbb\xbf")[:4096])
    begin = start.end() if start else 0
    head = content.removeprefix(b"\xef\xbb\xbf")[begin : begin + (1 << 20)]
    for pattern, kind in _TEXTS:
        if pattern.match(head):
            return kind
    return None


def _by_archive(content: bytes) -> FileKind | None:
    # Few files are looked into, and these take as long to import as protobuf's messages.
    with importing:
        import tarfile  # noqa: PLC0415
        import zipfile  # noqa: PLC0415

    try:
        if content.startswith((b"PK\3\4", b"PK\5\6")):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                return _of_members(archive.namelist(), "a zip archive")
        if content[257:262] == b"ustar":
            with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
                return _of_members(archive.getnames(), "a tar archive")
    except (zipfile.BadZipFile, tarfile.TarError, OSError, ValueError, NotImplementedError):
        return FileKind("a damaged archive", "get the file again")
    return None


def _of_members(names: Sequence[str], what: str) -> FileKind:
    """What an archive is, by what it contains."""
    bare = {os.path.basename(name) for name in names}
    if {"config.json", "metadata.json"} <= bare or "model.weights.h5" in bare:
        return KERAS
    if "data.pkl" in bare:
        return _PYTORCH
    if names and all(name.endswith(".npy") for name in names):
        return _NUMPY
    graphs = [name for name in names if name.endswith((".pb", ".pbtxt"))]
    inside = f": perhaps {' or '.join(graphs[:3])}" if graphs else ""
    return FileKind(what, _UNPACK + inside)


def _by_frame(content: bytes) -> FileKind | None:
    """Files whose structure says what they are."""
    if is_table(content):
        return CHECKPOINT
    # A memory-mapped graph ends with the place of its directory.
    (place,) = struct.unpack("<Q", content[-8:].rjust(8, b"\xff"))
    if place < len(content) and b"memmapped_package://" in content[place:]:
        return _MAPPED
    head = content[:8]
    if content[8:12] == struct.pack("<I", mask(crc32c(head))):
        return _RECORDS
    if content[8:10] == b'{"' and struct.unpack("<Q", head)[0] <= len(content):
        return _WEIGHTS  # safetensors: the size of its header, and the header
    if content[:1] == b"\x80" and content[1:2] in b"\2\3\4\5" and content.endswith(b"."):
        return _PICKLE
    return None


def _by_fields(content: bytes) -> FileKind | None:
    """Protobuf messages of other kinds, told by the numbers and types of their fields."""
    fields = wire.fields_of(content)
    is_whole = sum(field.size for field in fields) == len(content)
    if begins_with_node(content):
        return None if is_whole else _CUT_OFF
    if not is_whole:
        return None
    kinds = {(field.number, field.type) for field in fields}
    if {_VERSION, (7, wire.BYTES), (8, wire.BYTES)} <= kinds:
        return _ONNX
    if kinds == {_VERSION, _SECOND}:
        return SAVED_MODEL
    graphs = [field for field in fields if (field.number, field.type) == _SECOND]
    if len(graphs) == 1 and begins_with_node(graphs[0].value(content)):
        return META_GRAPH
    return FileKind("a protobuf message of another kind", "give a GraphDef")


#: Where ONNX and SavedModel have a version, and where SavedModel and MetaGraphDef have graphs.
_VERSION: Final = (1, wire.VARINT)
_SECOND: Final = (2, wire.BYTES)


def begins_with_node(content: bytes) -> bool:
    """Whether field 1 comes first and is a message with two texts: a node's name and op."""
    first = next(iter(wire.fields_of(content, 1)), None)
    if first is None or (first.number, first.type) != (1, wire.BYTES):
        return False
    parts = wire.fields_of(first.value(content))
    return [(part.number, part.type) for part in parts[:2]] == [(1, wire.BYTES), (2, wire.BYTES)]


_RECOGNISERS: Final[tuple[Callable[[bytes], FileKind | None], ...]] = (
    _by_magic, _by_archive, _by_frame, _by_text, _by_fields,
)  # fmt: skip
