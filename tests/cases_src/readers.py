"""Readers whose state is saved and restored: counts, the last file's name, and mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import graph, steps
from penstock.defs.schema import ReaderBaseState


def _state(*fields: Any) -> bytes:
    """A ReaderBaseState: files begun, files done, records, the last file's name; None is absent."""
    names = ("work_started", "work_finished", "num_records_produced", "current_work")
    given = {name: field for name, field in zip(names, fields, strict=False) if field is not None}
    return ReaderBaseState(**given).SerializeToString()


def states(tf: Any, kind: str, actions: list[Any]) -> Any:
    """What is done with a reader, one run each; after each, its counts and state are looked at.

    Of what is not one of the two kinds of readers that have a state, only the counts are.
    """
    raw = tf.raw_ops
    sizes = {"record_bytes": 2} if kind.startswith("Fixed") else {}
    reader = getattr(raw, f"{kind}V2")(**sizes, name="reader")
    queue = raw.FIFOQueueV2(component_types=[tf.string], shapes=[[]])
    names, state = tf.placeholder(tf.string, None), tf.placeholder(tf.string, None)
    nodes = {
        "put": raw.QueueEnqueueManyV2(handle=queue, components=[names]),
        "read": list(raw.ReaderReadV2(reader_handle=reader, queue_handle=queue)),
        "read_many": list(
            raw.ReaderReadUpToV2(reader_handle=reader, queue_handle=queue, num_records=np.int64(2))
        ),
        "reset": raw.ReaderResetV2(reader_handle=reader),
        "restore": raw.ReaderRestoreStateV2(reader_handle=reader, state=state),
    }
    holders = {"put": names, "restore": state}
    seen = [
        raw.ReaderNumRecordsProducedV2(reader_handle=reader),
        raw.ReaderNumWorkUnitsCompletedV2(reader_handle=reader),
    ]
    saved = [raw.ReaderSerializeStateV2(reader_handle=reader)]
    nodes["save"] = saved
    looks = [seen, saved] if kind in ("IdentityReader", "WholeFileReader") else [seen]
    runs: list[Any] = [*looks]
    for what, *given in actions:
        fed = {holders[what]: np.array(given[0], object)} if given else {}
        runs += [(fed, [nodes[what]]), *looks]
    return steps(*runs)


_FILES = ("put", [b"a", b"b", b"c\xff"])
_STATES = [
    b"", _state(0, 0, 0, b""), _state(3, 3, 7), _state(3, 3, 7, b"x"), _state(2, 5, 1, b"x"),
    _state(None, None, 5), _state(2, 2, 2, b"\0\xff"),
]  # fmt: skip
_SAYS = {
    b"junk": "Could not parse state for IdentityReader 'reader': junk",
    _state(1, 0, 0, b"x"): "Inconsistent work started vs. finished when restoring in Identity",
    _state(3, 2, 7, b"x"): "Inconsistent work started vs. finished when restoring in Identity",
    _state(-1, -1, 0): "Unexpected negative value when restoring in IdentityReader 'reader'",
    _state(1, 1, -4): "Unexpected negative value when restoring in IdentityReader 'reader'",
    _state(2, -1, 0): "Unexpected negative value when restoring in IdentityReader 'reader'",
}
CASES = [
    graph(states, "IdentityReader", [_FILES, ("read",), ("read",), ("reset",), ("read",)]),
    graph(states, "IdentityReader", [_FILES, ("read_many",), ("read_many",), ("read_many",)]),
    *(graph(states, "IdentityReader", [_FILES, ("read",), ("restore", state), ("read",)])
      for state in _STATES),
    *(graph(states, "IdentityReader", [_FILES, ("read",), ("restore", state), ("read",)], says=says)
      for state, says in _SAYS.items()),
    *(graph(states, kind, [("save",)], says="Reader SerializeState")
      for kind in ("TextLineReader", "TFRecordReader", "FixedLengthRecordReader")),
    *(graph(states, kind, [("restore", state)], says="Reader RestoreState")
      for kind, state in (("TextLineReader", b""), ("TFRecordReader", b"junk"),
                          ("FixedLengthRecordReader", b""))),
    *(graph(states, "IdentityReader", [("restore", state)], says="Reader state must be scalar, but")
      for state in ([b""], [], [b"a", b"b"])),
    graph(states, "WholeFileReader", [("restore", _state(3, 3, 7, b"x")), ("reset",)]),
]  # fmt: skip
