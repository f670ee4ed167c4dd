"""Shape rules by op.

In:   rules, registered by decorator or as signatures, in modules beside the kernels.
Out:  the rule of an op; None if it has none: then nothing is known of its outputs' shapes.
Not:  infers no graph; imports no rules before one is asked for.

Whoever runs a graph imports no rules: they stand in modules of their own, ``*_shapes.py``, one
or several to a folder of kernels, which are imported together when the first op of the folder is
asked about.  A rule takes a ``ShapeContext``, and returns the shape of the only output, or the
shapes of all.  It knows nothing rather than something wrong, and raises InvalidArgumentError only
where TensorFlow refuses the node, too.

    @shape_rule("Diag")
    def diag(node: ShapeContext) -> TensorShape:
        return concat(node.input(0), node.input(0))
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import RLock
from typing import Final, TypeAlias, TypeVar

from penstock.core.forks import held_at_forks
from penstock.core.shapes import TensorShape
from penstock.kernels.api.families import families_of
from penstock.kernels.api.registry import RULES_SUFFIX
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_signatures import rule_from

ShapeRule: TypeAlias = Callable[[ShapeContext], TensorShape | Sequence[TensorShape]]
_Rule = TypeVar("_Rule", bound=ShapeRule)

#: Rules by op; those of signatures are made of their text when they are first asked for.
_rules: Final[dict[str, ShapeRule | str]] = {}
#: Folders whose rules are all imported; only grows.
_loaded: Final[set[str]] = set()
#: Held while rules are imported; taken before Python's import locks.
_loading: Final = held_at_forks(RLock())


def shape_rule(*ops: str) -> Callable[[_Rule], _Rule]:
    """Register the rule of one op or of several."""

    def register(rule: _Rule) -> _Rule:
        for op in ops:
            _rules[op] = rule
        return rule

    return register


def shape_signatures(signatures: Mapping[str, str]) -> None:
    """Register rules that are signatures, each for the ops that its key lists.

    ``shape_signatures.py`` explains how they are written.
    """
    for ops, text in signatures.items():
        for op in ops.split():
            _rules[op] = text


def shape_rule_of(op: str) -> ShapeRule | None:
    """The rule of an op, or None."""
    found = _rules.get(op)
    if found is None:
        _load(_folders(families_of(op)))
        found = _rules.get(op)
    if isinstance(found, str):
        found = _rules[op] = rule_from(found)
    return found


def ops_with_shape_rules() -> frozenset[str]:
    """All ops that have a rule."""
    package = importlib.import_module("penstock.kernels")
    folders = (module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg)
    _load(f"penstock.kernels.{name}" for name in folders)
    return frozenset(_rules)


def _folders(families: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(family.rpartition(".")[0] for family in families))


def _load(folders: Iterable[str]) -> None:
    for folder in folders:
        if folder in _loaded:
            continue
        with _loading:
            package = importlib.import_module(folder)
            for module in pkgutil.iter_modules(package.__path__, f"{folder}."):
                if module.name.endswith(RULES_SUFFIX):
                    importlib.import_module(module.name)
            _loaded.add(folder)
