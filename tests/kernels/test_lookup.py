"""Lookup tables: what is found, what is refused, what is kept from run to run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import Config, Session, Tier, errors
from support.sketch import sketch

TABLE = """
    keys = Placeholder() dtype=string
    values = Placeholder() dtype=int64
    default = Placeholder() dtype=int64
    words = Placeholder() dtype=string
    import = LookupTableImportV2(table, keys, values)
    initialize = InitializeTableV2(table, keys, values)
    insert = LookupTableInsertV2(table, keys, values)
    remove = LookupTableRemoveV2(table, keys)
    find = LookupTableFindV2(table, keys, default)
    find_words = LookupTableFindV2(table, keys, words)
    size = LookupTableSizeV2(table)
    all = LookupTableExportV2(table) Tkeys=string Tvalues=int64
"""
STATIC = "table = HashTableV2() key_dtype=string value_dtype=int64"
MUTABLE = "table = MutableHashTableV2() key_dtype=string value_dtype=int64"
VECTORS = "table = MutableHashTableOfTensorsV2() key_dtype=string value_dtype=int64 value_shape=[2]"

Run = Callable[..., Any]


def strings(items: Any) -> Any:
    """Strings of any rank."""
    if isinstance(items, str):
        return items.encode()
    return np.array([item.encode() for item in items], object)


def runner(table: str) -> Run:
    """Runs nodes of a graph with a table; keys and values are plain Python."""
    session = Session(sketch(f"{table}\n{TABLE}"))

    def run(fetch: str, keys: Any = None, values: Any = None, default: Any = -1) -> Any:
        feeds: dict[str, Any] = {"default:0": np.int64(default), "words:0": b"w"}
        if keys is not None:
            feeds["keys:0"] = strings(keys)
        if values is not None:
            feeds["values:0"] = np.array(values, np.int64)[()]
        return session.run(fetch, feeds)

    return run


@pytest.mark.parametrize("fill", ["import", "initialize"])
def test_static_table(fill: str) -> None:
    """It is filled once; as many elements as it has change nothing, and others are refused."""
    run = runner(STATIC)
    run(fill, ["a", "b"], [1, 2])
    run(fill, ["a", "z"], [7, 7])
    with pytest.raises(errors.FailedPreconditionError, match="initialized with different data"):
        run(fill, ["a"], [7])

    assert run("find:0", ["b", "z", "a"]).tolist() == [2, -1, 1]
    assert run("find:0", "a") == 1
    assert run("size:0") == 2
    assert run("all:0").tolist() == [b"a", b"b"]


@pytest.mark.parametrize(
    ("fetch", "keys", "values", "error", "text"),
    [
        ("find:0", ["a"], None, errors.FailedPreconditionError, "Table not initialized"),
        ("all:0", None, None, errors.AbortedError, "not initialized"),
        ("insert", ["a"], [1], errors.UnimplementedError, "Insert not supported"),
        ("remove", ["a"], None, errors.UnimplementedError, "Remove not supported"),
        ("import", ["a", "a"], [1, 2], errors.FailedPreconditionError,
         "different value for same key. Key a has 1 and trying to add value 2"),
        ("import", ["a", "b"], [1], errors.InvalidArgumentError,
         r"Expected shape \[2\] for value, got \[1\]"),
        ("import", [], [], errors.InvalidArgumentError, "cannot be empty"),
        ("find_words:0", ["a"], None, errors.InvalidArgumentError,
         "have: resource, string, string->string expected: resource, string, int64->int64"),
    ],
)  # fmt: skip
def test_static_table_refuses(
    fetch: str, keys: Any, values: Any, error: type[Exception], text: str
) -> None:
    """An empty static table can be filled, and measured, and nothing else."""
    run = runner(STATIC)
    assert run("size:0") == 0

    with pytest.raises(error, match=text):
        run(fetch, keys, values)


def test_failed_filling_leaves_the_table_empty() -> None:
    """A table that could not be filled may be filled again."""
    run = runner(STATIC)
    with pytest.raises(errors.FailedPreconditionError):
        run("import", ["a", "a"], [1, 2])
    run("import", ["a"], [5])

    assert run("find:0", ["a"]).tolist() == [5]


def test_mutable_table() -> None:
    """Keys come, change and go; an import replaces everything."""
    run = runner(MUTABLE)
    run("insert", ["a", "b", "a"], [1, 2, 3])
    assert run("find:0", ["a", "z"]).tolist() == [3, -1]
    run("remove", ["a", "q"])
    assert run("size:0") == 1
    run("import", ["c"], [9])

    assert run("all:0").tolist() == [b"c"]
    assert run("all:1").tolist() == [9]
    with pytest.raises(errors.InvalidArgumentError, match="is not initializable"):
        run("initialize", ["a"], [1])


def test_defaults_may_differ_by_key() -> None:
    """A default for each key is heeded by mutable tables; static ones take the first."""
    mutable, static = runner(MUTABLE), runner(STATIC)
    mutable("insert", ["a"], [1])
    static("import", ["a"], [1])

    assert mutable("find:0", ["z", "a", "y"], default=[7, 8, 9]).tolist() == [7, 1, 9]
    assert static("find:0", ["z", "a", "y"], default=[7, 8, 9]).tolist() == [7, 1, 7]
    with pytest.raises(errors.InvalidArgumentError, match=r"\[\] or \[2\] for default value, got"):
        mutable("find:0", ["a", "b"], default=[1, 2, 3])


def test_vectors_as_values() -> None:
    """Each key may have a vector; a default is one vector, or one for each key."""
    run = runner(VECTORS)
    run("insert", ["a", "b"], [[1, 2], [3, 4]])

    assert run("find:0", ["b", "z"], default=[9, 9]).tolist() == [[3, 4], [9, 9]]
    assert run("find:0", ["b", "z"], default=[[8, 8], [9, 9]]).tolist() == [[3, 4], [9, 9]]
    assert run("find:0", np.zeros(0, object), default=[9, 9]).shape == (0, 2)
    with pytest.raises(errors.InvalidArgumentError, match=r"shape \[2,2\] for value, got \[2,1\]"):
        run("insert", ["a", "b"], [[1], [2]])


def test_tables_keep_copies() -> None:
    """What the caller does to an array afterwards does not reach the table."""
    session = Session(sketch(f"{VECTORS}\n{TABLE}"))
    values = np.array([[1, 2]], np.int64)
    session.run("insert", {"keys:0": strings(["a"]), "values:0": values})
    values[:] = 0

    assert session.run("all:1").tolist() == [[1, 2]]


DENSE = """
    empty = Const() value=0
    deleted = Const() value=-1
    table = MutableDenseHashTableV2(empty, deleted) value_dtype=float32 initial_num_buckets=4
    keys = Placeholder() dtype=int32
    values = Placeholder() dtype=float32
    default = Const() value=-1.0
    insert = LookupTableInsertV2(table, keys, values)
    remove = LookupTableRemoveV2(table, keys)
    find = LookupTableFindV2(table, keys, default)
    size = LookupTableSizeV2(table)
    all = LookupTableExportV2(table) Tkeys=int32 Tvalues=float32
