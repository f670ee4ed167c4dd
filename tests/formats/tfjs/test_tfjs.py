"""Graph models of TensorFlow.js, whose values are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.formats import tfjs
from penstock.formats.place import Place
from support.tfjs_models import (
    all_kinds,
    const,
    ints,
    node,
    placeholder,
    strings,
    weight,
    write_model,
)

DRAW = np.random.default_rng(4)


def changed(folder: Path, **fields: Any) -> Path:
    """The model with other fields."""
    path = folder / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    return folder


def outputs_of(folder: Path, x: Any) -> dict[str, Any]:
    """What a model makes of its only input."""
    with ps.load_model(folder) as model:
        return model(x=x)


def test_weights_have_the_types_of_their_nodes(tmp_path: Path) -> None:
    """Plain ones, those that are stored in fewer bits, whole numbers, texts."""
    with ps.load_model(all_kinds(tmp_path)) as model:
        found = {
            name: model.session.run(f"{name}:0")
            for name in (
                "plain",
                "double",
                "long",
                "flag",
                "names",
                "eight",
                "sixteen",
                "half",
                "whole",
            )
        }

    assert {name: (str(array.dtype), array.tolist()) for name, array in found.items()} == {
        "plain": ("float32", [1.5, -2]),
        "double": ("float64", [0.25]),
        "long": ("int64", [7, -7]),
        "flag": ("bool", [True, False]),
        "names": ("object", [b"", "ü".encode(), b"\xff"]),
        "eight": ("float32", [-1, 126.5]),
        "sixteen": ("float32", [3, 131073]),
        "half": ("float32", [float(np.float16(0.1)), 65504]),
        "whole": ("int32", [-1, 2]),
    }


def test_functions_and_tables(tmp_path: Path) -> None:
    """Constants inside of functions are weights, too; the initializer has been run."""
    with ps.load_model(all_kinds(tmp_path) / "model.json") as model:
        found = model(x=[1.0, 2.0], words=["b", "z", "a"])
        assert list(model.signatures) == ["serving_default"]

    assert found["y"].tolist() == [3, 6]
    assert found["ids"].tolist() == [20, -1, 10]


def test_weights_of_one_name_are_taken_in_order(tmp_path: Path) -> None:
    """Functions may have constants of the same name; the manifest has them in the graph's order."""
    calls, functions, weights = [placeholder("x")], [], []
    for number in (1, 2):
        calls.append({"name": f"y{number}", "op": "PartitionedCall", "input": ["x"], "attr": {
            "Tin": {"list": {"type": ["DT_FLOAT"]}}, "Tout": {"list": {"type": ["DT_FLOAT"]}},
            "f": {"func": {"name": f"f{number}"}}}})  # fmt: skip
        functions.append({
            "signature": {"name": f"f{number}", "inputArg": [{"name": "a", "type": "DT_FLOAT"}],
                          "outputArg": [{"name": "b", "type": "DT_FLOAT"}]},
            "nodeDef": [const("c"), node("Mul", "product", "a", "c:output:0")],
            "ret": {"b": "product:z:0"},
        })  # fmt: skip
        weights.append(weight("c", np.float32(10 * number)))
    write_model(tmp_path, calls, weights, library={"function": functions})

    assert {name: value.tolist() for name, value in outputs_of(tmp_path, [2.0]).items()} == {
        "y1": [20], "y2": [40],
    }  # fmt: skip


# -- nodes that TensorFlow has not ---------------------------------------------------------


def prelu(x: Any, alpha: Any) -> Any:
    """By its definition."""
    return np.where(x > 0, x, alpha * x)


