"""Values for the inputs of a model's signature, as they are written on the command line.

In:   ``NAME=VALUE``, as for graphs.
Out:  values by the names of inputs.
Not:  runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from penstock.cli.feed_values import read_value, split_feed
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.printable import printable
from penstock.saved_model.signatures import Signature
from penstock.saved_model.structured import TensorSpec


def parse_inputs(texts: Sequence[str], signature: Signature) -> dict[str, Any]:
    """What ``--feed`` gives to a signature.

    Raises:
        OpError: there is no such input, or the value cannot be one of it.

    """
    found = {}
    for text in texts:
        name, value = split_feed(text)
        spec = input_spec(signature, name)
        found[name] = read_value(value, name, spec.dtype, spec.shape)
    return found


def check_given(given: Mapping[str, Any], signature: Signature, path: str) -> None:
    """Raise click.UsageError, with the inputs that there are, if none is given but some must be."""
    if given or len(signature.inputs) <= len(signature.defaults):
        return
    feeds = [f"--feed {name}=VALUE" for name in signature.inputs if name not in signature.defaults]
    text = f"{signature} wants inputs: penstock run {path} {' '.join(feeds)}"
    raise click.UsageError(printable(text))


def input_spec(signature: Signature, name: str) -> TensorSpec:
    """What an input is; raises InvalidArgumentError for what no option can give."""
    spec = signature.inputs.get(name)
    if spec is None:
        raise InvalidArgumentError(
            f"the signature {signature.name!r} has no input {name!r}", next_step=str(signature)
        )
    if not isinstance(spec, TensorSpec):
        raise UnimplementedError(
            f"the input {name!r} is {spec}, which the command line cannot give",
            next_step="call the signature in Python: penstock.load_model",
        )
    return spec