"""


@pytest.mark.parametrize("tier", list(Tier))
@pytest.mark.parametrize("types", ["Tkeys=int64 Tvalues=float32", "Tkeys=int32 Tvalues=uint8"])
def test_an_export_has_the_types_that_it_says(types: str, tier: Tier) -> None:
    """Keys and values of another type than the table's are refused, as all nodes do it."""
    graph = sketch(f"{DENSE}\nother = LookupTableExportV2(table) {types}")
    with (
        Session(graph, config=Config(tier=tier)) as session,
        pytest.raises(errors.InvalidArgumentError, match="Signature mismatch"),
    ):
        session.run(["other:0", "other:1"])


def test_dense_table() -> None:
    """Two keys are taken; the export has a row for each bucket, of which there get more."""
    session = Session(sketch(DENSE))

    def run(fetch: str, keys: list[int], values: Any = ()) -> Any:
        feeds = {"keys:0": np.array(keys, np.int32), "values:0": np.array(values, np.float32)}
        return session.run(fetch, feeds)

    run("insert", [1, 2], [10, 20])
    assert run("find:0", [1, 5]).tolist() == [10, -1]
    assert sorted(run("all:0", [])[:, 0].tolist()) == [0, 0, 1, 2]
    run("remove", [1])
    run("insert", list(range(10, 30)), np.arange(20))
    assert run("size:0", []) == 21
    assert run("all:0", []).shape == (32, 1)
    for taken, name in ((0, "empty_key"), (-1, "deleted_key")):
        for node in ("insert", "remove", "find:0"):
            with pytest.raises(errors.InvalidArgumentError, match=f"Using the {name} as a table"):
                run(node, [taken], [1])


@pytest.mark.parametrize(
    ("attrs", "text"),
    [
        ("initial_num_buckets=3", "at least 4 and a power of 2, got: 3"),
        ("max_load_factor=1.5", "max_load_factor must be between 0 and 1"),
        ("initial_num_buckets=-8", "at least 4 and a power of 2, got: -8"),
    ],
)
def test_dense_table_refuses_bad_sizes(attrs: str, text: str) -> None:
    """Attributes of a dense table are checked before it is made."""
    session = Session(
        sketch(f"""
        empty = Const() value=0
        deleted = Const() value=-1
        table = MutableDenseHashTableV2(empty, deleted) value_dtype=float32 {attrs}
        size = LookupTableSizeV2(table)
    """)
    )

    with pytest.raises(errors.InvalidArgumentError, match=text):
        session.run("size:0")