IMAGE = DRAW.standard_normal((1, 5, 5, 2)).astype(np.float32)
FILTER = DRAW.standard_normal((1, 1, 2, 3)).astype(np.float32)
DEPTHWISE = DRAW.standard_normal((1, 1, 2, 2)).astype(np.float32)
BIAS = np.float32([0.5, -1, 2])
WIDE_BIAS = np.float32([0.5, -1, 2, 0])
ALPHA = np.float32([0.1, 0.2, -0.3])
CONV = {
    "strides": ints(1, 1, 1, 1), "padding": {"s": "U0FNRQ=="}, "data_format": {"s": "TkhXQw=="},
    "dilations": ints(1, 1, 1, 1),
}  # fmt: skip


def test_prelu(tmp_path: Path) -> None:
    """Negative numbers are multiplied by alpha."""
    nodes = [placeholder("x"), const("alpha"), node("Prelu", "y", "x", "alpha")]
    write_model(tmp_path, nodes, [weight("alpha", ALPHA)])
    x = np.float32([[-1, -2, -3], [1, 0, np.inf]])

    assert np.array_equal(outputs_of(tmp_path, x)["y"], prelu(x, ALPHA))


@pytest.mark.parametrize(
    ("fused", "args", "function"),
    [
        (("BiasAdd",), ["bias"], lambda y: y + BIAS),
        (("BiasAdd", "Relu"), ["bias"], lambda y: np.maximum(y + BIAS, 0)),
        (("BiasAdd", "Relu6"), ["bias"], lambda y: np.clip(y + BIAS, 0, 6)),
        (("BiasAdd", "Prelu"), ["bias", "alpha"], lambda y: prelu(y + BIAS, ALPHA)),
        (("Prelu",), ["alpha"], lambda y: prelu(y, ALPHA)),
        (("BiasAdd", "LeakyRelu"), ["bias"], lambda y: prelu(y + BIAS, np.float32(0.3))),
        (
            ("BiasAdd", "Elu"),
            ["bias"],
            lambda y: np.where(y + BIAS > 0, y + BIAS, np.expm1(y + BIAS)),
        ),
        (("Sigmoid",), [], lambda y: 1 / (1 + np.exp(-y))),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("op", ["_FusedConv2D", "_FusedMatMul"])
def test_what_is_fused(tmp_path: Path, op: str, fused: Any, args: list[str], function: Any) -> None:
    """Convolutions and products with what follows, without the attributes that TensorFlow wants."""
    attrs = CONV if op == "_FusedConv2D" else {}
    filters = FILTER if op == "_FusedConv2D" else FILTER[0, 0]
    nodes = [
        placeholder("x"), const("filter"), const("bias"), const("alpha"),
        node(op, "y", "x", "filter", *args, fused_ops=strings(*fused),
             num_args={"i": str(len(args))}, leakyrelu_alpha={"f": 0.3}, **attrs),
    ]  # fmt: skip
    weights = [weight("filter", filters), weight("bias", BIAS), weight("alpha", ALPHA)]
    write_model(tmp_path, nodes, weights)
    x = IMAGE if op == "_FusedConv2D" else IMAGE[0, 0]

    expected = function((x @ FILTER[0, 0]).astype(np.float32))
    np.testing.assert_allclose(outputs_of(tmp_path, x)["y"], expected, rtol=1e-5, atol=1e-6)


def test_a_fused_depthwise_convolution(tmp_path: Path) -> None:
    """It is called otherwise than TensorFlow's own."""
    nodes = [
        placeholder("x"), const("filter"), const("bias"),
        node("FusedDepthwiseConv2dNative", "y", "x", "filter", "bias",
             fused_ops=strings("BiasAdd", "Relu"), num_args={"i": "1"}, **CONV),
    ]  # fmt: skip
    write_model(tmp_path, nodes, [weight("filter", DEPTHWISE), weight("bias", WIDE_BIAS)])

    products = IMAGE[..., np.newaxis] * DEPTHWISE[0, 0]
    expected = np.maximum(products.reshape(1, 5, 5, 4) + WIDE_BIAS, 0)
    np.testing.assert_allclose(outputs_of(tmp_path, IMAGE)["y"], expected, rtol=1e-5, atol=1e-6)


# -- what is wrong ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["../secret", "/etc/passwd", "a/../../b", "C:\\x", "http://x/y", "file:///etc/passwd", "a\0"],
)
def test_weights_lie_beside_the_model(tmp_path: Path, path: str) -> None:
    """A model names no file outside of its folder."""
    changed(all_kinds(tmp_path), weightsManifest=[{"paths": [path], "weights": []}])

    with pytest.raises(errors.InvalidArgumentError, match="outside of the folder"):
        tfjs.read(Place.at(tmp_path))


def test_other_models_are_told_apart(tmp_path: Path) -> None:
    """A layers model is one of Keras; other JSON is none at all."""
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"format": "layers-model", "modelTopology": {"model_config": {}}}))
    with pytest.raises(errors.UnimplementedError, match="layers model of TensorFlow"):
        tfjs.read(Place.at(tmp_path))
    path.write_text("{}")
    with pytest.raises(errors.InvalidArgumentError, match="no graph model of TensorFlow"):
        tfjs.read(Place.at(tmp_path))
    path.write_text("[" * 100_000)
    with pytest.raises(errors.InvalidArgumentError, match="nested too deeply"):
        tfjs.read(Place.at(tmp_path))
    with pytest.raises(errors.NotFoundError):
        tfjs.read(Place.at(tmp_path / "other.json"))


