"""Small graph models of TensorFlow.js, whose values are made here."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np


def const(name: str, dtype: str = "DT_FLOAT") -> dict[str, Any]:
    """A constant as the converter leaves it: without its value."""
    tensor = {"dtype": dtype, "tensorShape": {}}
    return {
        "name": name,
        "op": "Const",
        "attr": {"dtype": {"type": dtype}, "value": {"tensor": tensor}},
    }


def node(op: str, name: str, *inputs: str, **attrs: Any) -> dict[str, Any]:
    """A node of float32; attributes in protobuf's JSON form."""
    return {
        "name": name,
        "op": op,
        "input": list(inputs),
        "attr": {"T": {"type": "DT_FLOAT"}, **attrs},
    }


def placeholder(name: str, dtype: str = "DT_FLOAT") -> dict[str, Any]:
    """An input."""
    return {
        "name": name,
        "op": "Placeholder",
        "attr": {"dtype": {"type": dtype}, "shape": {"shape": {"unknownRank": True}}},
    }


def strings(*texts: str) -> dict[str, Any]:
    """An attribute that is a list of texts."""
    return {"list": {"s": [base64.b64encode(text.encode()).decode() for text in texts]}}


def ints(*numbers: int) -> dict[str, Any]:
    """An attribute that is a list of numbers, which JSON has as texts."""
    return {"list": {"i": [str(number) for number in numbers]}}


def weight(
    name: str, stored: Any, dtype: str = "", **quantization: Any
) -> tuple[dict[str, Any], bytes]:
    """An entry of a manifest, and its bytes; ``stored`` are the numbers in the file."""
    stored = np.asarray(stored)
    spec: dict[str, Any] = {
        "name": name,
        "shape": list(stored.shape),
        "dtype": dtype or stored.dtype.name,
    }
    if quantization:
        spec["quantization"] = {"dtype": stored.dtype.name, **quantization}
    if stored.dtype.hasobject:
        texts = b"".join(len(text).to_bytes(4, "little") + text for text in stored.flat)
        return {**spec, "dtype": "string"}, texts
    return spec, stored.tobytes()


def write_model(folder: Path, nodes: list[Any], weights: list[Any], **more: Any) -> Path:
    """A ``model.json`` and two shards, cut in the middle of a number; returns the folder."""
    specs = [spec for spec, _ in weights]
    data = b"".join(content for _, content in weights)
    cut = len(data) // 2
    paths = ["group1-shard1of2.bin", "group1-shard2of2.bin"]
    for name, content in zip(paths, (data[:cut], data[cut:]), strict=True):
        (folder / name).write_bytes(content)
    topology = {"node": nodes, "versions": {"minConsumer": 12}, "library": more.pop("library", {})}
    model = {
        "format": "graph-model",
        "modelTopology": topology,
        "weightsManifest": [{"paths": paths, "weights": specs}],
        **more,
    }
    (folder / "model.json").write_text(json.dumps(model))
    return folder


def all_kinds(folder: Path) -> Path:
    """A model with every way of storing, a function, and an initializer that fills a table."""
    names = np.array([b"", "ü".encode(), b"\xff"], object)
    weights = [
        weight("plain", np.float32([1.5, -2])),
        weight("double", np.float32([0.25])),
        weight("long", np.int32([7, -7])),
        weight("flag", np.array([True, False])),
        weight("names", names),
        weight("eight", np.uint8([0, 255]), "float32", scale=0.5, min=-1.0),
        weight("sixteen", np.uint16([0, 65535]), "float32", scale=2.0, min=3.0),
        weight("half", np.float16([0.1, 65504]), "float32", original_dtype="float32"),
        weight("whole", np.uint8([0, 3]), "int32", scale=1.0, min=-1.0),
        weight("body/factor", np.float32(3)),
        weight("keys", np.array([b"a", b"b"], object)),
        weight("values", np.int32([10, 20])),
    ]
    types = {"key_dtype": {"type": "DT_STRING"}, "value_dtype": {"type": "DT_INT64"}}
    table = {"name": "table", "op": "HashTableV2", "attr": types}
    anything = {"unknownRank": True}
    nodes = [
        placeholder("x"), placeholder("words", "DT_STRING"),
        const("plain"), const("double", "DT_DOUBLE"), const("long", "DT_INT64"),
        const("flag", "DT_BOOL"), const("names", "DT_STRING"), const("eight"), const("sixteen"),
        const("half"), const("whole", "DT_INT32"), const("unknown", "DT_INT64"),
        table,
        {"name": "found", "op": "LookupTableFindV2", "input": ["table", "words", "unknown"],
         "attr": {"Tin": {"type": "DT_STRING"}, "Tout": {"type": "DT_INT64"}}},
        {"name": "called", "op": "PartitionedCall", "input": ["x"], "attr": {
            "Tin": {"list": {"type": ["DT_FLOAT"]}}, "Tout": {"list": {"type": ["DT_FLOAT"]}},
            "f": {"func": {"name": "body"}}}},
    ]  # fmt: skip
    weights.append(weight("unknown", np.int32(-1)))
    body = {
        "signature": {
            "name": "body",
            "inputArg": [{"name": "a", "type": "DT_FLOAT"}],
            "outputArg": [{"name": "b", "type": "DT_FLOAT"}],
        },
        "nodeDef": [const("body/factor"), node("Mul", "product", "a", "body/factor:output:0")],
        "ret": {"b": "product:z:0"},
    }
    initializer = {"node": [
        table,
        const("keys", "DT_STRING"), const("values", "DT_INT64"),
        {"name": "fill", "op": "LookupTableImportV2", "input": ["table", "keys", "values"],
         "attr": {"Tin": {"type": "DT_STRING"}, "Tout": {"type": "DT_INT64"}}},
    ]}  # fmt: skip
    signature = {
        "inputs": {"x": {"name": "x:0", "dtype": "DT_FLOAT", "tensorShape": anything},
                   "words": {"name": "words", "dtype": "DT_STRING", "tensorShape": anything}},
        "outputs": {"y": {"name": "called:0", "dtype": "DT_FLOAT", "tensorShape": anything},
                    "ids": {"name": "found", "dtype": "DT_INT64", "tensorShape": anything}},
    }  # fmt: skip
    return write_model(
        folder, nodes, weights, library={"function": [body]}, signature=signature,
        modelInitializer=initializer,
    )  # fmt: skip
