"""A page does in a real browser what docs/report.md says, by keys alone, and without complaints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import penstock as ps
from penstock.reporting.facts import Report
from penstock.reporting.make_report import write
from reporting.browser import chromium, opened
from reporting.graphs import FEEDS, looping, named_by_a_stranger

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def found() -> Report:
    return ps.report(looping(), "out:0", FEEDS, values=True, title="looping")


@pytest.fixture
def page(browser: Any, found: Report, tmp_path: Path) -> Iterator[Any]:
    path = tmp_path / "report.html"
    write(found, path)
    with opened(browser, path) as shown:
        yield shown


def boxes(page: Any) -> list[str]:
    """What a screen reader says of each box of the open scope."""
    texts: list[str] = page.eval_on_selector_all(
        "#boxes .box", "boxes => boxes.map((box) => box.getAttribute('aria-label'))"
    )
    return texts


def focus(page: Any) -> str:
    """What has the focus, by its description or text."""
    text: str = page.evaluate(
        "document.activeElement.ariaLabel ?? document.activeElement.textContent.trim()"
    )
    return text


def tree(page: Any) -> list[str]:
    """The rows of the outline that can be seen."""
    return [
        text.split("\n")[0] for text in page.locator("[role=treeitem] > .row").all_inner_texts()
    ]


def cells(page: Any, table: str) -> list[list[str]]:
    """The rows of a table."""
    rows: list[list[str]] = page.eval_on_selector_all(
        f"table[aria-label='{table}'] tbody tr",
        "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))",
    )
    return rows


def test_it_opens_on_the_graph(page: Any) -> None:
    """Scopes and nodes of the first level, and in the first line what the file holds."""
    names = {text.split(", ")[0] for text in boxes(page)}
    assert names == {"x", "model", "minus", "out", "out (fetched)"}
    assert "Contains graph, times, value summaries, generated Python; not weights" in (
        page.inner_text("#contents-line")
    )
    assert page.title() == "looping · Penstock"


def test_scopes_open_and_close_by_keys(page: Any, found: Report) -> None:
    """Tab reaches the boxes, arrows go along edges, Enter opens, Backspace goes out again."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if focus(page) in boxes(page):
            break
    page.keyboard.press("Home")
    while not focus(page).startswith("model"):
        page.keyboard.press("ArrowDown")
    inside = [node for node in found.graph.nodes if node.name.startswith("model/")]
    assert f"scope of {len(inside)} nodes" in focus(page)
    page.keyboard.press("Enter")
    names = {text.split(", ")[0] for text in boxes(page)}
    assert {"loop", "three", "nine", "total"} <= names
    assert {"x", "minus"} <= names  # from outside, and to it
    assert page.inner_text("#scopes [aria-current]") == "model"
    page.keyboard.press("Backspace")
    assert page.inner_text("#scopes [aria-current]") == "graph"
    assert focus(page).startswith("model")


def test_the_outline_unfolds_and_folds_by_keys(page: Any) -> None:
    """As trees do: right, left, down, Enter."""
    assert tree(page) == ["model", "minus", "out", "x", "out (fetched)"]
    page.locator("[role=treeitem][tabindex='0']").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert tree(page)[1] == "two"
    page.keyboard.press("ArrowDown")
    assert focus(page) == "two"
    page.keyboard.press("ArrowLeft")
    assert focus(page).startswith("model")
    page.keyboard.press("ArrowLeft")
    assert len(tree(page)) == 5
    page.keyboard.press("Enter")
    assert page.inner_text("#scopes [aria-current]") == "model"


def test_a_node_is_found_and_shown_with_the_path_to_it(page: Any) -> None:
    """By a part of its name; its scope opens, and the path leads there from what is fed."""
    page.keyboard.press("/")
    page.keyboard.type("loop/mu")
    page.wait_for_selector("#found li[aria-selected=true]")
    assert page.inner_text("#search-status") == "1 node found"
    page.keyboard.press("Enter")
    assert page.inner_text("#details h2") == "model/loop/mul"
    scopes = page.locator("#scopes li").all_inner_texts()
    assert [scope.strip("/ \n") for scope in scopes] == ["graph", "model", "loop"]
    page.get_by_role("button", name="Path from what is fed").press("Enter")
    way = page.locator("#way li").all_inner_texts()
    assert way[0] == "x"
    assert way[-1] == "model/loop/mul"
    assert "model/loop/Enter_1" in way


