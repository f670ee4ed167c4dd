"""A frozen signature gives what the live one gives."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock import errors
from penstock.graph.initializers import VARIABLES
from support.saved_models import FOLDER, NAMES, assert_same, recorded

#: Models and signatures that change variables.
_CHANGING = {("several_signatures", "combine"), ("several_signatures", "set_factor")}
#: Those with outputs of several tensors.
_COMPOSITE = {("composites", "serving_default")}


def _calls() -> list[tuple[str, int]]:
    """Each signature's first call, if nothing before it changed the model."""
    found = {}
    for name in NAMES:
        for number, call in enumerate(recorded(name).calls):
            key = name, call.signature
            if key in _CHANGING:
                break
            if call.signature and key not in _COMPOSITE:
                found.setdefault(key, (name, number))
    return list(found.values())


def run_frozen(frozen: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The outputs of a frozen signature, by name."""
    with ps.Session(frozen.graph_def) as session:
        if frozen.init:
            session.run(frozen.init)
        feeds = {frozen.inputs[name]: value for name, value in given.items()}
        return session.run(dict(frozen.outputs), feeds)


def ops_in(graph_def: Any) -> set[str]:
    nodes = [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]
    return {node.op for node in nodes}


@pytest.mark.parametrize(("name", "number"), _calls())
def test_a_frozen_signature_gives_what_tensorflow_gave(name: str, number: int) -> None:
    """Without a variable and without a checkpoint, from a GraphDef that went through bytes."""
    model = recorded(name)
    call = model.calls[number]

    frozen = ps.saved_model.freeze(model.path, call.signature, tags=model.tags)

    assert not ops_in(frozen.graph_def) & (VARIABLES | {"ReadVariableOp", "RestoreV2", "SaveV2"})
    assert_same(run_frozen(frozen, call.kwargs), call.result)


@pytest.mark.parametrize(("name", "number"), _calls())
def test_functions_may_be_put_where_they_are_called(name: str, number: int) -> None:
    """The same answers; what is left of the library are branches, loops, and what they call."""
    model = recorded(name)
    call = model.calls[number]

    frozen = ps.saved_model.freeze(model.path, call.signature, tags=model.tags, inline=True)

    assert "StatefulPartitionedCall" not in {node.op for node in frozen.graph_def.node}
    if name not in ("keras_lstm", "keras_gru", "while_loop"):
        assert not frozen.graph_def.library.function
    assert_same(run_frozen(frozen, call.kwargs), call.result)


@pytest.mark.parametrize("signature", ["combine", "set_factor"])
def test_a_signature_that_changes_a_variable_is_not_frozen(signature: str) -> None:
    """The error names the node."""
    with pytest.raises(errors.FailedPreconditionError, match=r"changes a variable"):
        ps.saved_model.freeze(FOLDER / "several_signatures" / "model", signature)


def test_a_loaded_model_is_frozen_as_it_is_now() -> None:
    """What was assigned since it was loaded is in the constants."""
    with ps.saved_model.load(FOLDER / "several_signatures" / "model") as model:
        model.signatures["set_factor"](value=7.0)
        frozen = ps.saved_model.freeze(model, "scale")

    assert run_frozen(frozen, {"x": [2.0]})["scaled"].tolist() == [14.0]


def test_only_what_the_signature_needs_is_kept() -> None:
    """Neither the functions of other signatures nor what saves and restores."""
    frozen = ps.saved_model.freeze(FOLDER / "several_signatures" / "model", "scale")
    names = [function.signature.name for function in frozen.graph_def.library.function]

    assert not [name for name in names if "combine" in name or "set_factor" in name]
    assert not [name for name in names if "save" in name or "restore" in name]


def test_outputs_of_several_tensors_are_refused() -> None:
    """A ragged output cannot be fetched as one tensor."""
    with pytest.raises(errors.UnimplementedError, match="no single tensor"):
        ps.saved_model.freeze(FOLDER / "composites" / "model")
