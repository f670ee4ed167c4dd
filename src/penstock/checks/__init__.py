"""Mistakes in a graph, found without running it.

| what | where |
| --- | --- |
| what is said, and by whom | ``finding``, ``rule`` |
| what rules want to know of a graph | ``subject``, ``values`` |
| rules of order | ``races``, ``branches``, ``loops``, ``queues`` |
| rules of single nodes | ``structure``, ``growth``, ``numerics`` |
| all of them, over one graph | ``check_graph`` |
| findings as other tools read them | ``sarif`` |
"""

from penstock.checks.check_graph import check
from penstock.checks.finding import Finding, Severity

__all__ = ["Finding", "Severity", "check"]
