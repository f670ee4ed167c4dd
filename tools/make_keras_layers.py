"""Write the names of Keras' layers that are known into docs/models.md.

python tools/make_keras_layers.py
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from penstock.formats.keras import known_layers
from penstock.formats.keras.activations import known_activations

PAGE = Path(__file__).resolve().parents[1] / "docs" / "models.md"
#: Names that are refused, and inner ones.
HIDDEN = ("Lambda", "CuDNNLSTMCell", "CuDNNGRUCell", "ConvLSTMCell")


def table() -> str:
    """The names, wrapped."""
    names = [name for name in known_layers() if name not in HIDDEN]
    kinds = {
        "layers": [n for n in names if not n.startswith("ops.")],
        "functions": [n for n in names if n.startswith("ops.")],
        "activations": known_activations(),
    }
    rows = [f"{kind}: " + ", ".join(f"`{n}`" for n in found) for kind, found in kinds.items()]
    return "\n\n".join(textwrap.fill(row[0].upper() + row[1:] + ".", 100) for row in rows)


def page_with_table(page: str) -> str:
    """The page with the names as they are now."""
    begin, end = "<!-- keras layers -->", "<!-- end of keras layers -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    return pattern.sub(lambda _: f"{begin}\n\n{table()}\n\n{end}", page)


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text("utf-8")), "utf-8")
