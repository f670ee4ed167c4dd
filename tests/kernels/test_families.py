"""Families are imported when an op needs them, and the table says which those are.

Imports happen once per process, so most of these tests run in processes of their own.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import AlreadyExistsError
from penstock.kernels.api import families
from penstock.kernels.api.registry import kernel, kernels_of

ROOT = Path(__file__).parents[2]


def output_of(code: str) -> str:
    """What a fresh process prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.strip()


def test_the_table_is_up_to_date() -> None:
    """Every family's line lists exactly the ops that it registers kernels for."""
    code = "import make_families as m; print(m.table(), end='')"
    made = output_of(f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); {code}")
    table = Path(families.__file__).with_name("families.txt").read_text("utf-8")

    assert made.splitlines() == table.splitlines(), (
        "kernels were added, moved or taken away: run 'python tools/make_families.py' and "
        "commit kernels/api/families.txt with them"
    )


def test_an_op_brings_only_its_own_family() -> None:
    """Looking up one op does not import what it has nothing to do with."""
    code = """
import sys
from penstock.kernels.api.registry import kernels_of
assert kernels_of("Bucketize")
print([name for name in ("math.bucketize_op", "string.unicode_ops", "nn.conv_ops")
       if "penstock.kernels." + name in sys.modules])
"""
    assert output_of(code) == "['math.bucketize_op']"
    for name in ("string.unicode_ops", "nn.conv_ops"):
        assert importlib.util.find_spec("penstock.kernels." + name)


def test_all_families_bring_no_library_of_an_extra() -> None:
    """Whoever has one waits for it only where a node needs it."""
    code = """
import sys
from penstock.kernels.api.registry import ops_with_kernels
assert ops_with_kernels()
print([name for name in ("PIL", "jaxlib", "onnxruntime", "re2", "scipy") if name in sys.modules])
"""
    assert output_of(code) == "[]"


@pytest.mark.slow
def test_an_op_has_the_same_kernels_however_it_is_met() -> None:
    """Op by op, last to first, ours come in the order they have when all are loaded."""
    code = """
from penstock.kernels.api import registry
from penstock.catalogue.registry import all_ops
from penstock.kernels.api.families import families_of
if {all_first}:
    registry.load_families()
ops = [op for op in all_ops() if families_of(op)]
found = {{op: registry.kernels_of(op) for op in reversed(ops)}}
print([(op, [k.make.__module__ for k in found[op]]) for op in ops])
"""
    one_by_one = output_of(code.format(all_first=False))

    assert one_by_one == output_of(code.format(all_first=True))
    assert len(one_by_one) > 10_000


@pytest.mark.parametrize("op", ["Add", "Placeholder", "PartitionedCall", "While", "_Arg"])
def test_what_comes_with_the_package_is_in_the_table(op: str) -> None:
    """Otherwise an op of theirs would make all families load."""
    assert families.families_of(op)


def test_a_kernel_that_is_newer_than_the_table_is_found() -> None:
    """An op that the table does not have makes all families load."""
    code = """
from penstock.kernels.api import registry
registry.families_of = lambda op: ()
print(len(registry.kernels_of("Bucketize")))
"""
    assert output_of(code) == "1"


def test_many_threads_may_look_up_ops_at_once() -> None:
    """Eight threads that start at different ops all find all kernels."""
    code = """
import threading
from penstock.kernels.api import registry
from penstock.kernels.api import families
ops = sorted(families._TABLE)
found, start = [], threading.Barrier(8)
def look(offset):
    start.wait()
    found.append({op: len(registry.kernels_of(op)) for op in ops[offset:] + ops[:offset]})
threads = [threading.Thread(target=look, args=(i * 100,)) for i in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
print(len(found), all(f == found[0] for f in found), all(found[0].values()))
"""
    assert output_of(code) == "8 True True"


def test_a_family_that_fails_can_be_tried_again() -> None:
    """What a family registered before it failed does not stand in its own way."""
    code = """
import sys, types
from penstock.kernels.api import registry
real = registry.importlib.import_module
def fail(name):
    real(name)
    del sys.modules[name]
    raise MemoryError
registry.importlib = types.SimpleNamespace(import_module=fail)
try:
    registry.kernels_of("Bucketize")
except MemoryError:
    registry.importlib = types.SimpleNamespace(import_module=real)
    print(len(registry.kernels_of("Bucketize")))
"""
    assert output_of(code) == "1"


def test_a_clash_with_ours_is_found_where_the_user_makes_it() -> None:
    """A kernel like one of ours is refused at its decorator, though ours was not yet needed."""
    code = """
import penstock as ps
try:
    ps.kernel("Bucketize", types={"T": [ps.dtypes.float32]})(lambda attrs: None)
except ps.errors.AlreadyExistsError as error:
    print(error)
"""
    assert "Op Bucketize has two kernels" in output_of(code)


def test_a_clash_leaves_ours_in_place() -> None:
    """A kernel that was refused is not there."""
    before = kernels_of("Bucketize")

    with pytest.raises(AlreadyExistsError):
        kernel("Bucketize")(lambda _attrs: lambda: None)
    assert kernels_of("Bucketize") == before
