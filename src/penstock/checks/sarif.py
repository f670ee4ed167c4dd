"""Findings as other tools read them: JSON, and SARIF 2.1.0.

In:   findings, and what was checked.
Out:  objects for ``json.dumps``.
Not:  writes no file.

Source: OASIS, Static Analysis Results Interchange Format, version 2.1.0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.checks.finding import Finding

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def as_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """One object for each finding, with the fields of ``Finding``."""
    return [
        {**dataclasses.asdict(found), "severity": found.severity.value, "others": [*found.others]}
        for found in findings
    ]


def as_sarif(
    findings: Sequence[Finding], names: Mapping[str, str], path: str, version: str
) -> dict[str, Any]:
    """A SARIF log with one run.

    Args:
        findings: what was found.
        names: of rules, by code.
        path: the file that was checked.
        version: Penstock's.

    """
    rules = [{"id": code, "name": name} for code, name in names.items()]
    driver = {"name": "penstock", "version": version, "rules": rules}
    results = [_result(found, path) for found in findings]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(found: Finding, path: str) -> dict[str, Any]:
    name = f"{found.function}:{found.node}" if found.function else found.node
    text = f"{found.message}. {found.next_step}" if found.next_step else found.message
    return {
        "ruleId": found.code,
        "level": found.severity.value,
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": path}},
                "logicalLocations": [{"fullyQualifiedName": name, "kind": "node"}],
            }
        ],
    }
