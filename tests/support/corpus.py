"""Conformance cases: graphs with TensorFlow's own answers, and how answers are compared."""

from __future__ import annotations

import base64
import functools
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock import errors
from penstock.core.values import Array
from penstock.defs.schema import GraphDef, Message

ROOT = Path(__file__).parent.parent / "corpus"
_REGEX_OPS = ("RegexFullMatch", "RegexReplace", "StaticRegexFullMatch", "StaticRegexReplace")
#: Libraries of extras that cannot be had everywhere, by the op that needs them.
_LIBRARIES = {"XlaCallModule": "jaxlib", **dict.fromkeys(_REGEX_OPS, "re2")}
#: Parts of the names of ops that read and write files.
_FILES = ("Checkpoint", "File", "Reader", "RecordInput", "Restore", "Save", "SummaryWriter")
#: Types that are stored as the integers of their bits.
_VIEWED = {
    "bfloat16", "float8_e5m2", "float8_e4m3fn", "int4", "uint4", "int2", "uint2",
    "qint8", "quint8", "qint16", "quint16", "qint32",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One folder of the corpus."""

    category: str
    name: str

    def __str__(self) -> str:
        return f"{self.category}/{self.name}"

    @property
    def path(self) -> Path:
        return ROOT / self.category / self.name

    @property
    def meta(self) -> dict[str, Any]:
        return _read_meta(self.path)

    @property
    def ops(self) -> list[str]:
        ops: list[str] = self.meta["ops"]
        return ops

    @property
    def steps(self) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = self.meta["steps"]
        return steps

    @property
    def device_count(self) -> dict[str, int]:
        """The devices that TensorFlow's session had, where it had more than one."""
        return self.meta.get("device_count") or {}

    @property
    def graph_bytes(self) -> bytes:
        return (self.path / "graph.pb").read_bytes()

    def graph_def(self) -> Message:
        proto = GraphDef()
        proto.ParseFromString(self.graph_bytes)
        return proto

    def value(self, key: str) -> tuple[Array, str]:
        """An array as it is stored, and the name of its type."""
        strings = self.meta.get("strings", {})
        if key in strings:
            items = [base64.b64decode(item) for item in strings[key]["base64"]]
            array = np.empty(len(items), object)
            array[:] = items
            return array.reshape(strings[key]["shape"]), "string"
        stored = _read_tensors(self.path)[key].copy()
        return stored, self.meta.get("dtypes", {}).get(key, stored.dtype.name)

    def feeds(self, step: Mapping[str, Any], folder: bytes = b"") -> dict[str, Any]:
        """A step's feeds; ``folder`` stands in for ``@TMP@`` in strings."""
        feeds = {}
        for name, key in step.get("feeds", {}).items():
            array, dtype = self.value(key)
            if dtype in _VIEWED:
                array = array.view(_numpy_type(dtype, array))
            if dtype == "string" and folder:
                array = replaced(array, b"@TMP@", folder)
            feeds[name] = array
        return feeds

    def folder(self, parent: Path) -> bytes:
        """A new folder for ``@TMP@`` if some text names it; empty if none does."""
        texts = (
            text for stored in self.meta.get("strings", {}).values() for text in stored["base64"]
        )
        if not any(b"@TMP@" in base64.b64decode(text) for text in texts):
            return b""
        return tempfile.mkdtemp(dir=parent).encode()

    def tolerance(self, key: str) -> tuple[float, float]:
        rtol, atol = self.meta.get("tol", {}).get(key, (self.meta["rtol"], self.meta["atol"]))
        return rtol, atol


@functools.cache
def _read_meta(path: Path) -> dict[str, Any]:
    meta: dict[str, Any] = json.loads((path / "case.json").read_text("utf-8"))
    return meta


@functools.lru_cache(maxsize=8)  # one test of a case mostly follows another
def _read_tensors(path: Path) -> dict[str, Array]:
    with np.load(path / "tensors.npz", allow_pickle=False) as stored:
        return dict(stored)


def _numpy_type(name: str, array: Array) -> Any:
    if name.startswith("q"):
        return np.dtype([(name, array.dtype)])
    return np.dtype(getattr(ml_dtypes, name))


def all_cases(*categories: str) -> Iterator[Case]:
    """All cases of some categories, or of all, in alphabetical order."""
    for path in sorted(ROOT.glob("*/*/case.json")):
        case = Case(path.parent.parent.name, path.parent.name)
        if not categories or case.category in categories:
            yield case


def uses_files(case: Case) -> bool:
    """Whether a case reads or writes files, which are no state of a session."""
    return any(part in op for op in case.ops for part in _FILES) or b"@TMP@" in case.graph_bytes


def replaced(array: Any, old: bytes, new: bytes) -> Array:
    """A string array with one text for another in each element."""
    out = np.empty(np.shape(array), object)
    for index, item in np.ndenumerate(np.asarray(array, object)):
        out[index] = item.replace(old, new)
    return out


def run_case(session: Any, case: Case, folder: bytes = b"") -> None:
    """Run all steps of a case in one session; fails unless every answer is TensorFlow's."""
    for name in _LIBRARIES.keys() & set(case.ops):
        pytest.importorskip(_LIBRARIES[name])
    run_steps(session, case, folder)


def run_steps(session: Any, case: Case, folder: bytes = b"") -> None:
    """The same, whatever is installed."""
    for number, step in enumerate(case.steps):
        expect = step["expect"]
        names = [*step.get("fetches", ()), *step.get("targets", ())]
        try:
            results = session.run(names, case.feeds(step, folder))
        except errors.OpError as error:
            assert "error" in expect, f"step {number}: {error.code.name}: {error}"
            check_error(error, expect)
            continue
        assert "error" not in expect, f"step {number}: no error, expected {expect['error']}"
        for name, got, key in zip(step.get("fetches", ()), results, expect["values"], strict=False):
            want, dtype = case.value(key)
            if folder and dtype == "string":
                got = replaced(got, folder, b"@TMP@")
            difference = compare(got, want, dtype, *case.tolerance(key))
            assert difference is None, f"step {number}: {name}: {difference}"


def check_error(error: errors.OpError, expect: Mapping[str, Any]) -> None:
    """An error must have one of the codes and all of the fragments."""
    assert error.code.name in [expect["error"], *expect.get("also", ())], str(error)
    for fragment in expect.get("message_has", ()):
        assert fragment.lower() in error.message.lower(), str(error)


def compare(got: Any, want: Array, dtype: str, rtol: float, atol: float) -> str | None:
    """None if a result is what is wanted, else a sentence that says how they differ."""
    if isinstance(got, bytes):
        boxed = np.empty((), object)
        boxed[()] = got
        got = boxed
    array = np.asarray(got)
    if dtype in _VIEWED:
        # Quantised tensors are fetched as plain integers.
        kind = want.dtype if dtype.startswith("q") else _numpy_type(dtype, want)
        if array.dtype != kind:
            return f"type {array.dtype}, expected {kind}"
        array = array.view(want.dtype)
    elif (array.dtype.name if array.dtype != object else "string") != dtype:
        return f"type {array.dtype}, expected {dtype}"
    if array.shape != want.shape:
        return f"shape {array.shape}, expected {want.shape}"
    if dtype.startswith(("bfloat16", "float8")):
        kind = _numpy_type(dtype, want)
        array, want = array.view(kind).astype(np.float64), want.view(kind).astype(np.float64)
    elif array.dtype.kind not in "fc":
        wrong = np.argwhere(array != want)
        return f"{len(wrong)} elements differ, first at {wrong[0]}" if len(wrong) else None
    if rtol == atol == 0:
        return _compare_exactly(array, want)
    rtol, atol = _tolerance(dtype, rtol, atol)
    return _compare_floats(array, want, rtol, atol)


def _tolerance(dtype: str, rtol: float, atol: float) -> tuple[float, float]:
    if dtype in ("float64", "complex128"):
        return rtol * 1e-3, atol * 1e-3
    least = {"float16": (2e-3, 1e-3), "bfloat16": (1.6e-2, 8e-3)}.get(dtype, (0.0, 0.0))
    if dtype.startswith("float8"):
        least = (0.13, 1e-2)
    return max(rtol, least[0]), max(atol, least[1])


def _parts(got: Array, want: Array) -> list[tuple[Array, Array]]:
    if got.dtype.kind == "c":
        return [(got.real, want.real), (got.imag, want.imag)]
    return [(got, want)]


def _compare_exactly(got: Array, want: Array) -> str | None:
    """Like ``compare``, with nothing allowed but another NaN; zeros have their signs."""
    for a, b in _parts(got, want):
        same = ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
        if not same.all():
            at = tuple(np.argwhere(~same)[0])
            return f"{np.sum(~same)} elements differ, first at {at}: {a[at]!r}, expected {b[at]!r}"
    return None


def _compare_floats(got: Array, want: Array, rtol: float, atol: float) -> str | None:
    parts = _parts(got, want)
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(want).astype(np.float64)
        for mine, theirs in parts:
            a, b = mine.astype(np.float64), theirs.astype(np.float64)
            fine = (np.abs(a - b) <= atol + rtol * size) | (a == b) | (np.isnan(a) & np.isnan(b))
            if not fine.all():
                at = tuple(np.argwhere(~fine)[0])
                return f"{np.sum(~fine)} elements differ, first at {at}: {a[at]}, expected {b[at]}"
    return None
