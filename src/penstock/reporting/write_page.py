"""A report as one HTML file that needs nothing else.

In:   a ``Report``; the modules, the style and the frame in ``page/``.
Out:  text.
Not:  puts no text of a model into markup or program: it is in base64 until the program, which
      knows no way to make markup of text, shows it.

The modules of ``page/`` import each other, which a file that is opened from a disk may not do.  So
they become one script: each is a function that is called once, behind all that it imports, and
returns what it exports.  The page's policy forbids all that is loaded, and every script and style
but these two.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Final

from penstock.reporting.encode import encoded
from penstock.reporting.facts import Report

#: Where the page begins to run.
_FIRST: Final = "main.js"
_IMPORT: Final = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+|\$))", re.MULTILINE)


def page_of(report: Report) -> str:
    """The whole file."""
    style, script = _file("style.css"), _script()
    return _filled(
        _file("frame.html"),
        style=style,
        script=script,
        data=encoded(report),
        policy=(
            "default-src 'none'; base-uri 'none'; form-action 'none'; "
            f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
        ),
    )


def module_names() -> list[str]:
    """The modules of the page, each behind all that it imports."""
    return list(dict.fromkeys(_behind(_FIRST, ())))


def _behind(name: str, above: tuple[str, ...]) -> Iterator[str]:
    assert name not in above, f"{name} imports itself"
    for _, imported in _IMPORT.findall(_file(name)):
        yield from _behind(f"{imported}.js", (*above, name))
    yield name


@cache
def _script() -> str:
    """All modules as one."""
    parts = "".join(map(_as_function, module_names()))
    return f'"use strict";\n{{\n{parts}}}\n'


def _as_function(name: str) -> str:
    """A module as a constant of its exports."""
    text = _file(name)
    exports = ", ".join(exported for _, exported in _EXPORT.findall(text))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = \2_module;", text))
    constant = name.removesuffix(".js") + "_module"
    return f"const {constant} = (() => {{\n{body}return {{ {exports} }};\n}})();\n"


@cache
def _file(name: str) -> str:
    return (resources.files("penstock.reporting") / "page" / name).read_text("utf-8")


def _filled(frame: str, **parts: str) -> str:
    """A frame with parts at their marks, ``{{name}}``; what stands in parts is no mark."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], frame)


def _hash(text: str) -> str:
    """What a policy calls a text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
