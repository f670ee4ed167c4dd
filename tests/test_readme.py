"""What README.md, docs/add-an-op.md and docs/add-a-pass.md show works as it is written there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main
from penstock.kernels.api import registry as kernels
from penstock.state import devices
from support.custom import custom_kernels
from support.passes import custom_passes

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"


def snippets(name: str) -> list[str]:
    """The Python code of a page, block by block."""
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)


RUN_MODEL, LOAD_MODEL, BUILD_GRAPH = snippets("README.md")
#: What comes before is a kernel of one's own for an op of TensorFlow: see test_add_an_op_page.py.
*_, SCALE_BY, TRAITS, PY_FUNC, EAGER_CALLER, NEW_DEVICE = snippets("docs/add-an-op.md")

[DROP_REPETITIONS] = snippets("docs/add-a-pass.md")


def test_the_first_command_of_the_readme(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the installation, the network reads the digits of the test set."""
    text = (ROOT / "README.md").read_text("utf-8")
    commands = text.partition("<!-- commands -->")[2].partition("<!-- end")[0].split("\n")
    first, second = (line.strip() for line in commands if line.strip())
    install, _, command = first.partition(" && penstock ")
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(main, shlex.split(command), catch_exceptions=False)

    assert install == "pip install ."
    assert second == "pip install -e '.[test]' && pytest"
    assert done.exit_code == 0
    assert done.stdout.startswith("digit:0  int32[397]\n[0 4 2 7 7 9 1 9 0 9 3 8 6")


