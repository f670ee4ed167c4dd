"""A real browser without a screen, which nobody may call from a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: Where Debian and others have it.
NAMES = ("chromium", "chromium-browser", "google-chrome")
#: A second is a long time for a page; a machine under load may need more.
PATIENCE_MS = 20_000


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; without one, or without Playwright, the test is skipped."""
    api = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("there is no Chromium")
    # Its sandbox needs another user than root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, path: Path, before: str = "", **options: Any) -> Iterator[Any]:
    """A page, which must neither complain nor ask for anything but itself.

    ``before`` is a script that runs before it.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
    context.add_init_script(before)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    try:
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-state=ready]")
        yield page
        assert complaints == []
        # What is saved is handed over as a blob.
        assert [url for url in requests if not url.startswith("blob:")] == [path.as_uri()]
    finally:
        context.close()
