"""Message classes stay: also those that nobody has a name for."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from penstock.defs import schema


def classes_within(message: Any) -> list[Any]:
    """Weak references to the class of a message and to those of messages in it."""
    own = schema.message_class(message)
    types = [field.message_type for field in own.DESCRIPTOR.fields]
    return [weakref.ref(kind._concrete_class) for kind in (own.DESCRIPTOR, *filter(None, types))]


@pytest.mark.parametrize("name", ["GraphDef", "CostGraphDef", "CallableOptions", "StepStats"])
def test_nothing_collects_classes(name: str) -> None:
    """One that is made anew while another thread asks for it ends the process."""
    found = classes_within(name)
    assert len(found) > 1
    gc.collect()
    assert all(kind() is not None for kind in found)


def test_further_tables_are_kept_as_well() -> None:
    """Those of the cluster protocol, which few use."""
    services = pytest.importorskip("penstock.cluster.services", reason="without gRPC")
    found = weakref.ref(services.request_class("Reset"))
    gc.collect()
    assert found() is not None
