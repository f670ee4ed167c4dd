"""Loading a SavedModel: which graph, which values, what is said when something is wrong."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core.files import FileMap
from penstock.defs.schema import SavedModel
from support.saved_models import FOLDER, assert_same, recorded

load = ps.saved_model.load


def model_at(name: str) -> Path:
    return FOLDER / name / "model"


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., Path]:
    """A copy of a committed model, with its message changed by a function."""

    def make(name: str, change: Callable[[Any], object]) -> Path:
        folder = tmp_path / name
        shutil.copytree(model_at(name), folder)
        message = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
        change(message)
        (folder / "saved_model.pb").write_bytes(message.SerializeToString())
        return folder

    return make


# -- tags ------------------------------------------------------------------------------------


def test_tags_are_a_set() -> None:
    """Order and repetitions mean nothing, and a text with commas is as good as a list."""
    for tags in (["gpu", "serve"], ("serve", "gpu", "gpu"), "serve,gpu", "gpu, serve"):
        with load(model_at("tags_and_assets"), tags) as model:
            assert model.tags == ("gpu", "serve")


def test_the_empty_set_of_tags_is_one_like_any_other() -> None:
    """It is chosen by an empty list, though the model has two other graphs."""
    with load(model_at("tags_and_assets"), []) as model:
        assert model.tags == ()
        assert model.signatures["serving_default"](words=["red"])["y"].tolist() == [0.0]


def test_tags_that_are_not_there_are_answered_with_those_that_are() -> None:
    """The error names every set of the model."""
    with pytest.raises(errors.NotFoundError) as caught:
        load(model_at("tags_and_assets"), ["gpu"])

    assert "[], ['serve'], ['gpu', 'serve']" in caught.value.message


def test_no_tags_mean_the_only_graph() -> None:
    """Where there are several, one must be chosen."""
    with load(model_at("keras_mlp")) as model:
        assert model.tags == ("serve",)
    with pytest.raises(errors.InvalidArgumentError, match="has 3 graphs"):
        load(model_at("tags_and_assets"))


# -- what there is -------------------------------------------------------------------------


def test_the_file_in_the_folder_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of ``saved_model.pb`` means its folder, also relative to the present one."""
    monkeypatch.chdir(model_at("simple_save"))
    with load("saved_model.pb") as model:
        assert list(model.signatures) == ["serving_default"]


def test_signatures_say_what_they_take_and_give() -> None:
    """Names, types and shapes; what initializes tables is no signature."""
    with load(model_at("keras_two_inputs")) as model:
        assert sorted(model.signatures) == ["serve", "serving_default"]
        signature = model.signatures["serve"]
        assert {name: str(spec) for name, spec in signature.inputs.items()} == {
            "left": "float32[?,4]",
            "right": "float32[?,4]",
        }
        assert str(signature) == (
            "serve(left: float32[?,4], right: float32[?,4]) -> {output_0: float32[?,1]}"
        )


def test_a_missing_signature_is_answered_with_what_can_be_called() -> None:
    """Signatures and functions are listed; the error is a KeyError, too."""
    with load(model_at("polymorphic")) as model, pytest.raises(errors.NotFoundError) as caught:
        model.signatures["serving_default"]

    assert isinstance(caught.value, KeyError)
    assert "inner.call" in caught.value.message
    assert "layers.1.call" in caught.value.message


def test_a_missing_function_is_answered_with_those_that_there_are() -> None:
    """The error says how far the path goes."""
    with load(model_at("polymorphic")) as model:
        with pytest.raises(errors.NotFoundError, match=r"'inner' has .*call") as caught:
            model.functions["inner.cal"]
        assert isinstance(caught.value, KeyError)
        with pytest.raises(errors.NotFoundError, match="is no function"):
            model.functions["inner"]
        with pytest.raises(errors.NotFoundError, match="cannot be called itself"):
            model()


def test_functions_are_those_of_the_program() -> None:
    """Neither traces nor what makes tables are listed; all of them can be called by path."""
    with load(model_at("tables")) as model:
        assert list(model.functions) == ["find", "insert"]
        assert "find.trace_0" in model.functions
        assert "fixed._create_resource" in model.functions


# -- calling -------------------------------------------------------------------------------


