"""Options hold what they say; what else is given is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.config import Level, ThreadPoolOption, Toggle
from penstock.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("tier", "compiled", "'compiled', but must be a Tier"),
        ("tier", 2, "must be a Tier"),
        ("tier", None, "must be a Tier"),
        ("device_count", {"CPU": -1}, "dictionary of text to whole numbers of at least 0"),
        ("device_count", {"CPU": 1.5}, "dictionary of text to whole numbers"),
        ("device_count", {"CPU": True}, "dictionary of text to whole numbers"),
        ("device_count", {0: 1}, "dictionary of text"),
        ("device_count", [("CPU", 1)], "dictionary of text"),
        ("device_count", None, "dictionary of text"),
        ("allow_soft_placement", 1, "must be True or False"),
        ("allow_soft_placement", "yes", "must be True or False"),
        ("log_device_placement", None, "must be True or False"),
        ("inter_op_parallelism_threads", 1.0, "must be a whole number"),
        ("inter_op_parallelism_threads", "4", "must be a whole number"),
        ("session_inter_op_thread_pool", 3, "a list of ThreadPoolOptions"),
        ("session_inter_op_thread_pool", [(1, "")], "a list of ThreadPoolOptions"),
        ("session_inter_op_thread_pool", [ThreadPoolOption("1")], "a list of ThreadPool"),  # type: ignore[arg-type]
        ("session_inter_op_thread_pool", ThreadPoolOption(1), "a list of ThreadPoolOptions"),
        ("operation_timeout_in_ms", 0.5, "must be a whole number"),
        ("operation_timeout_in_ms", True, "must be a whole number"),
        ("graph_options", None, "must be a GraphOptions"),
        ("graph_options", ps.RewriterConfig(), "must be a GraphOptions"),
        ("ready_order_seed", 1.5, "must be a whole number or None"),
        ("offload_seconds", -1e-9, "must be a number of at least 0"),
        ("offload_seconds", float("nan"), "must be a number of at least 0"),
        ("offload_seconds", "fast", "must be a number of at least 0"),
        ("keep_freed_memory", 0, "must be True or False"),
    ],
)
def test_wrong_values(name: str, value: Any, said: str) -> None:
    """The field, the value and what it must be are in the error."""
    with pytest.raises(InvalidArgumentError) as caught:
        ps.Config(**{name: value})

    assert caught.value.reason.startswith(f"Config.{name} is ")
    assert said in caught.value.reason


@pytest.mark.parametrize(
    ("kind", "name", "value", "advised"),
    [
        (ps.Config, "tier", "compiled", "write Tier.DATAFLOW or Tier.COMPILED"),
        (ps.RunOptions, "trace_level", 3, "RunOptions.FULL_TRACE"),
        (ps.RewriterConfig, "constant_folding", 2, "Toggle.ON or Toggle.OFF"),
        (ps.OptimizerOptions, "opt_level", -1, "OptimizerOptions.L1 or OptimizerOptions.L0"),
        (ps.OptimizerOptions, "max_folded_constant_in_bytes", -1, ""),
        (ps.RunOptions, "timeout_in_ms", "5", ""),
        (ps.RunOptions, "inter_op_thread_pool", None, ""),
        (ps.RunOptions, "output_partition_graphs", 1, ""),
        (ps.GraphOptions, "rewrite_options", ps.OptimizerOptions(), ""),
    ],
)
def test_all_options_are_compared(kind: Any, name: str, value: Any, advised: str) -> None:
    """Every class of options refuses what it cannot hold; enumerations say how to write them."""
    with pytest.raises(InvalidArgumentError, match=f"{kind.__name__}.{name} is") as caught:
        kind(**{name: value})

    assert advised in caught.value.next_step


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("device_count", {}),
        ("device_count", {"CPU": np.int64(3), "GPU": 0}),
        ("allow_soft_placement", np.bool_(False)),
        ("inter_op_parallelism_threads", -5),
        ("session_inter_op_thread_pool", [ThreadPoolOption(2, "pool")]),
        ("session_inter_op_thread_pool", ()),
        ("operation_timeout_in_ms", np.int32(7)),
        ("operation_timeout_in_ms", -1),
        ("ready_order_seed", None),
        ("ready_order_seed", 3),
        ("offload_seconds", 0),
        ("offload_seconds", np.float32(1)),
        ("offload_seconds", float("inf")),
        ("graph_options", ps.GraphOptions(rewrite_options=ps.RewriterConfig(remapping=Toggle.ON))),
        (
            "graph_options",
            ps.GraphOptions(optimizer_options=ps.OptimizerOptions(opt_level=Level.L0)),
        ),
    ],
)
def test_right_values(name: str, value: Any) -> None:
    """Numbers of numpy are numbers, and negative ones stand where TensorFlow allows them."""
    assert getattr(ps.Config(**{name: value}), name) is value


def test_a_message_with_a_negative_count() -> None:
    """TensorFlow finds no device then; a session that cannot be is refused at once."""
    from penstock.defs import schema

    with pytest.raises(InvalidArgumentError, match="device_count"):
        ps.Config.of(schema.ConfigProto(device_count={"CPU": -1}))