def test_short_and_missing_files_are_named(tmp_path: Path) -> None:
    """The error says which weight, or which file."""
    folder = all_kinds(tmp_path)
    shard = folder / "group1-shard2of2.bin"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(
        errors.DataLossError, match="the weight unknown needs 4 bytes, and there are 3"
    ):
        tfjs.read(Place.at(folder))
    shard.unlink()
    with pytest.raises(errors.NotFoundError, match="shard2of2"):
        tfjs.read(Place.at(folder))


@pytest.mark.parametrize(
    "spec",
    [
        {}, {"name": 1, "shape": [], "dtype": "int32"},
        {"name": "a", "shape": 3, "dtype": "int32"},
        {"name": "a", "shape": [-1], "dtype": "int32"},
        {"name": "a", "shape": [True], "dtype": "int32"},
        {"name": "a", "shape": [2**41], "dtype": "int32"},
        {"name": "a", "shape": [], "dtype": "int7"},
        {"name": "a", "shape": [1], "dtype": "float32", "quantization": {"dtype": "uint8"}},
        {"name": "a", "shape": [1], "dtype": "float32",
         "quantization": {"dtype": "uint8", "scale": "1", "min": 0}},
        {"name": "a", "shape": [1], "dtype": "float32", "quantization": 3}, "weight", None,
    ],
    ids=str,
)  # fmt: skip
def test_manifests_of_strangers(tmp_path: Path, spec: Any) -> None:
    """Whatever stands in one, the error is a sentence."""
    folder = all_kinds(tmp_path)
    changed(folder, weightsManifest=[{"paths": ["group1-shard1of2.bin"], "weights": [spec]}])

    with pytest.raises((errors.InvalidArgumentError, errors.ResourceExhaustedError)):
        tfjs.read(Place.at(folder))


def test_absurd_sizes_take_no_memory(tmp_path: Path) -> None:
    """A manifest may claim more than there is in any machine."""
    spec = {"name": "a", "shape": [2**39, 2**39], "dtype": "float32"}
    changed(all_kinds(tmp_path), weightsManifest=[{"paths": [], "weights": [spec]}])
    with pytest.raises(errors.ResourceExhaustedError, match="too large"):
        tfjs.read(Place.at(tmp_path))


def test_text_that_is_to_be_a_number(tmp_path: Path) -> None:
    """The node's type wins, but texts are no numbers."""
    nodes = [const("a")]
    write_model(tmp_path, nodes, [weight("a", np.array([b"x"], object))])
    with pytest.raises(errors.DataLossError, match="the weight of a is no float32"):
        tfjs.read(Place.at(tmp_path))
