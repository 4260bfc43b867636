"""docs/explanation/threats.md: each row names a test, and each named test exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/explanation/threats.md").read_text()
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| (?!tries \||-)", line)]


def test_the_page_has_all_seven_threats() -> None:
    assert re.findall(r"^## ([A-Z])\.", PAGE, re.MULTILINE) == list("ABCDEFG")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:50])
def test_each_row_names_its_test(row: str) -> None:
    cell = row.strip("| ").split("|")[-1]
    assert re.search(r"`tests/[^`]+`|the same file", cell), row


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tests/[^`]+)`", PAGE))))
def test_each_named_test_exists(name: str) -> None:
    path = ROOT / name
    assert path.is_dir() or "def test_" in path.read_text()
