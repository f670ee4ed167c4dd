"""Reports of four graphs look as docs/report.md shows them.

``PENSTOCK_PICTURES=1 pytest --all tests/reporting/test_pictures.py`` makes the pictures anew.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.report import Example, examples
from penstock.cli import main
from reporting.browser import chromium, opened

Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
#: How different a picture may be, compared with how different an empty one would be: fonts and
#: times are not the same everywhere.  Other times made 0.1 of it, other families of fonts up to
#: 0.43, and another graph at least 0.88.
TOLERANCE = 0.6
#: So small that letters do not count.
SIZE = (80, 50)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of each example, as the command makes it."""
    folder = tmp_path_factory.mktemp("pages")
    return {one.name: made(one, folder / f"{one.name}.html") for one in examples(folder)}


def made(example: Example, page: Path) -> Path:
    done = CliRunner().invoke(main, ["report", *example.arguments, "-o", str(page)])
    assert done.exit_code == 0, f"{shlex.join(example.arguments)}: {done.output}"
    return page


def lstm(page: Any) -> None:
    """The loop's body, with its critical path."""
    page.fill("#search", "while/split")
    page.press("#search", "Enter")
    page.locator("#scopes li button").nth(-2).click()


def mobilenet(page: Any) -> None:
    """The blocks of the network, coloured by op."""
    page.select_option("#colour", "op")
    page.locator("[role=treeitem]").first.click()


def large(page: Any) -> None:
    """One of 50 blocks, and its neighbours."""
    page.fill("#search", "block_7/layer_3/unit_5/mul")
    page.press("#search", "Enter")
    for _ in range(2):
        page.locator("#scopes li button").nth(-2).click()


def two_devices(page: Any) -> None:
    """Additions, each on another device than the one before, in the dark."""
    page.fill("#search", "Add_500")
    page.press("#search", "Enter")
    page.locator("#scopes li button").nth(-2).click()


SCENES = {"lstm": lstm, "mobilenet": mobilenet, "20000_nodes": large, "two_devices": two_devices}


def grey(picture: Any) -> Any:
    """A small grey picture."""
    return np.asarray(picture.convert("L").resize(SIZE, Image.Resampling.BOX), np.float64)


def difference(one: Any, other: Any) -> float:
    """How much two pictures differ, as a part of what is to be seen on the first."""
    seen = np.abs(one - np.median(one)).mean()
    return float(np.abs(one - other).mean() / seen)


@pytest.mark.parametrize("name", list(SCENES))
def test_it_looks_as_it_is_shown(browser: Any, pages: dict[str, Path], name: str) -> None:
    """But for fonts and times; and unlike an empty page, or another graph."""
    scheme = "dark" if name == "two_devices" else "light"
    with opened(browser, pages[name], color_scheme=scheme) as page:
        SCENES[name](page)
        page.wait_for_timeout(300)
        picture = Image.open(BytesIO(page.screenshot()))
    kept = FOLDER / f"report_{name}.png"
    if os.environ.get("PENSTOCK_PICTURES"):
        picture.convert("RGB").quantize(160).save(kept, optimize=True)
    shown = grey(Image.open(kept))
    assert kept.stat().st_size < 150_000
    assert difference(shown, grey(picture)) < TOLERANCE
    assert difference(shown, np.full_like(shown, np.median(shown))) > TOLERANCE
    others = [grey(Image.open(FOLDER / f"report_{other}.png")) for other in SCENES if other != name]
    assert all(difference(shown, other) > TOLERANCE for other in others)


@pytest.mark.parametrize("name", list(SCENES))
def test_it_is_small(pages: dict[str, Path], name: str) -> None:
    """No more than 5 MB, of 20,000 nodes either."""
    assert pages[name].stat().st_size < 5e6
