"""No false alarm: every finding in the graphs that TensorFlow's answers are recorded for is so."""

from __future__ import annotations

import warnings

import pytest

from penstock.checks import Severity, check
from support.corpus import Case, all_cases

#: Findings in graphs that give answers all the same, and why they are right.
TRUE = {
    # A loop that would never end, in a branch that is not taken.
    "cond_untaken_huge": {"PS103"},
    # Loop variables with a shape that is not the same in all iterations.
    "while_growing_shape": {"PS111"},
    "while_shapes": {"PS111"},
}


@pytest.mark.parametrize("case", list(all_cases()), ids=str)
def test_findings_are_true(case: Case) -> None:
    """Whatever has an error fails in TensorFlow, too; warnings are listed above with a reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check(case.graph_bytes)
    codes = {finding.code for finding in found}
    if any(finding.severity is Severity.ERROR for finding in found) and case.name not in TRUE:
        assert any("error" in step["expect"] for step in case.steps), found
    else:
        assert codes == TRUE.get(case.name, set()), found
