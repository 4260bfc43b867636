"""The Debian release of the lab's hosts and of images, and where this machine's apt has it."""

from __future__ import annotations

from typing import NamedTuple

SUITE = "trixie"
RELEASE = "Debian 13"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
INDEXES = ("apt-get", "indextargets", "--format", "$(CODENAME) $(COMPONENT) $(REPO_URI)", "Created-By: Packages")
"""The command whose output `of_release` reads."""
_PARTS = ("", "-updates", "-security")
_CODENAMES = {f"{release}{part}": part for release in ("bookworm", "trixie", "forky") for part in _PARTS}


class Source(NamedTuple):
    """One suite of an archive, such as (http://archive/debian, trixie-updates)."""

    uri: str
    suite: str

    @property
    def line(self) -> str:
        """As sources.list has it."""
        return f"deb [signed-by={KEYRING}] {self.uri} {self.suite} main"


def of_release(targets: str, suite: str = SUITE) -> tuple[Source, ...]:
    """Return the sources of a release in the archives that apt lists, whichever release this machine itself has.

    An archive keeps all releases of Debian side by side. targets: output of `INDEXES`. The main archive
    is first; empty if apt has none of Debian's.
    """
    rows = [line.split(maxsplit=2) for line in targets.splitlines()]
    archives = {
        _CODENAMES[codename]: uri.rstrip("/")
        for codename, component, uri in reversed(rows)
        if component == "main" and codename in _CODENAMES
    }
    if "" not in archives:
        return ()
    return tuple(Source(archives[part], f"{suite}{part}") for part in _PARTS if part in archives)
