"""docs/models.md lists the layers that are known."""

from __future__ import annotations

from tools.make_keras_layers import PAGE, page_with_table


def test_the_page_lists_what_is_known() -> None:
    """The names on the page are those that have functions; the tool writes them."""
    page = PAGE.read_text("utf-8")

    assert page == page_with_table(page)
