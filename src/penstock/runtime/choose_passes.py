"""Which passes run, as the options of a session say; and passes of users' own.

In:   ``GraphOptions``; or a function that rewrites a graph.
Out:  ``Passes`` in their order; the function as one of them from now on.
Not:  lists no pass, and orders none: that is ``passes/pass_list.py``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Final

from penstock.config import GraphOptions, Level, RewriterConfig, Toggle
from penstock.errors import InvalidArgumentError
from penstock.passes.graph_pass import (
    REWRITING,
    GraphPass,
    GraphProperty,
    PassSettings,
    Phase,
    rewriting,
)
from penstock.passes.graph_rewriter import GraphRewriter
from penstock.passes.optimize import MIN_GRAPH_NODES, Passes
from penstock.passes.pass_list import add_pass, ordered_passes, remove_pass

#: The options that switch passes.
TOGGLES: Final = tuple(f.name for f in fields(RewriterConfig) if f.type == "Toggle")
#: What a pass may break that does not say what: in the rounds, and after them.
_IN_ROUNDS: Final = frozenset({GraphProperty.AS_ORDERED, GraphProperty.SWEPT})
_AFTER_ROUNDS: Final = _IN_ROUNDS | {GraphProperty.UNMERGED}


def passes_of(options: GraphOptions, settings: PassSettings | None = None) -> Passes:
    """The passes that the options ask for."""
    most = options.optimizer_options.max_folded_constant_in_bytes
    settings = settings or PassSettings()
    if most:
        settings = dataclasses.replace(settings, max_folded_bytes=most)
    fewest = options.rewrite_options.min_graph_nodes or MIN_GRAPH_NODES
    chosen = _chosen(ordered_passes(), options)
    return Passes(chosen=chosen, settings=settings, min_graph_nodes=fewest)


@functools.lru_cache(maxsize=64)  # nearly every session has the same
def _chosen(among: tuple[GraphPass, ...], options: GraphOptions) -> tuple[GraphPass, ...]:
    return tuple(one for one in among if _runs(one, options))


def _runs(one: GraphPass, options: GraphOptions) -> bool:
    """Whether a pass runs: its toggle says so, or else the level."""
    if not one.is_optional:
        return True
    rewriter = options.rewrite_options
    toggle = getattr(rewriter, one.option) if one.option else Toggle.DEFAULT
    if rewriter.disable_meta_optimizer or toggle is Toggle.DEFAULT:
        return _runs_by_default(one, options)
    return toggle is not Toggle.OFF


def _runs_by_default(one: GraphPass, options: GraphOptions) -> bool:
    level = options.optimizer_options
    is_on = level.opt_level is Level.L1
    if one.level_option:
        return is_on or bool(getattr(level, one.level_option))
    return is_on and not options.rewrite_options.disable_meta_optimizer


def register_pass(
    name: str,
    run: Callable[[GraphRewriter], int],
    *,
    does: str = "",
    option: str = "",
    requires: Collection[GraphProperty] = (),
    invalidates: Collection[GraphProperty] | None = None,
    may_change_last_bits: bool = False,
) -> None:
    """Have a function of one's own rewrite every graph that is prepared from now on.

    It is called with the graph of each request, and with the body of each function that is
    called, in any thread; docs/add-a-pass.md says what it may do.  What it raises ends the run
    with an error that names the pass.

    Args:
        name: what the pass is called in errors; no other pass has the name.
        run: gets the graph under rewriting, and returns how many nodes it changed.
        does: what it is good for.
        option: the toggle of ``RewriterConfig`` that switches it; without one it runs whenever
            graphs are rewritten.
        requires: what must be true when it runs, which says where in the order it stands: as
            late as possible.  What all that rewrite require need not be named.
        invalidates: what it may break; without it, all that such a pass may and does not require.
        may_change_last_bits: whether answers may differ by rounding.

    Raises:
        AlreadyExistsError: another pass has the name.
        InvalidArgumentError: an argument makes no sense, or there is no place for the pass.

    """
    _check_arguments(name, run, option, (*requires, *(invalidates or ())))
    new = GraphPass(
        name=name,
        run=rewriting(run),
        does=does,
        option=option,
        requires=REWRITING | frozenset(requires),
        may_change_last_bits=may_change_last_bits,
        is_builtin=False,
    )
    is_closing = new.phase is Phase.CLOSING
    may_break = _AFTER_ROUNDS if is_closing else _IN_ROUNDS
    breaks = may_break - new.requires if invalidates is None else frozenset(invalidates)
    provides = frozenset() if is_closing else frozenset({GraphProperty.SETTLED})
    add_pass(dataclasses.replace(new, provides=provides, invalidates=breaks))


def unregister_pass(name: str) -> None:
    """Take a pass away again; what is prepared already stays as it is.

    Raises:
        NotFoundError: no pass of that name was registered.

    """
    remove_pass(name)


def _check_arguments(name: str, run: object, option: str, properties: Collection[object]) -> None:
    """Refuse what makes no sense; who calls from outside need not have a type checker."""
    if not str(name).isidentifier():
        raise InvalidArgumentError(f"{name!r} is no name of a pass: letters, digits and _ are")
    if not callable(run):
        raise InvalidArgumentError(f"What is registered as the pass '{name}' cannot be called")
    if option and option not in TOGGLES:
        raise InvalidArgumentError(
            f"The pass '{name}' cannot be switched by {option!r}",
            next_step=f"RewriterConfig has the toggles {', '.join(TOGGLES)}",
        )
    for strange in (item for item in properties if not isinstance(item, GraphProperty)):
        raise InvalidArgumentError(
            f"The pass '{name}' requires or invalidates {strange!r}, which is no ps.GraphProperty"
        )
