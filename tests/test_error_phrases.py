"""Every recorded error says what TensorFlow says, or there is a reason why it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from support.corpus import all_cases
from support.op_cases import all_op_cases

_CLIENT: Final = "TensorFlow's client raises an exception of Python's own"
#: Why a step has no phrase that TensorFlow and Penstock share.
_UNLIKE: Final = {
    "containers/parse_example, step 2": "TensorFlow's client cannot read its own message",
    "control_flow_v1/cond_untaken_would_fail, step 1": "either of two nodes may be the first",
    "errors/device_malformed, step 0": _CLIENT,
    "errors/feed_wrong_dtype, step 0": _CLIENT,
    "errors/fetch_unknown, step 1": _CLIENT,
    "errors/integer_division_by_zero, step 2": "TensorFlow does not say what is wrong",
    "errors/static_shape_conflict, step 0": "TensorFlow refuses the graph, by rules of shapes",
    "placement/conflicting_colocation, step 0": "TensorFlow's client moves the node",
    "static_tables/filled_static_16, step 1": "Penstock names the shape that is expected",
}


def without_phrase() -> Iterator[str]:
    """Steps that are errors, of which nothing but the code is recorded."""
    for case in (*all_cases(), *all_op_cases()):
        for number, step in enumerate(case.steps):
            if "error" in step["expect"] and not step["expect"].get("message_has"):
                yield f"{case}, step {number}"


def test_every_error_has_a_phrase() -> None:
    """Where there is none, a reason is listed; no reason outlives its step."""
    assert sorted(without_phrase()) == sorted(_UNLIKE)


@pytest.mark.parametrize("case", ["datasets", "iterator_states"])
def test_the_end_of_a_sequence_is_one(case: str) -> None:
    """The most frequent error is told by its words, not only by its code."""
    ends = [
        step["says"]
        for one in all_op_cases()
        if one.family == case
        for step in one.record["steps"]
        if step.get("error") == "OUT_OF_RANGE"
    ]
    assert len(ends) > 100
    assert ends.count("End of sequence") > 0.9 * len(ends)