def test_commands_of_the_readme(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every command line that it lists is understood."""
    text = (ROOT / "README.md").read_text("utf-8")
    lines = re.findall(r"^penstock (.*?)(?:   .*)?$", text, re.MULTILINE)
    model = ps.Graph()
    with model.as_default():
        x = ps.ops.placeholder(ps.dtypes.float32, [2], name="x")
        ps.ops.neg(x, name="y")
    for name in ("model.pb", "unknown.pb"):
        (tmp_path / name).write_bytes(ps.graph_to_def(model).SerializeToString())
    np.save(tmp_path / "in.npy", np.float32([1, 2]))
    ps.checkpoint.save(tmp_path / "model.ckpt-7", {"w": [1.0]})
    signatures = {"serving_default": ({"x": "x"}, {"y": "y"})}
    ps.saved_model.save(tmp_path / "model", signatures, graph=model)
    monkeypatch.chdir(tmp_path)

    assert len(lines) > 10
    for line in lines:
        done = CliRunner().invoke(main, shlex.split(line), catch_exceptions=False)
        assert done.exit_code == 0, done.output
    with np.load("y.npz") as written:
        assert written["y:0"].tolist() == [-1, -2]


def test_a_saved_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program prints the signature, and has probabilities in the end."""
    monkeypatch.chdir(ROOT)
    namespace: dict[str, Any] = {}
    exec(LOAD_MODEL, namespace)

    assert namespace["outputs"]["output_0"].shape == (1, 3)
    assert namespace["outputs"]["output_0"].sum() == pytest.approx(1)


def test_a_model_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program runs as it stands there, and reads nearly all digits."""
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    exec(RUN_MODEL, names)
    with np.load(EXAMPLES / "digits_test.npz") as arrays:
        labels = arrays["labels"]

    assert names["digits"].shape == labels.shape
    assert np.mean(names["digits"] == labels) > 0.95


def test_a_graph_is_built(capsys: pytest.CaptureFixture[str]) -> None:
    """The loop prints what the comment says."""
    exec(BUILD_GRAPH, {})

    assert capsys.readouterr().out.split() == re.findall(r"# (\d+)$", BUILD_GRAPH, re.MULTILINE)


def test_an_op_of_ones_own() -> None:
    """It works as the page says: by name in the builder, with its outputs checked."""
    with custom_kernels():
        exec(SCALE_BY, {})
        graph = ps.Graph()
        with graph.as_default():
            y = ps.ops.scale_by(ps.ops.constant(2.0), factor=3.0)
            z = ps.ops.scale_by(y)
        with ps.Session(graph) as sess:
            assert sess.run([y, z]) == [6, 12]


def test_traits_of_a_kernel() -> None:
    """A kernel that says more is preferred by its priority, and gives the same."""
    with custom_kernels():
        names: dict[str, Any] = {}
        exec(SCALE_BY, names)
        exec(TRAITS, names)
        graph = ps.Graph()
        with graph.as_default():
            y = ps.ops.scale_by(ps.ops.constant(2.0), factor=3.0)
        with ps.Session(graph) as sess:
            assert sess.run(y) == 6
        found = kernels.find_kernel("ScaleBy", "CPU", {})
        assert found is not None
        assert found.make is names["make_pure_scale_by"]
        assert found.traits == ps.KernelTraits(is_pure=True, is_elementwise=True)


def test_a_python_function_of_ones_own() -> None:
    """The token means the function from then on."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.ops.constant(2.0)
        (y,) = ps.ops.py_func([x], token="pyfunc_0", Tout=[ps.dtypes.float32])
    exec(PY_FUNC, {"ps": ps})
    try:
        with ps.Session(graph) as sess:
            assert sess.run(y) == 4
    finally:
        ps.register_py_func({"pyfunc_0": None})


def test_a_python_function_with_a_gradient() -> None:
    """The host answers both calls of a step; the derivative of x² is 2 x."""
    graph = ps.Graph()
    with graph.as_default():
        x, dy = ps.ops.constant(3.0), ps.ops.constant(1.0)
        (y,) = ps.ops.eager_py_func([x], token="pyfunc_1", Tout=[ps.dtypes.float32])
        with ps.control_dependencies([y]):
            (dx,) = ps.ops.eager_py_func([dy], token="pyfunc_2", Tout=[ps.dtypes.float32])
    exec(EAGER_CALLER, {"ps": ps})
    try:
        with ps.Session(graph) as sess:
            assert sess.run([y, dx]) == [9, 6]
    finally:
        ps.register_py_func({"pyfunc_1": None})
        ps.register_eager_caller(None)


def test_a_device_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new device type takes the nodes that have kernels for it, and sessions list it."""
    monkeypatch.setattr(devices, "_types", dict(devices._types))

    def make_devices(task: str, count: int | None, incarnation: int) -> list[ps.Device]:
        names = [f"{task}/device:TPU:{index}" for index in range(count or 1)]
        return [ps.Device(name, "TPU", incarnation=incarnation) for name in names]

    exec(NEW_DEVICE, {"ps": ps, "make_devices": make_devices})
    with custom_kernels("OnTpu(x: int32) -> (y: int32)"):
        ps.kernel("OnTpu", device="TPU")(lambda _attrs: lambda x: x + np.int32(2))
        graph = ps.Graph()
        with graph.as_default():
            once = ps.ops.on_tpu(ps.ops.constant(4))
            [many] = ps.ops.while_loop(lambda x: x < 20, ps.ops.on_tpu, [ps.ops.constant(1)])
        with ps.Session(graph) as sess:
            assert {device.device_type for device in sess.list_devices()} == {"CPU", "TPU"}
            assert sess.run([once, many]) == [6, 21]


def test_a_pass_of_ones_own() -> None:
    """It runs Abs once where the graph says twice, unless its switch is off; answers stay."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [2], name="x")
        y = ps.ops.neg(ps.ops.abs(ps.ops.abs(ps.ops.abs(x))), name="y")
    off = ps.GraphOptions(
        rewrite_options=ps.RewriterConfig(arithmetic_optimization=ps.RewriterConfig.OFF)
    )
    with custom_passes():
        exec(DROP_REPETITIONS, {})
        for options, count in ((ps.GraphOptions(), 1), (off, 3)):
            metadata = ps.RunMetadata()
            config = ps.Config(graph_options=options, check_graphs=True)
            run_options = ps.RunOptions(output_partition_graphs=True)
            with ps.Session(graph, config=config) as sess:
                fed = {x: np.float32([-2, 3])}
                assert sess.run(y, fed, run_options, metadata).tolist() == [-2, -3]
            [ran] = metadata.partition_graphs
            assert [node.op for node in ran.node].count("Abs") == count
