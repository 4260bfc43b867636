"""Debian's chromium, driven by playwright."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path("/usr/bin/chromium")


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a headless browser."""
    if not PROGRAM.exists():
        pytest.skip("no chromium on this machine: tools/setup.sh")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Root has no sandbox of chromium's, and the browser opens only our own pages.
        browser = playwright.chromium.launch(
            executable_path=str(PROGRAM), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            browser.close()
