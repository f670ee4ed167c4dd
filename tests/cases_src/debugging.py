"""What debuggers put into graphs."""

from __future__ import annotations

from cases_src.casebook import f32, i32, inf, nan, op, s

_SUMMARY = {"tensor_name": "x:0"}

CASES = [
    op("DebugIdentity", input=f32([1, 2]), **_SUMMARY),
    op("DebugIdentity", input=s([b"a"]), **_SUMMARY),
    op("DebugIdentityV3", input=i32(3), **_SUMMARY),
    op("DebugGradientIdentity", input=f32([[nan]])),
    op("DebugNanCount", input=f32([1, nan, nan]), **_SUMMARY),
    op("DebugNanCount", input=i32([1]), **_SUMMARY),
    op("DebugNumericSummary", input=f32([[1, nan, -inf], [inf, 0, -2]]), **_SUMMARY),
    op("DebugNumericSummary", input=f32([1, 5, 9]), lower_bound=1.0, upper_bound=8.0, **_SUMMARY),
    op("DebugNumericSummary", input=f32([1, 2]), mute_if_healthy=True, **_SUMMARY),
    op("DebugNumericSummary", input=i32(7), **_SUMMARY),
    op("DebugNumericSummary", input=f32([]), **_SUMMARY),
]