@pytest.mark.parametrize("attrs", [f"initial_num_buckets={2**60}", "max_load_factor=1e-30"])
def test_dense_table_asks_for_no_moon(attrs: str) -> None:
    """So many buckets that no memory could hold them are refused, at the start and later."""
    session = Session(
        sketch(f"""
        empty = Const() value=0
        deleted = Const() value=-1
        table = MutableDenseHashTableV2(empty, deleted) value_dtype=float32 {attrs}
        keys = Const() value=5
        values = Const() value=1.0
        insert = LookupTableInsertV2(table, keys, values)
    """)
    )

    with pytest.raises(errors.ResourceExhaustedError):
        session.run("insert")


def test_shared_tables_must_agree() -> None:
    """Two nodes with one shared name must have the same types."""
    session = Session(
        sketch("""
        a = MutableHashTableV2() key_dtype=string value_dtype=int64 shared_name='s'
        b = MutableHashTableV2() key_dtype=int64 value_dtype=float32 shared_name='s'
        size_a = LookupTableSizeV2(a)
        size_b = LookupTableSizeV2(b)
    """)
    )
    session.run("size_a:0")

    with pytest.raises(errors.InvalidArgumentError, match="Conflicting key/value dtypes"):
        session.run("size_b:0")


def test_anonymous_tables_are_all_different() -> None:
    """Each run of the node makes a new table."""
    session = Session(
        sketch("""
        keys = Placeholder() dtype=string
        values = Placeholder() dtype=int64
        table = AnonymousMutableHashTable() key_dtype=string value_dtype=int64
        insert = LookupTableInsertV2(table, keys, values)
        size = LookupTableSizeV2(table, ^insert)
    """)
    )
    for key in "ab":
        feeds = {"keys:0": strings([key]), "values:0": np.array([1])}
        assert session.run("size:0", feeds) == 1


def text_table(path: Path, attrs: str, types: str) -> Any:
    """Keys and values of a table that is filled from a file."""
    session = Session(
        sketch(f"""
        table = HashTableV2() {types}
        name = Placeholder() dtype=string
        fill = InitializeTableFromTextFileV2(table, name) {attrs}
        all = LookupTableExportV2(table, ^fill) {
            types.replace("key_dtype", "Tkeys").replace("value_dtype", "Tvalues")
        }
    """)
    )
    keys, values = session.run(["all:0", "all:1"], {"name:0": bytes(path)})
    return dict(zip(keys.tolist(), values.tolist(), strict=True))


WORDS = "key_dtype=string value_dtype=int64"


@pytest.mark.parametrize(
    ("text", "attrs", "types", "found"),
    [
        ("a\nb\nc\n", "key_index=-2 value_index=-1", WORDS, {b"a": 0, b"b": 1, b"c": 2}),
        ("a\nb\nc", "key_index=-2 value_index=-1 vocab_size=2", WORDS, {b"a": 0, b"b": 1}),
        ("a\nb", "key_index=-2 value_index=-1 offset=1", WORDS, {b"a": 1, b"b": 2}),
        ("a\t1\r\nb\t2", "key_index=0 value_index=1", WORDS, {b"a": 1, b"b": 2}),
        ("1;x", "key_index=1 value_index=0 delimiter=';'", WORDS, {b"x": 1}),
        ("a 0.5", "key_index=0 value_index=1 delimiter=' '",
         "key_dtype=string value_dtype=float32", {b"a": 0.5}),
    ],
)  # fmt: skip
def test_text_files(tmp_path: Path, text: str, attrs: str, types: str, found: Any) -> None:
    """Keys and values are lines, their numbers, or columns."""
    path = tmp_path / "words.txt"
    path.write_bytes(text.encode())

    assert text_table(path, attrs, types) == found


@pytest.mark.parametrize(
    ("text", "attrs", "error", "reason"),
    [
        ("a\n\nb", "key_index=-2 value_index=-1", errors.InvalidArgumentError, "empty line found"),
        ("a", "key_index=0 value_index=1", errors.InvalidArgumentError, "at least 2 got 1"),
        ("a\tx", "key_index=0 value_index=1", errors.InvalidArgumentError, "not a valid int64"),
        ("a", "key_index=-1 value_index=-1", errors.InvalidArgumentError, "dtype of int64"),
        ("a", "key_index=-2 value_index=-1 vocab_size=5", errors.InvalidArgumentError,
         "expected 5 but got 1"),
        ("a\t1\na\t2", "key_index=0 value_index=1", errors.FailedPreconditionError, "same key"),
        (None, "key_index=-2 value_index=-1", errors.NotFoundError, "No such file or directory"),
    ],
)  # fmt: skip
def test_bad_text_files(
    tmp_path: Path, text: str | None, attrs: str, error: type[Exception], reason: str
) -> None:
    """Files that do not say what they should are refused, and leave no half-filled table."""
    path = tmp_path / "words.txt"
    if text is not None:
        path.write_bytes(text.encode())

    with pytest.raises(error, match=reason):
        text_table(path, attrs, WORDS)