def test_details_are_those_of_the_report(page: Any, found: Report) -> None:
    """Costs, edges, Python and the summary of each value."""
    page.fill("#search", "loop/mul")
    page.press("#search", "Enter")
    text = page.inner_text("#details")
    assert found.step is not None
    [cost] = [one for one in found.step.costs if one.name == "model/loop/mul"]
    assert f"{cost.runs} times" in text
    assert "min 2, mean 5, max 8" in text
    assert "5 values" in text.replace("All ", "")
    assert "float32[4]" in text
    [line] = [line for line in found.code.lines if line.node == "model/loop/mul"][:1]
    assert line.text.strip() in text
    page.get_by_role("button", name="All 5 values").click()
    assert "min 32, mean 80, max 128" in page.inner_text("#details")


def test_tables_have_the_numbers_of_the_report(page: Any, found: Report) -> None:
    """Ops by time, iterations, and what became of nodes; sorted as one asks."""
    assert found.step is not None
    page.click("#tab-ops")
    shown = cells(page, "Nodes by time and memory")
    assert [row[0] for row in shown] == [cost.name for cost in found.step.costs]
    assert [int(row[2]) for row in shown] == [cost.runs for cost in found.step.costs]
    page.get_by_role("table", name="Nodes by").get_by_role("button", name="node").press("Enter")
    assert [row[0] for row in cells(page, "Nodes by time and memory")] == sorted(
        (cost.name for cost in found.step.costs), key=str.lower
    )
    page.click("#tab-loops")
    rows = cells(page, "Iterations of loops")
    assert [(row[1], row[5], row[6]) for row in rows] == [
        (str(one.number), str(one.runs), str(one.dead)) for one in found.step.iterations
    ]
    page.click("#tab-optimised")
    fates = {tuple(row[:4]) for row in cells(page, "What the optimiser did")}
    assert fates == {(one.name, one.op, one.by, one.text) for one in found.graph.fates}
    assert {row[0] for row in cells(page, "Pruned nodes")} == {"unused", "model/loop/Exit"}


def test_timeline_and_memory_are_told_as_well(page: Any, found: Report) -> None:
    """Arrows go from one activity to the next, and from one moment to the next."""
    assert found.step is not None
    page.click("#tab-timeline")
    page.press("#timeline-canvas", "End")
    last = found.step.activities[-1]
    assert page.inner_text("#timeline-status").startswith(f"{last.name} ({last.op}): ")
    page.press("#timeline-canvas", "ArrowLeft")
    assert page.inner_text("#timeline-status").startswith(f"{found.step.activities[-2].name} (")
    page.click("#tab-memory")
    assert page.inner_text("#memory-status").startswith("At the peak, ")
    peak = page.inner_text("#memory-status").partition(": ")[2]
    page.press("#memory-canvas", "Home")
    page.press("#memory-canvas", "p")
    assert page.inner_text("#memory-status").endswith(peak)


def test_python_stands_beside_its_nodes(page: Any, found: Report) -> None:
    """Line by line; Enter shows the node of one."""
    page.click("#tab-python")
    lines = page.locator("#code-lines .line").all()
    shown = [line.locator("code").inner_text() for line in lines]
    assert shown == [line.text for line in found.code.lines][: len(shown)]
    at = next(n for n, line in enumerate(found.code.lines) if line.node == "model/loop/mul")
    for _ in range(at):
        page.press("#code", "ArrowDown")
    assert "model/loop/mul (Mul)" in page.inner_text(f"#line-{at}")
    page.press("#code", "Enter")
    assert page.inner_text("#details h2") == "model/loop/mul"


@pytest.mark.parametrize("fold", ["scope", "function", "frame", "device"])
def test_all_ways_of_folding_have_all_nodes(page: Any, found: Report, fold: str) -> None:
    """Unfolded, each node is there once."""
    page.select_option("#fold", fold)
    page.locator("[role=treeitem][tabindex='0']").focus()
    page.keyboard.press("Home")
    for _ in range(80):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
    leaves = page.locator("[role=treeitem]:not([aria-expanded])").count()
    assert leaves == len(found.graph.nodes)
    if fold == "frame":
        assert {"(no loop)", "model/loop/while_context"} <= set(tree(page))


