"""Files of events, written by graphs: what TensorFlow's own writer puts there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Session, errors
from penstock.core.files import FileSystem
from penstock.defs.event_file import EventFile
from penstock.defs.schema import Event, Summary, SummaryMetadata
from penstock.kernels.io.readers import tf_records
from support.sketch import sketch

GRAPH = """
    w = SummaryWriter() shared_name='w'
    folder = Placeholder() dtype=string
    most = Placeholder() dtype=int32
    suffix = Placeholder() dtype=string
    make = CreateSummaryFileWriter(w, folder, most, most, suffix)
    step = Placeholder() dtype=int64
    tag = Placeholder() dtype=string
    text = Placeholder() dtype=string
    x = Placeholder() dtype=float32
    color = Placeholder() dtype=uint8
    scalar = WriteScalarSummary(w, step, tag, x) T=float32
    tensor = WriteSummary(w, step, x, tag, text) T=float32
    histogram = WriteHistogramSummary(w, step, tag, x) T=float32
    image = WriteImageSummary(w, step, tag, x, color) T=float32 max_images=1
    audio = WriteAudioSummary(w, step, tag, x, x) max_outputs=1
    raw = WriteRawProtoSummary(w, step, text)
    graph = WriteGraphSummary(w, step, text)
    event = ImportEvent(w, text)
    flush = FlushSummaryWriter(w)
    close = CloseSummaryWriter(w)
"""


class Writer:
    """A session with a writer, and what it wrote."""

    def __init__(self, folder: Path) -> None:
        self.session = Session(sketch(GRAPH))
        self.folder = folder

    def run(self, node: str, **given: Any) -> None:
        """Run a node with these inputs."""
        feeds = {f"{key}:0": value for key, value in given.items()}
        self.session.run(node, feeds)

    def make(self) -> None:
        """Begin the file."""
        self.run("make", folder=bytes(self.folder), most=np.int32(100), suffix=b".v2")

    def events(self) -> list[Any]:
        """All events of the only file."""
        (path,) = self.folder.glob("*")
        found = []
        for _, record in tf_records(FileSystem(), "")(str(path)):
            event = Event()
            event.ParseFromString(record)
            found.append(event)
        return found


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    """A writer whose file is begun."""
    made = Writer(tmp_path / "log")
    made.make()
    with made.session:
        yield made


def test_the_first_event_says_what_the_file_is(writer: Writer) -> None:
    """It is there at once, in a file whose name says when and by whom."""
    (path,) = writer.folder.glob("*")
    (first,) = writer.events()

    assert path.name.startswith("events.out.tfevents.1")
    assert path.name.endswith(".v2")
    assert first.file_version == "brain.Event:2"
    assert first.wall_time > 1e9


def test_scalars_and_tensors(writer: Writer) -> None:
    """Events have their step, and what was written, after a flush."""
    metadata = SummaryMetadata(display_name="d").SerializeToString()
    writer.run("scalar", step=np.int64(3), tag=b"s", x=np.float32(1.5))
    writer.run("tensor", step=np.int64(4), tag=b"t", x=np.float32([1, 2]), text=metadata)
    writer.run("flush")
    _, scalar, tensor = writer.events()

    assert (scalar.step, scalar.summary.value[0].tag) == (3, "s")
    assert scalar.summary.value[0].simple_value == 1.5
    assert tensor.summary.value[0].tensor.tensor_content == np.float32([1, 2]).tobytes()
    assert tensor.summary.value[0].metadata.display_name == "d"


def test_histograms_images_and_sound(writer: Writer) -> None:
    """The contents are those of the ops that make summaries."""
    writer.run("histogram", step=np.int64(5), tag=b"h", x=np.float32([1, 2, -1]))
    picture, color = np.float32([[[[1], [2]]]]), np.uint8([255, 0, 0, 255])
    writer.run("image", step=np.int64(6), tag=b"i", x=picture, color=color)
    writer.run("flush")
    _, histogram, image = writer.events()
    histo = histogram.summary.value[0].histo

    assert (histo.min, histo.max, histo.num, histo.sum, histo.sum_squares) == (-1, 2, 3, 2, 6)
    assert histo.bucket_limit[:2] == pytest.approx([-1.0089710279437536, -0.917246389039776])
    assert image.summary.value[0].tag == "i/image"
    assert (image.summary.value[0].image.height, image.summary.value[0].image.width) == (1, 2)


def test_serialized_messages(writer: Writer) -> None:
    """Summaries, graphs and whole events are written as they are."""
    summary = Summary()
    summary.value.add(tag="raw", simple_value=2)
    event = Event(wall_time=12.5, step=9, file_version="x").SerializeToString()
    writer.run("raw", step=np.int64(8), text=summary.SerializeToString())
    writer.run("graph", step=np.int64(8), text=b"graph")
    writer.run("event", text=event)
    writer.run("close")
    _, raw, graph, imported = writer.events()

    assert raw.summary.value[0].tag == "raw"
    assert graph.graph_def == b"graph"
    assert imported.SerializeToString() == event


def test_a_message_that_is_none(writer: Writer) -> None:
    """Bytes that are no event are not written."""
    with pytest.raises(errors.DataLossError, match=r"Bad tf\.Event binary proto"):
        writer.run("event", text=b"\xff\xff")


def test_a_writer_is_made_once_and_closed(writer: Writer) -> None:
    """Making it again changes nothing; what is closed is not there."""
    writer.make()
    assert len(writer.events()) == 1
    writer.run("close")
    with pytest.raises(errors.NotFoundError, match="does not exist"):
        writer.run("scalar", step=np.int64(3), tag=b"s", x=np.float32(1.5))


def test_sessions_close_their_files(tmp_path: Path) -> None:
    """What was not flushed is in the file when the session has ended."""
    made = Writer(tmp_path / "log")
    made.make()
    made.run("scalar", step=np.int64(3), tag=b"s", x=np.float32(1.5))
    made.session.close()

    assert len(made.events()) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_disk(tmp_path: Path) -> None:
    """An event that cannot be written is RESOURCE_EXHAUSTED, and so is the end of its file."""

    class FullDisk(FileSystem):
        """Begins files as ever, and has no room for what comes later."""

        def append(self, path: str) -> Any:
            assert path.startswith(str(tmp_path))
            return super().append("/dev/full")

    with pytest.raises(errors.ResourceExhaustedError, match="No space left on device"):
        EventFile(FullDisk(), str(tmp_path), "", 10)


def test_folders_are_made(tmp_path: Path) -> None:
    """A writer makes its folder and those above it, and knows the scheme of files."""
    writer = Writer(tmp_path / "a" / "b")
    with writer.session:
        writer.run("make", folder=f"file://{tmp_path}/a/b", most=np.int32(1), suffix=b"")
        writer.run("close")
        with pytest.raises(errors.UnimplementedError, match="File system scheme 'gs'"):
            writer.run("make", folder=b"gs://bucket/log", most=np.int32(1), suffix=b"")
    assert len(writer.events()) == 1
