"""The version that the command prints is the newest of the changelog."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_newest_entry_of_the_changelog_is_of_this_version_or_unreleased() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    newest = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert newest == "Unreleased" or re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", newest)
