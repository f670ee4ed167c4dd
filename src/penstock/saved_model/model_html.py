"""A loaded model, as a notebook shows it.

In:   what is in a model.
Out:  HTML: its signatures, functions and variables.
Not:  runs nothing, and shows no values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from penstock.core.html import block, folded, table
from penstock.saved_model.signatures import Signature


def model_html(
    title: str,
    signatures: Mapping[str, Signature],
    functions: Iterable[str],
    variables: Iterable[str],
) -> str:
    """What a notebook shows of a model; functions and variables by their names."""
    header = ("", "name", "what")
    return block(
        title,
        *(table(name, header, _rows(signature)) for name, signature in signatures.items()),
        folded("functions", table("", ("function",), ([name] for name in functions))),
        folded("variables", table("", ("variable",), ([name] for name in variables))),
    )


def _rows(signature: Signature) -> Iterator[tuple[str, str, str]]:
    yield from (("takes", name, str(spec)) for name, spec in signature.inputs.items())
    yield from (("gives", name, str(spec)) for name, spec in signature.outputs.items())