def test_python_values_choose_the_trace_that_they_naturally_mean() -> None:
    """1.0 means float32 and 1 int32; without a trace for that, another type will do."""
    with load(model_at("polymorphic")) as model:
        double = model.functions["double"]
        assert double([4.0]).dtype == np.float32
        assert double([[1, 2], [3, 4]]).dtype == np.int32
        assert double([[1.0, 2.0, 3.0]]).dtype == np.float64


def test_a_call_that_no_trace_fits_is_answered_with_all_traces() -> None:
    """Types, shapes and plain values stand in the error."""
    with load(model_at("polymorphic")) as model, pytest.raises(errors.OpError) as caught:
        model.functions["double"](np.ones((5, 5), np.int64), times=9)

    assert "double(int64[5, 5], times=9)" in caught.value.message
    assert "double(x: float32[2], 3)" in caught.value.message
    assert "double(x: float64[?,3], 2)" in caught.value.message


def test_true_is_not_one() -> None:
    """A plain value must be of the type that the function was traced for."""
    no_trace = pytest.raises(errors.InvalidArgumentError, match="matching concrete function")
    with load(model_at("polymorphic")) as model, no_trace:
        model.functions["inner.call"](np.ones((1, 2), np.float32), transpose=1)


def test_results_have_the_names_of_a_namedtuple() -> None:
    """Fields are found by name, and nothing else is."""
    with load(model_at("polymorphic")) as model:
        point = model.functions["nested"]({"a": 1.0, "b": (2.0,)})["point"]

    assert (point.x, point.y) == (3.0, [1.0])
    with pytest.raises(AttributeError, match="there are x, y"):
        _ = point.z


def test_inputs_of_a_signature_are_checked() -> None:
    """Missing and unknown ones are named, with what the signature takes."""
    with load(model_at("keras_two_inputs")) as model:
        signature = model.signatures["serve"]
        x = np.ones((1, 4), np.float32)
        with pytest.raises(errors.InvalidArgumentError, match="wants the input 'right'"):
            signature(left=x)
        with pytest.raises(errors.InvalidArgumentError, match="has no input 'top'"):
            signature(left=x, right=x, top=x)


def test_defaults_stand_in_for_inputs(edited: Callable[..., Path]) -> None:
    """A SignatureDef's defaults are used for what is not given, and only for that."""
    from penstock.core import dtypes
    from penstock.defs.tensors import to_proto

    def add_default(message: Any) -> None:
        signature = message.meta_graphs[0].signature_def["combine"]
        signature.defaults["b"].CopyFrom(to_proto(np.float32(10), dtypes.float32))

    with load(edited("several_signatures", add_default)) as model:
        combine = model.signatures["combine"]
        assert combine(a=[1.0])["output_0"].tolist() == [11.0]
        assert combine(a=[1.0], b=2.0)["output_0"].tolist() == [3.0]
        assert "b: float32[] (optional)" in str(combine)


def test_signatures_without_structures_are_known_by_their_definitions(
    edited: Callable[..., Path],
) -> None:
    """Names of arguments and of the SignatureDef's outputs, where structures say nothing."""

    def forget(message: Any) -> None:
        for function in message.meta_graphs[0].object_graph_def.concrete_functions.values():
            function.ClearField("canonicalized_input_signature")
            function.ClearField("output_signature")

    call = recorded("several_signatures").calls[0]
    with load(edited("several_signatures", forget)) as model:
        assert_same(model.signatures[call.signature](**call.kwargs), call.result)
        assert model.signatures["combine"](b=1.0, a=[2.0])["output_0"].tolist() == [3.0]
        assert model.functions["scale"]([2.0]) == [3.0, [6.0]]


def test_signatures_show_what_the_graph_tells_of_shapes(edited: Callable[..., Path]) -> None:
    """Sizes that a model of one graph leaves open are inferred, and are those TensorFlow wrote."""
    with load(model_at("simple_save")) as model:
        stated = str(model.signatures["serving_default"])

    def forget(message: Any) -> None:
        for output in message.meta_graphs[0].signature_def["serving_default"].outputs.values():
            assert output.tensor_shape.dim
            output.tensor_shape.Clear()
            output.tensor_shape.unknown_rank = True

    path = edited("simple_save", forget)
    [described] = ps.saved_model.describe(path)
    with load(path) as model:
        signature = model.signatures["serving_default"]
        assert str(signature) == stated
        assert described.signatures["serving_default"].outputs == signature.outputs
        assert all(spec.shape.dims for spec in signature.outputs.values())


