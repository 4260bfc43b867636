"""The generated pages of docs/reference/ are up to date."""

from __future__ import annotations

import os
from types import ModuleType

import pytest

from tests.reference import alerts_page, cli_page, metrics_page, outputs_page, spec_page

PAGES = [alerts_page, cli_page, metrics_page, outputs_page, spec_page]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.PAGE.name)
def test_a_page_is_up_to_date(page: ModuleType) -> None:
    """MENAGERIE_UPDATE_GOLDEN=1 rewrites the page; review the diff."""
    if os.environ.get("MENAGERIE_UPDATE_GOLDEN"):
        page.PAGE.write_text(page.rendered())
    assert page.PAGE.read_text() == page.rendered(), "run `make golden`"
