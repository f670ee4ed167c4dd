"""Every op that touches a file or calls Python, in a small graph of its own.

Out:  rows for ``sketch``, in which ``$`` stands for a folder, and ``y`` for the node.
"""

from __future__ import annotations

from typing import Final

#: What would touch a file or call Python, with what it needs; $ stands for a folder.
USES: Final = {
    "ReadFile": "y = ReadFile(path)",
    "WriteFile": "y = WriteFile(path, path)",
    "MatchingFiles": "y = MatchingFiles(path)",
    "RecordInput": "y = RecordInput() file_pattern='$/file' batch_size=1",
    "SaveV2": "y = SaveV2(path, names, parts, number) dtypes=['float32']",
    "RestoreV2": "y = RestoreV2(path, names, parts) dtypes=['float32']",
    "MergeV2Checkpoints": "y = MergeV2Checkpoints(paths, path)",
    "Save": "y = Save(path, names, number) T=['float32']",
    "SaveSlices": "y = SaveSlices(path, names, parts, number) T=['float32']",
    "Restore": "y = Restore(path, path) dt=float32",
    "RestoreSlice": "y = RestoreSlice(path, path, part) dt=float32",
    "ImmutableConst": "y = ImmutableConst() memory_region_name='$/file' dtype=float32 shape=[1]",
    "InitializeTableFromTextFileV2": """
        table = HashTableV2() key_dtype=string value_dtype=int64
        y = InitializeTableFromTextFileV2(table, path) key_index=-2 value_index=-1
    """,
    "InitializeTableFromTextFile": """
        table = HashTable() key_dtype=string value_dtype=int64
        y = InitializeTableFromTextFile(table, path) key_index=-2 value_index=-1
    """,
    "CreateSummaryFileWriter": """
        writer = SummaryWriter()
        count = Const() value=1
        y = CreateSummaryFileWriter(writer, path, count, count, part)
    """,
    "PrintV2": "y = PrintV2(part) output_stream='file://$/file'",
    "GenerateVocabRemapping": """
        y = GenerateVocabRemapping(path, path) new_vocab_offset=0 num_new_vocab=1
    """,
    "LoadAndRemapMatrix": """
        y = LoadAndRemapMatrix(path, part, ids, ids, numbers) num_rows=1 num_cols=1
    """,
    "PyFunc": "y = PyFunc(number) token='a/token' Tout=['float32']",
    "PyFuncStateless": "y = PyFuncStateless(number) token='a/token' Tout=['float32']",
    "EagerPyFunc": "y = EagerPyFunc(number) token='a/token' Tout=['float32']",
    **{
        f"{reader}{version}": f"""
            r = {reader}{version}() {attrs}
            q = FIFOQueue{version}() component_types=['string'] shapes=[[]]
            put = QueueEnqueue{version}(q, path)
            y = ReaderRead{version}(r, q, ^put)
        """
        for version in ("", "V2")
        for reader, attrs in {
            "TextLineReader": "",
            "WholeFileReader": "",
            "TFRecordReader": "",
            "FixedLengthRecordReader": "record_bytes=1",
        }.items()
    },
}
GIVEN: Final = """
    path = Const() value='$/file'
    paths = Const() value=['$/file']
    names = Const() value=['a']
    parts = Const() value=['']
    part = Const() value=''
    number = Const() value=1.0
    numbers = Const() value=[1.0]
    one = Const() value=[0]
    ids = Cast(one) DstT=int64
"""
