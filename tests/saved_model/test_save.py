"""What is saved is loaded again, and is what TensorFlow expects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.checkpoint import load as open_checkpoint
from penstock.defs.schema import SavedModel

SPEC = ps.saved_model.TensorSpec(ps.dtypes.float32, ps.TensorShape.of([None, 2]))


def linear(kind: str = "resource") -> tuple[ps.Graph, dict[str, Any]]:
    """``y = x · w``, with w [[1, 2], [3, 4]]; and its tensors."""
    graph = ps.Graph()
    start = np.array([[1, 2], [3, 4]], np.float32)
    with graph.as_default():
        x = ps.placeholder("float32", [None, 2], name="x")
        if kind == "resource":
            w: Any = ps.Variable(start, name="w")
            value, init = w.value(), ps.global_variables_initializer()
            double = w.assign(w.value() * 2.0)
        else:
            w = value = ps.ops.variable_v2([2, 2], "float32", name="w")
            init = ps.ops.assign(w, start)
            double = ps.ops.assign(w, value * 2.0)
        y = ps.ops.mat_mul(x, value, name="y")
    return graph, {"x": x, "y": y, "init": init, "double": double}


@pytest.mark.parametrize("kind", ["resource", "reference"])
def test_a_session_is_saved_with_its_values(tmp_path: Path, kind: str) -> None:
    """As variables are now; both kinds come back from the checkpoint, under their names."""
    graph, t = linear(kind)
    with ps.Session(graph) as session:
        session.run(t["init"])
        session.run(t["double"])
        signatures = {"serving_default": ({"a": t["x"]}, {"b": "y:0"})}
        path = ps.saved_model.save(tmp_path / "model", signatures, session=session)

    assert open_checkpoint(f"{path}/variables/variables")["w"].tolist() == [[2, 4], [6, 8]]
    with ps.saved_model.load(path) as model:
        signature = model.signatures["serving_default"]
        assert str(signature) == "serving_default(a: float32[?,2]) -> {b: float32[?,2]}"
        assert signature(a=[[1, 1]])["b"].tolist() == [[8, 12]]
        assert model.variables["w"].tolist() == [[2, 4], [6, 8]]


def test_the_graph_that_was_saved_is_not_changed(tmp_path: Path) -> None:
    """Nodes that save and restore are in the model alone."""
    graph, t = linear()
    with ps.Session(graph) as session:
        session.run(t["init"])
        before = graph.names()
        ps.saved_model.save(tmp_path / "model", {"s": ({"x": "x"}, {"y": "y"})}, session=session)

    assert graph.names() == before


def test_functions_build_what_they_offer(tmp_path: Path) -> None:
    """Of specifications of inputs; a single result is called output."""
    graph = ps.Graph()
    with graph.as_default():
        w = ps.Variable([1.0, 10.0], name="w")

        def scale(x: Any) -> Any:
            return x * w.value()

        def both(x: Any, y: Any) -> Any:
            return {"sum": x + y, "difference": x - y}

        ps.saved_model.save(
            tmp_path / "model",
            {"scale": ({"x": SPEC}, scale), "both": ({"x": SPEC, "y": SPEC}, both)},
            graph=graph,
        )
    with ps.saved_model.load(tmp_path / "model") as model:
        assert model.signatures["scale"](x=[[1, 2]])["output"].tolist() == [[1, 20]]
        answer = model.signatures["both"](x=[[1, 2]], y=[[3, 5]])
        assert {name: value.tolist() for name, value in answer.items()} == {
            "sum": [[4, 7]],
            "difference": [[-2, -3]],
        }


def test_assets_travel_with_the_model(tmp_path: Path) -> None:
    """A table is filled from its file, wherever the model is moved to."""
    words = tmp_path / "words.txt"
    words.write_text("sun\nmoon\n")
    graph = ps.Graph()
    with graph.as_default():
        file = ps.constant(str(words), name="file")
        table = ps.ops.hash_table_v2("string", "int64", shared_name="t")
        init = ps.ops.initialize_table_from_text_file_v2(table, file, -2, -1)
        given = ps.placeholder("string", [None], name="given")
        found = ps.ops.lookup_table_find_v2(table, given, ps.constant(-1, "int64"))
    path = ps.saved_model.save(
        tmp_path / "model",
        {"ids": ({"words": given}, {"ids": found})},
        graph=graph,
        init=init,
        assets={file: words},
    )
    words.unlink()
    Path(path).rename(tmp_path / "moved")

    with ps.saved_model.load(tmp_path / "moved") as model:
        assert model.signatures["ids"](words=["moon", "mars"])["ids"].tolist() == [1, -1]


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    """An empty folder will do; one with something in it stays as it is."""
    graph, t = linear()
    with ps.Session(graph) as session:
        session.run(t["init"])
        signatures = {"s": ({"x": "x"}, {"y": "y"})}
        (tmp_path / "empty").mkdir()
        ps.saved_model.save(tmp_path / "empty", signatures, session=session)
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "letter").touch()
        with pytest.raises(errors.AlreadyExistsError):
            ps.saved_model.save(tmp_path / "full", signatures, session=session)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "full"]


def test_a_model_that_cannot_be_saved_leaves_nothing(tmp_path: Path) -> None:
    """A name that means nothing, an asset that is not there, a variable without a value."""
    graph, t = linear()
    with ps.Session(graph) as session:
        with pytest.raises(errors.FailedPreconditionError, match="w has no value"):
            ps.saved_model.save(tmp_path / "model", {}, session=session)
        session.run(t["init"])
        signatures = {"s": ({"x": "x"}, {"y": "nothing"})}
        with pytest.raises(errors.OpError, match="nothing"):
            ps.saved_model.save(tmp_path / "model", signatures, session=session)
        with graph.as_default():
            ps.constant("name", name="file")
        assets = {"file": tmp_path / "nothing.txt"}
        with pytest.raises(errors.NotFoundError):
            ps.saved_model.save(tmp_path / "model", {}, session=session, assets=assets)

    assert list(tmp_path.iterdir()) == []


def test_the_message_is_what_loaders_of_tensorflow_look_for(tmp_path: Path) -> None:
    """Tags, the saver's three names, methods, types: TensorFlow 2.21 was seen to need them."""
    graph, t = linear()
    with ps.Session(graph) as session:
        session.run(t["init"])
        signatures = {"s": ({"x": t["x"]}, {"y": t["y"]})}
        path = ps.saved_model.save(tmp_path / "model", signatures, session=session, tags=["b", "a"])
    message = SavedModel.FromString((Path(path) / "saved_model.pb").read_bytes())
    [meta_graph] = message.meta_graphs
    nodes = {node.name: node.op for node in meta_graph.graph_def.node}
    saver, signature = meta_graph.saver_def, meta_graph.signature_def["s"]

    assert message.saved_model_schema_version == 1
    assert list(meta_graph.meta_info_def.tags) == ["a", "b"]
    assert nodes[saver.restore_op_name] == "NoOp"
    assert nodes[saver.save_tensor_name.removesuffix(":0")] == "Identity"
    assert nodes[saver.filename_tensor_name.removesuffix(":0")] == "PlaceholderWithDefault"
    assert (signature.method_name, signature.inputs["x"].dtype) == ("tensorflow/serving/predict", 1)
