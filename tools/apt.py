"""The Debian release of the lab's hosts and of images, and where this machine's apt has it."""

from __future__ import annotations

import subprocess
from typing import NamedTuple

SUITE = "trixie"
RELEASE = "Debian 13"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_INDEXES = ("apt-get", "indextargets", "--format", "$(CODENAME) $(COMPONENT) $(REPO_URI)", "Created-By: Packages")
_RELEASES = ("bookworm", "trixie", "forky")
_PARTS = ("", "-updates", "-security")


class Source(NamedTuple):
    """One suite of an archive, such as (http://archive/debian, trixie-updates)."""

    uri: str
    suite: str

    @property
    def line(self) -> str:
        """As sources.list has it."""
        return f"deb [signed-by={KEYRING}] {self.uri} {self.suite} main"


def sources() -> tuple[Source, ...]:
    """Return the suites of `SUITE` in the archives of this machine, the main one first. Empty if it has no Debian archive.

    Errors: FileNotFoundError without apt.
    """
    return of_release(subprocess.run(_INDEXES, capture_output=True, text=True, check=False).stdout)


def of_release(targets: str) -> tuple[Source, ...]:
    """Return the sources of `SUITE` in the archives that apt lists, whichever release this machine itself has.

    An archive keeps all releases of Debian side by side. targets: output of `_INDEXES`.
    """
    rows = [line.split(maxsplit=2) for line in targets.splitlines()]
    found = {
        part: uri.rstrip("/")
        for codename, component, uri in reversed(rows)
        for part in _PARTS
        if component == "main" and codename in [f"{release}{part}" for release in _RELEASES]
    }
    if "" not in found:
        return ()
    return tuple(Source(found[part], f"{SUITE}{part}") for part in _PARTS if part in found)
