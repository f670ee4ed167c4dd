"""Shapes of what is printed, checked and summarised.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  prints nothing.
"""

from __future__ import annotations

from penstock.kernels.api.shape_rules import shape_signatures

shape_signatures({
    """
    AudioSummary AudioSummaryV2 HistogramSummary ImageSummary MergeSummary ScalarSummary
    SummaryWriter TensorSummary TensorSummaryV2
    """: "-> []",
    """
    DebugGradientIdentity DebugGradientRefIdentity DebugIdentity DebugIdentityV3
    """: "s -> s",
    "Print": "s, * -> s",
})  # fmt: skip