def test_a_signature_that_contradicts_its_graph_is_shown_as_it_is(
    edited: Callable[..., Path],
) -> None:
    """What the model says counts for its text; the call says what is true."""

    def lie(message: Any) -> None:
        [output] = message.meta_graphs[0].signature_def["serving_default"].outputs.values()
        output.tensor_shape.Clear()
        output.tensor_shape.dim.add(size=-1)
        output.tensor_shape.dim.add(size=77)

    with load(edited("simple_save", lie)) as model:
        assert "[?,77]}" in str(model.signatures["serving_default"])


def test_sparse_and_ragged_arguments_need_their_classes() -> None:
    """A list of rows will do for one ragged dimension; an array will not."""
    with load(model_at("composites")) as model:
        lengths = model.functions["lengths"]
        assert lengths([[1.0, 2.0], [], [3.0]])["lengths"].tolist() == [2, 0, 1]
        with pytest.raises(errors.InvalidArgumentError, match="must be a RaggedTensor"):
            lengths(np.ones((2, 2), np.float32))
        with pytest.raises(errors.InvalidArgumentError, match="must be a SparseTensor"):
            model.functions["dense"](np.ones((2, 3), np.float32))


def test_ragged_and_sparse_values_become_plain_ones() -> None:
    """Lists in lists, by the splits of every dimension; an array with zeros."""
    deep = ps.saved_model.RaggedTensor(np.arange(4), (np.array([0, 2, 3]), np.array([0, 1, 3, 4])))
    sparse = ps.saved_model.SparseTensor(np.array([[0, 1], [1, 0]]), np.array([5, 6]), [2, 3])

    assert deep.to_list() == [[[0], [1, 2]], [[3]]]
    assert sparse.to_dense().tolist() == [[0, 5, 0], [6, 0, 0]]


def test_a_tensor_of_a_function_s_body_may_be_captured(edited: Callable[..., Path]) -> None:
    """It is a constant there, as outer functions leave them to inner ones."""

    def move(message: Any) -> None:
        """Have the constant that is captured stand in a function instead of the main graph."""
        [meta_graph] = message.meta_graphs
        objects = meta_graph.object_graph_def
        [captured] = [node for node in objects.nodes if node.WhichOneof("kind") == "constant"]
        [node] = [n for n in meta_graph.graph_def.node if n.name == captured.constant.operation]
        home = meta_graph.graph_def.library.function[0]
        home.node_def.add().CopyFrom(node)
        home.node_def[-1].name = "inner"
        node.op, node.name = "NoOp", "gone"
        node.attr.clear()
        captured.captured_tensor.name = "inner:output:0"
        captured.captured_tensor.concrete_function = home.signature.name

    call = recorded("constants").calls[0]
    with load(edited("constants", move)) as model:
        assert_same(model.signatures[call.signature](**call.kwargs), call.result)


# -- variables -----------------------------------------------------------------------------


def test_variables_are_told_by_their_place_and_not_by_name() -> None:
    """Two variables called d1/kernel, beside two more of submodels, have their own values."""
    with load(model_at("repeated_names")) as model:
        assert model.variables["bias"].tolist() == [1.0, 2.0, 3.0]
        assert model.variables["scale"].tolist() == [[10.0, 20.0, 30.0]]
        paths = (f"{name}._layers.1._kernel" for name in ("encoder", "decoder"))
        encoder, decoder = (model.variables[path] for path in paths)
        assert encoder.shape == decoder.shape
        assert not np.array_equal(encoder, decoder)


def test_only_what_is_captured_is_restored() -> None:
    """Keras saves each weight twice; the second copy takes no memory until somebody asks."""
    with load(model_at("keras_mlp")) as model:
        model.signatures["serve"](features=np.ones((1, 5), np.float32))
        resources = model.session.resources
        held = [path for path in model.variables if resources.find("", path, "Var") is not None]
        assert sorted(held) == ["variables.0", "variables.1", "variables.2", "variables.3"]
        copies = (model.variables["_all_variables.0"], model.variables["variables.0"])
        np.testing.assert_array_equal(*copies)


