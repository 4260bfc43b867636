"""Programs that a bundle brought into the cache, used as they are: without Go and without a network.

They are used while `releases.origin` is `bundle`. A program that no bundle brought is built, as otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tools import cache
from tools.manifest import file_name

FILE = "carried.json"


def path(program: str, version: str, sha256: str) -> Path:
    """Return where the cache keeps a program with these bytes."""
    name = file_name(program)
    return cache.root() / "programs" / name / f"{version}-bundle-{sha256[:16]}" / name


def known() -> dict[str, tuple[str, str]]:
    """Return program -> its version and SHA-256, for all that bundles brought."""
    try:
        listed = json.loads(_file().read_text())
        return {str(name): (str(version), str(sha256)) for name, (version, sha256) in listed.items()}
    except FileNotFoundError:
        return {}


def of(programs: Mapping[str, str]) -> dict[str, Path]:
    """Return the paths of those of these programs, name -> version, that a bundle brought and that are still there."""
    carried = known()
    paths = {
        name: path(name, *carried[name])
        for name, version in programs.items()
        if carried.get(name, "")[:1] == (version,)
    }
    return {name: place for name, place in paths.items() if place.exists()}


def record(programs: Mapping[str, tuple[str, str]]) -> None:
    """Add programs to those that bundles brought: name -> version and SHA-256. One process at a time."""
    fresh = _file().with_suffix(".new")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_text(json.dumps({**known(), **programs}, indent=1, sort_keys=True) + "\n")
    fresh.replace(_file())


def _file() -> Path:
    return cache.root() / "programs" / FILE
