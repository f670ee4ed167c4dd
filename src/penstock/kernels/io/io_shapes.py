"""Shapes of what is read from files.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  opens no file.
"""

from __future__ import annotations

from penstock.kernels.api.shape_rules import shape_signatures

shape_signatures({
    """
    FixedLengthRecordReader IdentityReader TFRecordReader TextLineReader WholeFileReader
    """: "-> [2]",
    """
    FixedLengthRecordReaderV2 IdentityReaderV2 TFRecordReaderV2 TextLineReaderV2 WholeFileReaderV2
    """: "-> []",
    "ImmutableConst": "-> @shape",
    "MatchingFiles": "-> [?]",
    "ReadFile": "[] -> []",
    """
    ReaderNumRecordsProduced ReaderNumRecordsProducedV2 ReaderNumWorkUnitsCompleted
    ReaderNumWorkUnitsCompletedV2 ReaderSerializeState ReaderSerializeStateV2
    """: "-> []",
    "ReaderRead ReaderReadV2": "-> [], []",
    "ReaderReadUpTo ReaderReadUpToV2": "-> [?], [?]",
    "ShardedFilename": "[], [], [] -> []",
    "ShardedFilespec": "[], [] -> []",
})  # fmt: skip
