"""Small cases, many to a file: one op or a few, with TensorFlow's own answers.

In:   ``tests/op_cases/<family>.json``, which ``tools/record_case.py`` makes.
Out:  cases that ``support.corpus.run_case`` runs.
Not:  compares nothing itself.
"""

from __future__ import annotations

import base64
import functools
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array

ROOT = Path(__file__).parent.parent / "op_cases"
_INTEGERS = {"qint8": "i1", "quint8": "u1", "qint16": "i2", "quint16": "u2", "qint32": "i4"}


@dataclass(frozen=True, slots=True)
class OpCase:
    """One case of one family."""

    family: str
    record: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.family}/{self.record['name']}"

    @property
    def ops(self) -> list[str]:
        ops: list[str] = self.record["ops"]
        return ops

    @property
    def device_count(self) -> dict[str, int]:
        """The devices that TensorFlow's session had."""
        return {"CPU": self.record.get("cpus", 1)}

    @property
    def graph_bytes(self) -> bytes:
        return _unpacked(self.record["graph"])

    @property
    def steps(self) -> list[dict[str, Any]]:
        return [self._step(number, step) for number, step in enumerate(self.record["steps"])]

    def _step(self, number: int, step: Mapping[str, Any]) -> dict[str, Any]:
        if "error" in step:
            expect: dict[str, Any] = {"error": step["error"], "also": step.get("also", ())}
            expect["message_has"] = [step["says"]] if "says" in step else []
        else:
            expect = {"values": [(number, slot) for slot in range(len(step["values"]))]}
        return {**step, "expect": expect}

    def feeds(self, step: Mapping[str, Any], _folder: bytes = b"") -> dict[str, Any]:
        """A step's feeds."""
        return {name: _array(stored) for name, stored in step["feeds"].items()}

    def value(self, key: tuple[int, int]) -> tuple[Array, str]:
        """An expected array as it is stored, and the name of its type."""
        number, slot = key
        stored = self.record["steps"][number]["values"][slot]
        array, name = _array(stored), stored["dtype"]
        if name in ("bfloat16", *_INTEGERS) or name.startswith(("float8", "int4", "uint4")):
            array = array.view(_INTEGERS.get(name, f"u{array.itemsize}"))
        return array, name

    def tolerance(self, _key: tuple[int, int]) -> tuple[float, float]:
        rtol, atol = self.record.get("tol", (1e-5, 1e-6))
        return rtol, atol


@functools.cache
def all_op_cases() -> tuple[OpCase, ...]:
    """The cases of all families."""
    return tuple(
        OpCase(path.stem, record)
        for path in sorted(ROOT.glob("*.json"))
        for record in json.loads(path.read_text("utf-8"))
    )


def _array(stored: Mapping[str, Any]) -> Array:
    name, shape = stored["dtype"], stored["shape"]
    if name == "string":
        array = np.empty(len(stored["data"]), object)
        array[:] = [base64.b64decode(item) for item in stored["data"]]
        return array.reshape(shape)
    known = (
        dtypes.as_dtype(name).numpy if not hasattr(ml_dtypes, name) else getattr(ml_dtypes, name)
    )
    return np.frombuffer(_unpacked(stored["data"]), known).reshape(shape)


def _unpacked(text: str) -> bytes:
    data = base64.b64decode(text[1:])
    return zlib.decompress(data) if text[0] == "z" else data
