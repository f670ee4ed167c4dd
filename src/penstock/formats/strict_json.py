"""JSON of strangers.

In:   text of a model's description.
Out:  the object in it.
Not:  makes nothing but dicts, lists, text, numbers, truth values and None.

Python's own parser is recursive, and reads numbers of any length in quadratic time; both have a
limit here, and NaN and infinities, which are no JSON, are left to those that read the numbers.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from penstock.errors import InvalidArgumentError

#: Models inside of models inside of models: each level takes about six brackets.
MAX_DEPTH: Final = 400
#: The description of a network of ten thousand layers has about 10 MB.
MAX_BYTES: Final = 64 << 20
_BRACKET_OR_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
_LONG_NUMBER: Final = re.compile(rb"[0-9]{400}")


def parse_object(content: bytes, origin: str) -> dict[str, Any]:
    """The JSON object that ``content`` is; ``origin`` says in errors where it stands.

    Raises:
        InvalidArgumentError: it is none, or deeper or longer than any model's.

    """
    if len(content) > MAX_BYTES:
        raise InvalidArgumentError(
            f"{origin} has {len(content)} bytes; a model's description has {MAX_BYTES} at most"
        )
    if _depth(content) > MAX_DEPTH or _LONG_NUMBER.search(content):
        raise InvalidArgumentError(f"{origin} is nested too deeply, or has absurd numbers")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as cause:
        raise InvalidArgumentError(f"{origin} is no JSON: {cause}", next_step=_AGAIN) from None
    if not isinstance(found, dict):
        raise InvalidArgumentError(f"{origin} is no JSON object", next_step=_AGAIN)
    return found


_AGAIN: Final = "the file is damaged: get it again, or save the model again"


def _depth(content: bytes) -> int:
    depth = deepest = 0
    for token in _BRACKET_OR_TEXT.finditer(content):
        char = content[token.start()]
        if char in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in b"]}":
            depth -= 1
    return deepest
