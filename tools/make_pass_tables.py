"""Write the tables of passes into docs/architecture.md and docs/add-a-pass.md.

    python tools/make_pass_tables.py

What stands there comes from ``passes/pass_list.py``; a test compares the pages with it.
"""

from __future__ import annotations

from pathlib import Path

from penstock.passes.graph_pass import REWRITING, GraphPass, GraphProperty, Phase
from penstock.passes.pass_list import BUILTIN_PASSES

DOCS = Path(__file__).parents[1] / "docs"
NOTES = {"architecture.md": "passes", "add-a-pass.md": "order"}


def table(page: str) -> str:
    """The table of a page, as it should stand between its notes."""
    rows = _what_they_do() if page == "architecture.md" else _where_they_stand()
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def parts(page: str) -> tuple[str, str, str]:
    """A page before its table, the table, and the rest."""
    text, note = (DOCS / page).read_text("utf-8"), NOTES[page]
    before, begin, rest = text.partition(f"<!-- {note} -->\n")
    found, end, after = rest.partition(f"<!-- end of {note} -->")
    return before + begin, found, end + after


def _what_they_do() -> list[list[str]]:
    rows = [["pass", "does", "never", "last bits"], ["---"] * 4]
    for one in BUILTIN_PASSES:
        bits = "may change" if one.may_change_last_bits else "stay"
        rows.append([f"`{one.name}`", one.does, one.never, bits])
    return rows


def _where_they_stand() -> list[list[str]]:
    rows = [["pass", "runs", "switched by", "requires", "invalidates"], ["---"] * 5]
    return rows + [_where_it_stands(one) for one in BUILTIN_PASSES]


def _where_it_stands(one: GraphPass) -> list[str]:
    when = {Phase.OPENING: "first", Phase.ROUNDS: "in rounds", Phase.CLOSING: "last"}[one.phase]
    own = one.requires if one.phase is Phase.OPENING else one.requires - REWRITING
    return [f"`{one.name}`", when, _switch(one), _names(own), _names(one.invalidates)]


def _switch(one: GraphPass) -> str:
    if not one.is_optional:
        return "nothing"
    return f"`{one.option}`" + (f", at L0 `{one.level_option}`" if one.level_option else "")


def _names(properties: frozenset[GraphProperty]) -> str:
    return ", ".join(f"`{item.name}`" for item in GraphProperty if item in properties)


if __name__ == "__main__":
    for name in NOTES:
        head, _, tail = parts(name)
        (DOCS / name).write_text(f"{head}\n{table(name)}\n{tail}", "utf-8")
