"""What an attacker would write where a graph has room for text.

Each payload that is code would leave a file called ``canary`` behind, or a name in ``builtins``.
"""

from __future__ import annotations

from typing import Final

CANARY: Final = "canary"
_OPEN: Final = f"open('{CANARY}','w')"
_IMPORT: Final = f"__import__('builtins').{CANARY}=1"

#: All kinds of line breaks that Python, Unicode or a terminal knows.
_BREAKS: Final = (
    "\n",
    "\r",
    "\r\n",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1d",
    "\x1e",
    "\x85",
    "\u2028",
    "\u2029",
)
#: The ends of what text may stand in, before and after the code.
_FENCES: Final = (
    ("'", "#"), ('"', "#"), ("'''", "#"), ('"""', "#"), ("\\", "#"), ("\\'", "#"), ("\\\n", "#"),
    (")", "#"), ("]", "#"), ("}", "#"), ("#\n", "#"), (" (Op)\n", "#"), ("\0\n", "#"), (";", "#"),
)  # fmt: skip

_CODE: Final = (
    *(f"f{brk}{_OPEN}{brk}#" for brk in _BREAKS),
    *(f"f{brk}    {_OPEN}  #" for brk in _BREAKS),
    *(f"{before}+{_OPEN}+{after}" for before, after in _FENCES),
    # The loop of generated code is left, and a function of the same name begins.
    f"f\n        break\n{_OPEN}\ndef f(count):\n    for turn in count(): #",
    f"f\n    return ({_OPEN},)\n#",
    f"f\n{_IMPORT}\n#",
    f"{{{_OPEN}}}",
    f"{{{{{_OPEN}}}}}",
    f"{{0.__class__.__init__.__globals__}}{{{_OPEN}!r}}",
    f"%s%n%(x)s%999999d{_OPEN}",
    f"${{{_OPEN}}}",
    f"\\N{{LINE FEED}}{_OPEN}",
    f"\\x0a{_OPEN}",
    f"lambda: {_OPEN}",
    f"[{_OPEN} for _ in 'x']",
    f"@{_OPEN}",
    f"x if {_OPEN} else y",
    f"# -*- coding: utf_7 -*-\n+AAo-{_OPEN}",
    _OPEN.replace("open", "ｏｐｅｎ"),  # which Python reads as the same name
)
_NAMES: Final = (
    "import", "class", "None", "match", "_", "__class__", "__import__", "__builtins__", "__name__",
    "open", "exec", "run", "interrupt", "region", "part", "chain", "count", "true", "type", "read",
    "k_x", "c_x", "s_x", "turn", "frame", "frame_turn", "self", "\u0130", "\u00e9", "e\u0301",
)  # fmt: skip
_TERMINAL: Final = (
    "\x1b[2J\x1b[1;1H", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\x", "\x9b31m", "\x08\x08\x08",
    "\x7f", "\u202eabc", "\u2066abc\u2069", "\u200b", "\ufeff", "\U000e0041", "a\tb",
)  # fmt: skip
_OTHERS: Final = (
    "", " ", ".", "..", "/", "//", "^", "^x", ":", "x:0", "x:-1", "x:99999999999999999999",
    "loc:@x",
    f"../../{CANARY}", f"/tmp/{CANARY}", f"file:///tmp/{CANARY}", f"$(touch {CANARY})",
    f"`touch {CANARY}`", f"| touch {CANARY}", f"<script>{CANARY}</script>", "a" * 1_000_000,
    "\n" * 1_000, "(" * 1_000, "\0",
)  # fmt: skip

PAYLOADS: Final = tuple(dict.fromkeys((*_CODE, *_NAMES, *_TERMINAL, *_OTHERS)))