def test_the_picture_is_saved_as_svg(page: Any) -> None:
    """Each box has its name in it, and it is XML."""
    with page.expect_download() as download:
        page.click("#svg")
    assert download.value.suggested_filename == "looping.svg"
    root = ElementTree.fromstring(Path(download.value.path()).read_text("utf-8"))
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"x", "model", "minus", "out (fetched)"} <= texts


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(browser: Any, found: Report, tmp_path: Path, scheme: str) -> None:
    """As the system has it, until the button says otherwise; text can be read on both."""
    write(found, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html", color_scheme=scheme) as page:
        colour = "getComputedStyle(document.body).{}"
        ground = {scheme: page.evaluate(colour.format("backgroundColor"))}
        assert contrast(ground[scheme], page.evaluate(colour.format("color"))) > 7
        page.click("#theme")  # light
        page.click("#theme")  # dark
        assert page.inner_text("#theme") == "Theme: dark"
        dark = page.evaluate(colour.format("backgroundColor"))
        assert (dark == ground[scheme]) == (scheme == "dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_drawn_in_the_other_theme(
    browser: Any, found: Report, tmp_path: Path, scheme: Any
) -> None:
    """It is chosen before there is a body; it follows the system, and paper is always light."""
    write(found, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html", THEME_OF_FIRST, color_scheme=scheme) as page:
        assert page.evaluate("first") == scheme
        for theme, emulated in (
            ("light", {"color_scheme": "light"}),
            ("dark", {"color_scheme": "dark"}),
            ("light", {"media": "print"}),
            ("dark", {"media": "screen"}),
        ):
            page.emulate_media(**emulated)
            page.wait_for_selector(f"html[data-theme={theme}]")


#: Notes the theme that a page has when its body begins.
THEME_OF_FIRST = """
    new MutationObserver((_, observer) => {
        if (!document.body) return;
        window.first = document.documentElement.dataset.theme;
        observer.disconnect();
    }).observe(document, { childList: true, subtree: true });
"""


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG defines it."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in colour[4:-1].split(", ")]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_texts_of_a_model_do_nothing(browser: Any, tmp_path: Path) -> None:
    """What would be markup is shown as it is written."""
    markup = "</script><img src=x onerror=alert(1)>"
    ps.report(named_by_a_stranger(), path=tmp_path / "report.html", title=markup)
    with opened(browser, tmp_path / "report.html") as page:
        assert page.inner_text("#title") == markup
        page.select_option("#fold", "frame")
        page.select_option("#colour", "frame")
        page.fill("#search", "queue")
        page.press("#search", "Enter")
        assert f"shared_name={markup}" in page.inner_text("#details")
        assert page.locator("img").count() == 0


def test_a_large_scope_is_put_together(browser: Any, tmp_path: Path) -> None:
    """Of 3,000 nodes side by side no more than 500 are boxes, and each can be found."""
    graph = ps.Graph()
    with graph.as_default():
        value = ps.placeholder(ps.dtypes.float32, [4], name="x")
        for number in range(1500):
            value = ps.ops.neg(ps.ops.exp(value, name=f"exp_{number}"), name=f"neg_{number}")
    ps.report(graph, path=tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as page:
        assert len(boxes(page)) == 3
        page.fill("#search", "neg_1234")
        page.press("#search", "Enter")
        assert page.inner_text("#details h2") == "neg_1234"
        assert 100 < len(boxes(page)) <= 500
        page.get_by_role("button", name="Path from what is fed").click()
        assert "nodes …" in page.inner_text("#way")


def test_a_damaged_file_says_so(browser: Any, found: Report, tmp_path: Path) -> None:
    """Whoever opens half a file learns that it is half a file."""
    path = tmp_path / "report.html"
    write(found, path)
    text = path.read_text("utf-8")
    begin = text.index('id="report">') + 200
    path.write_text(text[:begin] + text[begin + 400 :], "utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("#trouble:not([hidden])")
    assert "cannot be shown" in page.inner_text("#trouble")
    context.close()


def test_layout_never_overlaps(page: Any) -> None:
    """No two boxes of a scope have a point in common."""
    page.fill("#search", "loop/mul")
    page.press("#search", "Enter")
    places = json.loads(
        page.evaluate(
            "JSON.stringify([...document.querySelectorAll('#boxes .box')].map(({style}) =>"
            " ['left', 'top', 'width', 'height'].map((name) => parseFloat(style[name]))))"
        )
    )
    assert len(places) > 15
    for number, (x, y, width, height) in enumerate(places):
        for left, top, wide, high in places[:number]:
            assert x + width <= left or left + wide <= x or y + height <= top or top + high <= y