@pytest.mark.parametrize(("name", "path"), [("keras_gru", "variables.0"), ("simple_save", "w")])
def test_values_are_views_of_the_file(name: str, path: str) -> None:
    """Of both generations: neither copied nor writable, so that processes share the pages."""
    call = recorded(name).calls[0]
    with load(model_at(name)) as model:
        model.signatures[call.signature](**call.kwargs)
        kind = "Var" if name == "keras_gru" else "LegacyVar"
        value = model.session.resources.find("", path, kind).value
        owner = value
        while isinstance(owner, np.ndarray):
            owner = owner.base
        owner = owner.obj if isinstance(owner, memoryview) else owner

        assert isinstance(owner, FileMap)
        assert not value.flags.writeable


def test_threads_may_call_a_model_for_the_first_time_at_once() -> None:
    """Each function is made ready once, each variable restored once, and all answers are right."""
    start = threading.Barrier(8)

    def call(number: int) -> list[float]:
        start.wait(30)
        name = ("scale", "serving_default")[number % 2]
        answer: list[float] = model.signatures[name](x=[float(number)])["scaled"].tolist()
        return answer

    with load(model_at("several_signatures")) as model, ThreadPoolExecutor(8) as threads:
        assert list(threads.map(call, range(8))) == [[3.0 * number] for number in range(8)]


def test_an_assigned_variable_stays_in_the_model() -> None:
    """State lives as long as the loaded model, and no longer; files do not change."""
    before = (
        model_at("several_signatures") / "variables/variables.data-00000-of-00001"
    ).read_bytes()
    with load(model_at("several_signatures")) as model:
        model.signatures["set_factor"](value=5.0)
        assert model.signatures["scale"](x=[2.0])["scaled"].tolist() == [10.0]
        assert model.variables["factor"] == 5.0
    with load(model_at("several_signatures")) as model:
        assert model.variables["factor"] == 3.0
    after = (
        model_at("several_signatures") / "variables/variables.data-00000-of-00001"
    ).read_bytes()
    assert before == after


def test_variables_of_a_graph_have_names() -> None:
    """References and resources alike; a missing one is answered with those that there are."""
    with load(model_at("simple_save")) as model:
        assert sorted(model.variables) == ["b", "w"]
        assert model.variables["w"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert model.variables["b"].tolist() == [0.5, -0.5]
        with pytest.raises(KeyError, match="it has"):
            model.variables["c"]


def test_slots_of_an_optimizer_are_plain_variables() -> None:
    """Those of a trained Keras model have the values that the checkpoint has."""
    path = model_at("keras_trained")
    stored = ps.checkpoint.load(path / "variables/variables")
    with load(path) as model:
        kept = {name: value for name, value in model.variables.items() if "optimizer" in name}
    assert len(kept) >= 8
    for name, value in kept.items():
        key = f"{name.replace('.', '/')}/.ATTRIBUTES/VARIABLE_VALUE"
        np.testing.assert_array_equal(value, stored[key])


def test_a_slot_variable_is_found_by_its_variable_and_name(edited: Callable[..., Path]) -> None:
    """Objects that only an optimizer's table of slots leads to, in both graphs of objects."""
    from penstock.defs.schema import message_class

    def hide(message: Any) -> None:
        """Have ``calls`` be a slot of ``factor``, which an optimizer keeps, and nothing else."""
        objects = message.meta_graphs[0].object_graph_def
        ends = {child.local_name: child.node_id for child in objects.nodes[0].children}
        _without(objects.nodes[0].children, "calls")
        objects.nodes[0].slot_variables.add(
            original_variable_node_id=ends["factor"],
            slot_name="momentum",
            slot_variable_node_id=ends["calls"],
        )

    folder = edited("several_signatures", hide)
    prefix = folder / "variables/variables"
    tensors = dict(ps.checkpoint.load(prefix))
    key = "_CHECKPOINTABLE_OBJECT_GRAPH"
    proto = message_class("TrackableObjectGraph").FromString(tensors[key])
    ends = {child.local_name: child.node_id for child in proto.nodes[0].children}
    _without(proto.nodes[0].children, "calls")
    proto.nodes[0].slot_variables.add(
        original_variable_node_id=ends["factor"],
        slot_name="momentum",
        slot_variable_node_id=ends["calls"],
    )
    ps.checkpoint.save(prefix, {**tensors, key: proto.SerializeToString()})

    with load(folder) as model:
        assert "calls" not in model.variables
        answer = model.signatures["combine"](a=[1.0], b=2.0)
        assert (answer["output_0"].tolist(), answer["output_1"]) == ([3.0], 1)


def _without(children: Any, name: str) -> None:
    kept = [child for child in children if child.local_name != name]
    copies = [type(child).FromString(child.SerializeToString()) for child in kept]
    del children[:]
    children.extend(copies)


@pytest.mark.parametrize("name", ["simple_save", "estimator", "partitioned"])
def test_graphs_are_restored_without_a_step(name: str) -> None:
    """Where only assignments restore, no node runs, so that files may be forbidden to graphs."""
    recorded_model = recorded(name)
    call = recorded_model.calls[0]
    with load(model_at(name), config=ps.Config(allow_files=False)) as model:
        assert_same(model.signatures[call.signature](**call.kwargs), call.result)


def test_what_restores_in_another_way_is_run(edited: Callable[..., Path]) -> None:
    """A value that is computed from what is restored is computed."""

    def negate(message: Any) -> None:
        graph_def = message.meta_graphs[0].graph_def
        [assign] = [n for n in graph_def.node if n.op == "Assign" and "save" in n.name]
        node = graph_def.node.add(name="negated", op="Neg", input=[assign.input[1]])
        node.attr["T"].type = 1
        assign.input[1] = "negated"

    with load(edited("simple_save", negate)) as model:
        assert model.variables["w"].tolist() == [[-1.0, -2.0], [-3.0, -4.0]]


@pytest.mark.parametrize("form", ["legacy_init_op", "signature"])
def test_tables_are_filled_by_what_the_model_says(edited: Callable[..., Path], form: str) -> None:
    """The older collection, and the signature that goes before all."""

    def move(message: Any) -> None:
        [meta_graph] = [m for m in message.meta_graphs if list(m.meta_info_def.tags) == ["serve"]]
        main_op = meta_graph.collection_def["saved_model_main_op"].node_list.value[0]
        del meta_graph.collection_def["saved_model_main_op"]
        if form == "signature":
            name = "__saved_model_init_op"
            meta_graph.signature_def[name].outputs[name].name = main_op
            main_op = "there is no such node"
        meta_graph.collection_def["legacy_init_op"].node_list.value.append(main_op)

    with load(edited("tags_and_assets_serve", move), ["serve"]) as model:
        assert model.signatures["serving_default"](words=["green"])["y"].tolist() == [3.0]
        assert list(model.signatures) == ["serving_default"]


# -- wrong models --------------------------------------------------------------------------


def test_what_is_no_saved_model_is_said(tmp_path: Path) -> None:
    """A missing folder, an empty one, and one with something else."""
    with pytest.raises(errors.NotFoundError, match=r"There is no file .*nothing"):
        load(tmp_path / "nothing")
    with pytest.raises(errors.InvalidArgumentError, match="is a folder, not a GraphDef"):
        load(tmp_path)
    (tmp_path / "saved_model.cpb").write_bytes(b"chunks")
    with pytest.raises(errors.UnimplementedError, match="in chunks"):
        load(tmp_path)


def test_a_text_model_is_read(tmp_path: Path) -> None:
    """``saved_model.pbtxt`` is the same in another form."""
    from google.protobuf import text_format

    message = SavedModel.FromString((model_at("simple_save") / "saved_model.pb").read_bytes())
    shutil.copytree(model_at("simple_save"), tmp_path / "text")
    (tmp_path / "text" / "saved_model.pb").unlink()
    (tmp_path / "text" / "saved_model.pbtxt").write_text(text_format.MessageToString(message))

    with load(tmp_path / "text") as model:
        assert model.signatures["serving_default"](x=[[1, 0]])["y"].tolist() == [[1.5, 1.5]]


@pytest.mark.parametrize("filename", ["../secret", "a/../../secret", "/etc/passwd", "c:\\x", "\\x"])
def test_assets_stay_in_the_folder(edited: Callable[..., Path], filename: str) -> None:
    """A path of the model's own that leads out of its folder is refused before it is opened."""

    def lead_out(message: Any) -> None:
        for asset in message.meta_graphs[0].asset_file_def:
            asset.filename = filename

    with pytest.raises(errors.InvalidArgumentError, match="is not in the model's folder"):
        load(edited("table_from_asset", lead_out))


def test_all_ops_that_cannot_run_are_listed_at_once(edited: Callable[..., Path]) -> None:
    """Before anything runs: of a function that is called, and of those that it calls."""

    def spoil(message: Any) -> None:
        for function in message.meta_graphs[0].graph_def.library.function:
            if "_scale_" in function.signature.name:
                for number, node in enumerate(function.node_def):
                    if node.op in ("Mul", "ReadVariableOp"):
                        node.op = f"Unheard{number}"

    with load(edited("several_signatures", spoil)) as model:
        with pytest.raises(errors.UnimplementedError) as caught:
            model.signatures["scale"](x=[1.0])
        assert caught.value.message.count("Unheard") >= 2
        assert "__inference_scale" in caught.value.message
        # What does not need them runs.
        assert model.signatures["set_factor"](value=1.0)["factor"] == 1.0


def test_what_cannot_be_prepared_fails_in_the_same_way_again(edited: Callable[..., Path]) -> None:
    """A first attempt leaves nothing behind that a second one would meet."""

    def capture_a_function(message: Any) -> None:
        objects = message.meta_graphs[0].object_graph_def
        [number] = [c.node_id for c in objects.nodes[0].children if c.local_name == "scale"]
        for name, function in objects.concrete_functions.items():
            if "scale" in name:
                function.bound_inputs[0] = number

    with load(edited("several_signatures", capture_a_function)) as model:
        for _ in range(2):
            with pytest.raises(errors.UnimplementedError, match="captures scale, which is a func"):
                model.signatures["scale"](x=[1.0])


def test_unknown_ops_of_a_graph_are_listed_or_left_out(edited: Callable[..., Path]) -> None:
    """What a signature needs is listed; what nothing needs does no harm."""

    def spoil(message: Any) -> None:
        graph = message.meta_graphs[0].graph_def
        graph.node.add(name="lost", op="UnheardOf")

    def spoil_more(message: Any) -> None:
        for node in message.meta_graphs[0].graph_def.node:
            if node.op in ("MatMul", "BiasAdd", "AddV2", "Add"):
                node.op = f"Unheard{node.op}"

    with load(edited("simple_save", spoil)) as model:
        assert model.signatures["serving_default"](x=[[1, 0]])["y"].tolist() == [[1.5, 1.5]]
    shutil.rmtree(model.path)
    with pytest.raises(errors.UnimplementedError, match=r"UnheardAdd.*UnheardMatMul"):
        load(edited("simple_save", spoil_more))


def test_a_damaged_value_is_an_error(tmp_path: Path) -> None:
    """A bit that changed in the data file: DATA_LOSS, and no wrong answer."""
    shutil.copytree(model_at("keras_mlp"), tmp_path / "model")
    data = tmp_path / "model/variables/variables.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    content[10] ^= 4
    data.write_bytes(content)

    with load(tmp_path / "model") as model, pytest.raises(errors.DataLossError):
        model.signatures["serve"](features=np.ones((1, 5), np.float32))


@pytest.mark.parametrize("field", ["children", "bound", "slot"])
def test_edges_to_nowhere_are_damage(edited: Callable[..., Path], field: str) -> None:
    """Numbers of objects that are not there, wherever they stand."""

    def spoil(message: Any) -> None:
        objects = message.meta_graphs[0].object_graph_def
        if field == "children":
            objects.nodes[0].children[0].node_id = 10_000
        elif field == "slot":
            objects.nodes[0].slot_variables.add(slot_variable_node_id=-1)
        else:
            next(f for f in objects.concrete_functions.values() if f.bound_inputs).bound_inputs[
                0
            ] = -1

    with pytest.raises(errors.DataLossError, match="leads to object"):
        load(edited("several_signatures", spoil))


# -- pickling ------------------------------------------------------------------------------


def test_a_model_opens_itself_again_where_it_is_unpickled() -> None:
    """In another process, from what is little more than a path."""
    name = "keras_mlp"
    call = recorded(name).calls[0]
    with load(model_at(name)) as model:
        pickled = pickle.dumps(model)
    assert len(pickled) < 4000
    code = (
        "import pickle, sys; model = pickle.load(sys.stdin.buffer);"
        "answer = model.signatures['serving_default'](features=[[1, 2, 3, 4, 5]]);"
        "print(answer['output_0'].tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickled, capture_output=True, check=True
    )
    with load(model_at(name)) as model:
        answer = model.signatures["serving_default"](features=[[1, 2, 3, 4, 5]])["output_0"]
    assert done.stdout.decode().strip() == str(answer.tolist())
    assert call.signature == "serving_default"


def test_another_model_at_the_path_is_not_taken_for_the_pickled_one(tmp_path: Path) -> None:
    """The fingerprint tells, also if only a value differs."""
    shutil.copytree(model_at("simple_save"), tmp_path / "model")
    with load(tmp_path / "model") as model:
        pickled = pickle.dumps(model)
    shutil.copytree(model_at("partitioned"), tmp_path / "model", dirs_exist_ok=True)

    with pytest.raises(errors.FailedPreconditionError, match="another model"):
        pickle.loads(pickled)


@pytest.mark.parametrize("which", ["variables/variables.data-00000-of-00001", "saved_model.pb"])
def test_the_file_that_changed_is_named(tmp_path: Path, which: str) -> None:
    """A single byte of any file of the model tells, and the error says which file."""
    shutil.copytree(model_at("keras_mlp"), tmp_path / "model")
    with load(tmp_path / "model") as model:
        pickled = pickle.dumps(model)
    content = bytearray((tmp_path / "model" / which).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "model" / which).write_bytes(content)

    with pytest.raises(errors.FailedPreconditionError, match=f"another model .*{which} changed"):
        pickle.loads(pickled)


def test_a_checkpoint_beside_a_graph_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    """The values that were given with the graph are those that it has where it is unpickled."""
    graph = ps.Graph()
    with graph.as_default():
        ps.Variable([1.0, 2.0], name="w")
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    prefix = ps.checkpoint.save(tmp_path / "model.ckpt-7", {"w": np.float32([3, 4])})
    with load(tmp_path / "graph.pb", checkpoint=prefix) as model:
        pickled = pickle.dumps(model)
    with pickle.loads(pickled) as again:
        assert again.variables["w"].tolist() == [3, 4]
    ps.checkpoint.save(prefix, {"w": np.float32([5, 6])})

    with pytest.raises(errors.FailedPreconditionError, match=r"model\.ckpt-7\.index.* changed"):
        pickle.loads(pickled)


def test_a_model_that_is_not_there_is_missed_by_name(tmp_path: Path) -> None:
    """Who unpickles where the path leads nowhere learns which file is missing, and what to do."""
    shutil.copytree(model_at("keras_mlp"), tmp_path / "model")
    with load(tmp_path / "model") as model:
        pickled = pickle.dumps(model)
    shutil.rmtree(tmp_path / "model")

    with pytest.raises(errors.NotFoundError, match=r"(?s)saved_model\.pb; .*shared file system"):
        pickle.loads(pickled)


def test_what_was_replaced_after_loading_is_not_pickled(tmp_path: Path) -> None:
    """The fingerprint is that of what was loaded, not of what lies there by now."""
    shutil.copytree(model_at("simple_save"), tmp_path / "model")
    with load(tmp_path / "model") as model:
        shutil.copytree(model_at("partitioned"), tmp_path / "model", dirs_exist_ok=True)
        with pytest.raises(errors.FailedPreconditionError, match="changed after the model was"):
            pickle.dumps(model)


def test_a_model_of_bytes_is_not_pickled() -> None:
    """It has no path, and the error says what to do about it."""
    content = (model_at("simple_save") / "saved_model.pb").read_bytes()
    with (
        load(content) as model,
        pytest.raises(errors.FailedPreconditionError, match="loaded from bytes"),
    ):
        pickle.dumps(model)
